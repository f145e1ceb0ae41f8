"""Are the starter problems right? Judges every reference and every wrong solution of thousands of them.

    python -m benchmarks.data starter [--count 3000] [--seed 0] [--json FILE]

A third of the problems are of the test split. Each solution states the verdict that it must get; whatever gets another
one is listed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

from microcoder import Judge, Problem, Solution
from microcoder.starter import corpus, problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    tested = args.count // 3
    start = time.perf_counter()
    drawn = {"train": problems("train", args.count - tested, args.seed), "test": problems("test", tested, args.seed)}
    rates = {"problems_per_s": round(args.count / (time.perf_counter() - start))}
    start = time.perf_counter()
    written = sum(1 for _ in corpus(20_000, args.seed))
    rates["answers_per_s"] = round(written / (time.perf_counter() - start))
    print(f"one core: {rates['problems_per_s']} problems a second, {rates['answers_per_s']} answers of the corpus\n")
    with Judge() as judge:
        start = time.perf_counter()
        rows, surprises = judged(judge, drawn)
        rates["judging_s"] = round(time.perf_counter() - start, 1)
    print(f"{'split':6}{'depth':>6}{'problems':>10}{'stdin':>7}{'references accepted':>21}{'wrong refused':>16}")
    for row in rows:
        accepted = f"{row['accepted']} of {row['references']}"
        refused = f"{row['refused']} of {row['wrong']}"
        print(f"{row['split']:6}{row['depth']:>6}{row['problems']:>10}{row['stdin']:>7}{accepted:>21}{refused:>16}")
    print(f"\n{sum(row['references'] + row['wrong'] for row in rows)} programs in {rates['judging_s']} s")
    print(f"{len(surprises)} verdicts that were not expected", *surprises[:20], sep="\n  ")
    if args.json:
        Path(args.json).write_text(json.dumps({**rates, "rows": rows, "surprises": surprises}, indent=1))


def judged(judge: Judge, drawn: dict[str, list[Problem]]) -> tuple[list[dict], list[str]]:
    """A row for each split and depth, and the verdicts that were not expected."""
    expected, cell, pairs = {}, {}, []
    counts: Counter[tuple[str, int, str]] = Counter()
    for split, found in drawn.items():
        for problem in found:
            place = split, int(problem.difficulty_score or 0)
            counts[*place, "problems"] += 1
            counts[*place, "stdin"] += problem.kind == "stdin"
            for n, solution in enumerate(problem.solutions):
                ident = f"{problem.id}#{n}"
                expected[ident], cell[ident] = solution["verdict"], place
                pairs.append((problem, Solution(problem.id, code=solution["code"], id=ident)))
                counts[*place, "references" if n == 0 else "wrong"] += 1
    surprises = []
    for solution, verdict in judge.map(pairs):
        if verdict.verdict != expected[solution.id]:
            surprises.append(f"{solution.id}: {verdict.verdict}, not {expected[solution.id]}: {verdict.message}")
        else:
            counts[*cell[solution.id], "accepted" if verdict.accepted else "refused"] += 1
    names = ("problems", "stdin", "references", "accepted", "wrong", "refused")
    places = sorted(set(cell.values()), key=lambda place: (place[0] == "test", place[1]))
    rows = [{"split": s, "depth": d, **{name: counts[s, d, name] for name in names}} for s, d in places]
    return rows, surprises
