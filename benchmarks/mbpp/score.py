"""Scores of the untrained model and of every finished run, each on each set once, by a few processes side by side."""

from __future__ import annotations

import sys
from argparse import Namespace

from benchmarks.mbpp.results import UNTRAINED, read_score, score_file, score_words, trained
from benchmarks.mbpp.train import ARMS
from microcoder.study.launch import Command, side_by_side, tail


def score(args: Namespace) -> int:
    """Score whatever has no score yet, dealt out to processes that each load one model after the other."""
    runs = trained(args.out, list(ARMS))
    base = runs[0].config.model.name if runs else args.model
    names = [UNTRAINED, *(run.name for run in runs)]
    todo = [(name, which) for name in names for which in _missing(args, name)]
    if args.names is not None:
        from benchmarks.mbpp.measure import measure  # torch, which the parent does without

        measure([pair for pair in todo if pair[0] in args.names], base, args)
        return 0
    models = list(dict.fromkeys(name for name, _ in todo))
    print(f"{len(models)} models to score; scores there already: {len(names) * len(args.sets) - len(todo)}", flush=True)
    count = min(args.together, len(models))
    jobs = []
    for n in range(count):
        command = [sys.executable, "-m", "benchmarks.mbpp", *sys.argv[1:], "--names", *models[n::count]]
        jobs.append(Command(f"score-{n}", command, args.out / "logs" / f"score-{n}.log"))
    failed = []

    def ended(job: Command, status: int, seconds: float) -> None:
        if status:
            failed.append(job)
            print(f"{job.name}: FAILED with exit status {status}; the end of {job.log}:\n{tail(job.log)}", flush=True)

    side_by_side(jobs, max(count, 1), args.stop_after, ended)
    for name, which in todo:
        found = read_score(args.out, name, which)
        print(f"{name}, {which}: {score_words(found) if found else 'not scored; the same command goes on with it'}")
    return 1 if failed else 0


def _missing(args: Namespace, name: str) -> list[str]:
    """The sets that the model has no score on. Scores under other conditions would not be comparable."""
    missing = []
    for which in args.sets:
        found = read_score(args.out, name, which)
        if found is None:
            missing.append(which)
        elif (found["temperature"], found["tries"]) != (args.temperature, args.tries):
            sys.exit(
                f"{score_file(args.out, name, which)} is of {found['tries']} tries at temperature "
                f"{found['temperature']:g}; score with the same --tries and --temperature, or name another --out"
            )
    return missing
