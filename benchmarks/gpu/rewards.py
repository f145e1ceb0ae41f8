"""The same training with two rewards: the few examples of the statements, and forged tests.

    python -m benchmarks.gpu rewards forge  --problems problems.parquet --adversaries SAMPLES --data DATA
    python -m benchmarks.gpu rewards run    --model FOLDER --data DATA --out DIR --budget 950
    python -m benchmarks.gpu rewards report --out DIR --data DATA

`forge` takes the problems with their references, as `data run` wrote them for `prepare`, and programs of other models
to search with. DATA then holds `train.jsonl.gz` and `validation.jsonl.gz` (examples only), `train-forged.jsonl.gz` and
`validation-forged.jsonl.gz` (the same problems with forged tests), and `test.jsonl.gz` (newer problems with all
of their tests). Everything but the tests of the training problems is alike: problems, order, seeds, learning
rate, temperature, limit. Both arms are validated with examples only, and scored before and after on test and on the
validation problems with forged tests.

The report adds what no run can know by itself: of the training programs that a run's own tests accepted, the share
that the forged tests refuse (each program once, problems with forged tests only, in the first and last four steps
whose rollouts are there). `qwen pack` packs what there is.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.gpu.qwen_plan import COMMON, SIZES
from benchmarks.gpu.qwen_run import finished, slim
from microcoder.files import json_line, write_problems
from microcoder.runs import latest_checkpoint, read_metrics
from microcoder.schema import Solution
from microcoder.study.launch import Command, side_by_side, tail

REWARDS = {"examples": "train.jsonl.gz", "forged": "train-forged.jsonl.gz"}
PART = """
import json, sys, microcoder as mc
problems, stronger, workers, *adversaries = sys.argv[1:]
summary = mc.forge(problems, stronger, "judge.time_limit_s=3", workers, adversaries=adversaries)
open(stronger.replace(".parquet", ".json"), "w").write(json.dumps(summary.to_dict()))
"""
SUITES = {"test": "test.jsonl.gz", "forged": "validation-forged.jsonl.gz"}
ENDS = 3  # steps whose mean stands for the beginning and the end of a run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("forge", "run", "report"))
    parser.add_argument("--problems", type=Path, metavar="FILE", help="of forge: problems with references")
    parser.add_argument("--adversaries", type=Path, nargs="*", default=[], help="of forge: programs of models")
    parser.add_argument("--model", default="", metavar="FOLDER", help="the model, as transformers has it")
    parser.add_argument("--data", type=Path, required=True, metavar="DATA")
    parser.add_argument("--out", type=Path, default=Path("rewards"), metavar="DIR")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS", help="then it ends by itself")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", choices=REWARDS, help="runs of one reward, while the other's tests are being forged")
    parser.add_argument("--lr", type=float, default=3e-6)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--preset", default="grpo_plus")
    parser.add_argument("--together", type=int, default=4, help="runs or processes at a time")
    parser.add_argument("--judge-workers", type=int, default=4, help="of each run")
    parser.add_argument("--micro", type=int, default=4, help="responses in a pass: memory, not results")
    parser.add_argument("--size", choices=SIZES, default="full", help="toy: to see that all of it works")
    parser.add_argument("--set", nargs="*", action="extend", default=[], metavar="section.key=value")
    args = parser.parse_args()
    args.out, args.data = args.out.resolve(), args.data.resolve()
    if args.command == "forge":
        return _forge(args)
    if args.command == "report":
        print(report(args.out, args.data))
        return 0
    return _run(args)


def _forge(args: argparse.Namespace) -> int:
    """Forge in several processes, since one of them keeps about two cores busy, and write the parts of DATA."""
    import microcoder as mc

    problems, folder = mc.load_problems(args.problems), args.data / "forging"
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for n in range(args.together):
        part, stronger = folder / f"part-{n}.parquet", folder / f"stronger-{n}.parquet"
        write_problems(part, problems[n :: args.together])
        words = [sys.executable, "-c", PART, str(part), str(stronger), f"judge.workers={args.judge_workers}"]
        jobs.append(Command(f"forge {n}", [*words, *map(str, args.adversaries)], folder / f"{n}.log"))
    left = side_by_side(jobs, args.together, args.budget, lambda job, status, seconds: print(job.name, status, seconds))
    for job in left:
        print(f"{job.name}: not finished: its problems keep their examples", flush=True)
    done = [mc.load_problems(path) for path in folder.glob("stronger-*.parquet")]
    forged = {problem.id: problem for problem in problems} | {found.id: found for part in done for found in part}
    bare = {"solutions": [], "lineage": [], "difficulty_score": None, "extra": {}}
    for name in ("train", "validation"):
        wanted = mc.load_problems(args.data / f"{name}.jsonl.gz")
        rows = (json_line(replace(forged[problem.id], **bare).to_dict()) for problem in wanted)
        (args.data / f"{name}-forged.jsonl.gz").write_bytes(gzip.compress(b"".join(rows), mtime=0))
    summaries = [json.loads(path.read_text()) for path in sorted(folder.glob("stronger-*.json"))]
    (args.data / "forged.json").write_text(json.dumps(summaries, indent=1) + "\n")
    for side in ("before", "after"):
        print(side, {key: sum(summary[side][key] for summary in summaries) for key in summaries[0][side]})
    return 0


def _run(args: argparse.Namespace) -> int:
    failed: list[str] = []
    names = [f"{reward}-s{seed}" for seed in range(args.seeds) for reward in REWARDS if args.only in (None, reward)]

    def ended(job: Command, status: int, seconds: float) -> list[Command]:
        print(
            f"{job.name}: {f'FAILED with {status}: {tail(job.log)}' if status else 'done'}, {seconds:.0f} s", flush=True
        )
        if status:
            failed.append(job.name)
        name = job.name.removeprefix("train ")
        if status or name not in names:
            return []
        slim(args.out / "runs" / name)
        return _score(name, str(args.out / "runs" / name), args)

    jobs = [] if args.only == "forged" else _score("base", args.model, args)
    for name in names:
        folder = args.out / "runs" / name
        jobs += _score(name, str(folder), args) if finished(folder) else [_train(name, args)]
    left = side_by_side(sorted(jobs, key=lambda job: "score" in job.name), args.together, args.budget, ended)
    print("not finished: " + ", ".join(job.name for job in left) if left else "all is done", flush=True)
    return 1 if failed else 0


def _train(name: str, args: argparse.Namespace) -> Command:
    reward, seed = name.rsplit("-s", 1)
    words = [
        "train",
        f"model.name={args.model}",
        f"data.train={args.data / REWARDS[reward]}",
        f"data.test={args.data / 'validation.jsonl.gz'}",
        *COMMON,
        *SIZES[args.size],
        "rollout.memory=0.07",
        f"train.steps={args.steps}",
        f"train.eval_every={max(1, args.steps // 4)}",
        f"train.save_every={max(1, args.steps // 4)}",  # so that a run that was stopped goes on, or is scored as it is
        f"train.micro_batch_size={args.micro}",
        f"judge.workers={args.judge_workers}",
        f"grpo.preset={args.preset}",
        f"grpo.temperature={args.temperature:g}",
        f"train.lr={args.lr:g}",
        f"train.seed={seed}",
        f"train.folder={args.out / 'runs'}",
        f"train.name={name}",
        *args.set,
        *(["--resume"] if latest_checkpoint(args.out / "runs" / name) else []),
    ]
    return _command(f"train {name}", words, args)


def _score(name: str, model: str, args: argparse.Namespace) -> list[Command]:
    toy = ["--first", "3", "--limit", "24", "-n", "1"] if args.size == "toy" else ["--limit", "1024", "-n", "8"]
    jobs = []
    for suite, file in SUITES.items():
        out = args.out / "bench" / f"{name}.{suite}"
        if not (out / "scores.json").exists():
            words = ["eval", model, "--suite", str(args.data / file), *toy, "--temperature", "0.2", "-o", str(out)]
            words += ["judge.time_limit_s=2", f"judge.workers={args.judge_workers}", "rollout.memory=0.1"]
            jobs.append(_command(f"score {name} {suite}", words, args))
    return jobs


def _command(name: str, words: list[str], args: argparse.Namespace) -> Command:
    log = args.out / "logs" / f"{name.replace(' ', '-')}.log"
    return Command(name, [sys.executable, "-m", "microcoder.cli", *words], log)


# --- the table


def report(out: Path, data: Path) -> str:
    """Rewards, validation and test of each run, and the share of accepted training programs that are wrong."""
    from microcoder import Judge, load_problems

    weak = {problem.id: len(problem.tests) for problem in load_problems(data / REWARDS["examples"])}
    stronger = load_problems(data / REWARDS["forged"])
    forged = {problem.id: problem for problem in stronger if len(problem.tests) > weak[problem.id]}
    lines = [
        "| run | steps | reward | validation (examples) | validation (forged) | test "
        "| wrong among accepted, first and last 4 steps kept |"
    ]
    lines += ["| --- | --- | --- | --- | --- | --- | --- |", f"| untrained | | | | {_scores(out, 'base')} | |"]
    with Judge() as judge:
        for folder in sorted((out / "runs").glob("*")):
            rows = list(read_metrics(folder))
            rewards = [row["reward"] for row in rows if row.get("reward") is not None]
            seen = [row["test_accuracy"] for row in rows if row.get("test_accuracy") is not None]
            ends = [sum(part) / len(part) for part in (rewards[:ENDS], rewards[-ENDS:]) if part]
            files = sorted((folder / "rollouts").glob("step_*.jsonl.gz"))
            wrong = [_wrong(part, forged, judge) for part in (files[:4], files[-4:])]
            lines.append(
                f"| {folder.name} | {len(rewards)} | {' -> '.join(f'{end:.3f}' for end in ends)} "
                f"| {' -> '.join(f'{100 * value:.1f}%' for value in seen)} "
                f"| {_scores(out, folder.name)} | {'; '.join(wrong)} |"
            )
    (out / "report.md").write_text("\n".join(lines) + "\n")
    (out / "report.json").write_text(json.dumps(lines) + "\n")
    return "\n".join(lines)


def _wrong(files: list[Path], forged: dict[str, Any], judge: Any) -> str:
    accepted = {
        (row["problem"], row["code"]): forged[row["problem"]]
        for file in files
        for row in _rows(file)
        if row.get("verdict") == "accepted" and row["problem"] in forged
    }
    pairs = [(problem, Solution(problem.id, code=code)) for (_, code), problem in accepted.items()]
    refused = sum(not verdict.accepted for _, verdict in judge.map(pairs))
    return f"{refused} of {len(pairs)}" if pairs else "none accepted"


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _scores(out: Path, name: str) -> str:
    return " | ".join(_scored(out / "bench" / f"{name}.{suite}" / "scores.json") for suite in ("forged", "test"))


def _scored(path: Path) -> str:
    if not path.exists():
        return ""
    scores = json.loads(path.read_text())
    found = next(iter(scores["scores"].values()))["robust"]
    return f"{100 * found['accuracy']:.1f}% ({100 * found['low']:.1f} to {100 * found['high']:.1f})"
