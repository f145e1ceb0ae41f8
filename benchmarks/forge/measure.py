"""What test sets make of programs whose truth is known: rates with intervals, and the programs that were told wrong.

    TPR    the share of right programs that are accepted
    TNR    the share of wrong programs that are refused
    wrong  the share of wrong programs among those that are accepted: what a reward would pay for

Intervals are 95% by the bootstrap over problems. A program that was sampled several times is judged once and counts as
often as it was sampled. Verdicts and forged problems are kept in a folder, so that a measurement goes on where it was
stopped; `--again` forges anew.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import hashlib
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from microcoder.data.forge import ForgeOptions, forge
from microcoder.data.record import Record
from microcoder.judge import Judge
from microcoder.judge.extract import code_block
from microcoder.schema import ACCEPTED, Problem, Solution

RESAMPLES = 2000
FORGED = "forged"


@dataclass(slots=True)
class Scored:
    """A program and what is true of it."""

    code: str
    right: bool
    name: str = ""
    times: int = 1


@dataclass(slots=True)
class Case:
    """A problem as the forge sees it, other test sets of it, and the programs to score."""

    seen: Problem  # statement, shown tests, and one reference among its solutions
    programs: list[Scored]
    sets: dict[str, Problem] = field(default_factory=dict)  # by name; the forged one is added


@dataclass(slots=True)
class Sampled:
    """How often a program was written, and whether the evaluation accepted it."""

    times: int = 0
    accepted: bool = False


class Verdicts:
    """Verdicts by problem and program, kept in a file."""

    def __init__(self, file: Path, judge: Judge) -> None:
        self.judge, self.file = judge, file
        self.known: dict[str, tuple[str, str]] = {}
        if file.exists():
            text = file.read_text(encoding="utf-8")
            if text and not text.endswith("\n"):  # stopped while it wrote: the cut line is judged again
                text = text[: text.rfind("\n") + 1]
                file.write_text(text, encoding="utf-8")
            for row in map(json.loads, text.splitlines()):
                self.known[row["key"]] = (row["verdict"], row["message"])

    def fill(self, pairs: Iterable[tuple[Problem, str]], what: str = "") -> None:
        """Judge what is not known yet."""
        asked = {}
        for problem, code in pairs:
            if (key := _key(problem, code)) not in self.known:
                if _is_python(code):
                    asked[key] = (problem, code)
                else:
                    self.known[key] = ("compile_error", "")
        started, done = time.monotonic(), 0
        work = ((problem, Solution(problem.id, code=code, id=key)) for key, (problem, code) in asked.items())
        with open(self.file, "a", encoding="utf-8") as out:
            for solution, verdict in self.judge.map(work):
                done += 1
                if verdict.verdict != "internal_error":
                    self.known[solution.id] = (verdict.verdict, verdict.message[:300])
                    row = {"key": solution.id, "verdict": verdict.verdict, "message": verdict.message[:300]}
                    out.write(json.dumps(row) + "\n")
                if done % 500 == 0:
                    print(f"  {what}: {done} of {len(asked)} programs, {time.monotonic() - started:.0f} s", flush=True)

    def of(self, problem: Problem, code: str) -> tuple[str, str]:
        return self.known.get(_key(problem, code), ("internal_error", ""))


@lru_cache(maxsize=100_000)
def _is_python(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _key(problem: Problem, code: str) -> str:
    return hashlib.blake2b(f"{problem.fingerprint()} {code}".encode("utf-8", "replace"), digest_size=16).hexdigest()


# --- the command line


def parser(text: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--folder", type=Path, default=Path("forge-bench"), help="verdicts and forged problems so far")
    made.add_argument("--first", type=int, metavar="N", help="only the first N problems")
    made.add_argument("--only", nargs="*", default=[], metavar="ID", help="only problems whose id ends so")
    made.add_argument("--again", action="store_true", help="forge anew; verdicts on other test sets are kept")
    made.add_argument("--workers", type=int, default=None)
    made.add_argument("--json", metavar="FILE")
    return made


def chosen(cases: Iterable[Case], args: argparse.Namespace) -> list[Case]:
    found = [case for case in cases if not args.only or case.seen.id.endswith(tuple(args.only))]
    return found[: args.first] if args.first else found


def lines(path: str | Path) -> Iterator[dict[str, Any]]:
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as rows:
        for line in rows:
            if line.strip():
                yield json.loads(line)


def sampled(folders: Sequence[Path]) -> dict[str, dict[str, Sampled]]:
    """The programs in the samples of evaluations, by problem and program."""
    found: dict[str, dict[str, Sampled]] = {}
    for folder in folders:
        said = {}
        for row in lines(folder / "verdicts.jsonl"):
            ident, _, number = row["id"].partition("@")[0].rpartition("#")
            said[ident, int(number)] = row["verdict"]
        for row in lines(folder / "samples.jsonl"):
            code = code_block(row["text"])
            if code and code.strip():
                one = found.setdefault(row["problem_id"], {}).setdefault(code, Sampled())
                one.times += 1
                one.accepted |= said.get((row["problem_id"], row["number"])) == ACCEPTED
    return found


# --- forging


def add_forged(cases: Sequence[Case], judge: Judge, folder: Path, again: bool) -> dict[str, Any]:
    """Add the forged test set to each case; the notes of the forge, summed."""
    file = folder / "forged.jsonl"
    if again:
        file.unlink(missing_ok=True)
    known = {row["seen"]: row["problem"] for row in lines(file)} if file.exists() else {}
    missing = [case for case in cases if case.seen.fingerprint() not in known]
    started = time.monotonic()
    records = (Record(case.seen).copy() for case in missing)
    with open(file, "a", encoding="utf-8") as out:
        made = forge(records, judge, options=ForgeOptions())
        for n, (case, record) in enumerate(zip(missing, made, strict=True), 1):
            known[case.seen.fingerprint()] = record.problem.to_dict()
            out.write(json.dumps({"seen": case.seen.fingerprint(), "problem": record.problem.to_dict()}) + "\n")
            out.flush()
            if n % 20 == 0:
                print(f"  forged {n} of {len(missing)}, {time.monotonic() - started:.0f} s", flush=True)
    for case in cases:
        case.sets[FORGED] = Problem.from_dict(known[case.seen.fingerprint()])
    reasons = Counter(_reason(case.sets[FORGED]) for case in cases)
    seconds = round(time.monotonic() - started, 1)
    return {"forged": len(missing), "seconds": seconds, "not_forged": {k: n for k, n in reasons.items() if k}}


def _reason(problem: Problem) -> str:
    """Why a problem has no forged tests; "" if it has."""
    notes = problem.extra.get("forge", {})
    return "" if notes.get("tests") else str(notes.get("reason") or notes.get("unforged") or "nothing killed")


# --- the measurement


def measure(cases: list[Case], args: argparse.Namespace, judge: Judge, verdicts: Verdicts, first: str) -> None:
    """Forge, judge every program by every test set, and print what came out.

    `first` names the set that all others contain: what it refuses is not judged again by the forged one.
    """
    notes = add_forged(cases, judge, args.folder, args.again)
    names = list(dict.fromkeys(name for case in cases for name in case.sets))
    for name in names:
        pairs = [
            (case.sets[name], program.code)
            for case in cases
            if name in case.sets
            for program in case.programs
            if name != FORGED or verdicts.of(case.sets[first], program.code)[0] == ACCEPTED
        ]
        verdicts.fill(pairs, name)
    rows = [_row(case, names, first, verdicts) for case in cases]
    result: dict[str, Any] = {"forge": notes, "problems": len(rows), "rates": {}, "told_wrong": [], "let_through": []}
    groups: dict[str, Callable[[dict[str, Any]], bool]] = {"all": lambda row: True}
    for by in ("kind", "platform", "difficulty"):
        for value in sorted({row[by] for row in rows}):
            if value and len({row[by] for row in rows}) > 1:
                groups[f"{by} {value}"] = lambda row, by=by, value=value: row[by] == value  # type: ignore[misc]
    programs = [program for row in rows for program in row["programs"]]
    right = sum(program["times"] for program in programs if program["right"])
    total = sum(program["times"] for program in programs)
    print(f"{len(rows)} problems, {total} programs ({len(programs)} different), {right} right, {total - right} wrong")
    print(f"forge: {json.dumps(notes)}\n")
    print(f"{'problems':22} {'tests':12} {'a problem':>9}  {'TPR %':20} {'TNR %':20} {'wrong among accepted %':22}")
    for group, member in groups.items():
        for name in names:
            rates = rates_of([row for row in rows if member(row)], name)
            result["rates"][f"{group} | {name}"] = rates
            shown = "  ".join(f"{_shown(rates[key]):19}" for key in ("tpr", "tnr", "wrong"))
            print(f"{group:22} {name:12} {rates['tests']:9.1f}  {shown}")
    for row in rows:
        for program in row["programs"]:
            verdict, message = program[FORGED]
            entry = f"{row['id']} {program['name']}: {verdict} {message}"
            if program["right"] and verdict != ACCEPTED:
                result["told_wrong"].append({"text": entry, "code": program["code"]})
            elif not program["right"] and verdict == ACCEPTED:
                result["let_through"].append({"text": entry, "code": program["code"]})
    for what, title in (("told_wrong", "right programs told wrong"), ("let_through", "wrong programs let through")):
        print(f"\n{title}: {len(result[what])}")
        for one in result[what]:
            print(f"  {one['text'][:220]}")
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1))


def _row(case: Case, names: list[str], first: str, verdicts: Verdicts) -> dict[str, Any]:
    shown = case.seen
    row: dict[str, Any] = {"id": shown.id, "kind": shown.kind, "platform": shown.platform, "programs": []}
    row["difficulty"] = shown.difficulty
    row["tests"] = {name: len(p.tests) or len(p.asserts) for name, p in case.sets.items()}
    for program in case.programs:
        found: dict[str, Any] = {"name": program.name, "right": program.right, "times": program.times}
        found["code"] = program.code
        for name in names:
            if name in case.sets:
                refused = name == FORGED and (before := verdicts.of(case.sets[first], program.code))[0] != ACCEPTED
                found[name] = before if refused else verdicts.of(case.sets[name], program.code)
        row["programs"].append(found)
    return row


def rates_of(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """TPR, TNR and the wrong among the accepted, each as (share, low, high), and the mean number of tests."""
    counts = np.zeros((len(rows), 4))  # right accepted, right refused, wrong accepted, wrong refused
    for n, row in enumerate(rows):
        for program in row["programs"]:
            verdict = program.get(name, ("internal_error", ""))[0]
            if verdict != "internal_error":
                counts[n, 2 * (not program["right"]) + (verdict != ACCEPTED)] += program["times"]
    draws = np.random.default_rng(0).integers(0, max(1, len(rows)), (RESAMPLES, len(rows)))  # (resamples, rows)
    sums = counts[draws].sum(1) if len(rows) else np.zeros((1, 4))  # (resamples, 4)

    def share(part: int, rest: int) -> tuple[float | None, float | None, float | None]:
        whole = counts[:, [part, rest]].sum()
        drawn = sums[:, part] + sums[:, rest]
        if not whole:
            return None, None, None
        spread = sums[drawn > 0, part] / drawn[drawn > 0]
        low, high = np.quantile(spread, (0.025, 0.975))
        return float(counts[:, part].sum() / whole), float(low), float(high)

    tests = [row["tests"][name] for row in rows if name in row["tests"]]
    return {
        "tpr": share(0, 1), "tnr": share(3, 2), "wrong": share(2, 0), "counts": counts.sum(0).tolist(),
        "tests": float(np.mean(tests)) if tests else 0.0,
    }  # fmt: skip


def _shown(rate: tuple[float | None, float | None, float | None]) -> str:
    share, low, high = rate
    if share is None or low is None or high is None:
        return "-"
    return f"{100 * share:.1f} [{100 * low:.1f}-{100 * high:.1f}]"
