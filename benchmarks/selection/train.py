"""The runs: `microcoder train` on each set with each seed, and every checkpoint scored on the held-out problems.

Rounds of one seed, so that what there is at any time is balanced. A finished run and a score that is there are kept; a
run that was begun goes on from its last checkpoint.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.selection.results import finished, score_file
from microcoder import Judge, Problem
from microcoder.collect import Responding
from microcoder.config import Config
from microcoder.files import read_problems
from microcoder.models import resolve
from microcoder.models.weights import end_tokens, load_tokenizer
from microcoder.prompts import messages
from microcoder.runs import checkpoints
from microcoder.runs.disk import write_whole
from microcoder.sampling import Sampler, Sampling, encode
from microcoder.training.step import evaluation, load_model

COMMON = [  # the rest is the demo's
    "train.train_batch_size=8",
    "train.save_every=4",
    "train.keep_checkpoints=1000",
    "data.test=none",  # the checkpoints are scored afterwards, problem by problem
    "judge.workers=1",
]
LIMIT, TEMPERATURE = 160, 0.6  # of the scores, as in the demo's evaluations


def train(args: Namespace) -> None:
    """Every run, and after each one its scores."""
    problems = [problem for problem in read_problems(args.out / "test.jsonl") if isinstance(problem, Problem)]
    with Judge(workers=1, queue=1 << 20) as judge:
        score = partial(scored, problems=problems, tries=args.tries, judge=judge)
        keep_score(score_file(args.out, "untrained", 0), "nano", score)
        for seed in args.seeds:
            for arm in args.arms:
                folder = args.out / "runs" / f"{arm}-{seed}"
                run(folder, arm, seed, args)
                for step in checkpoints(folder):
                    model = str(folder / "checkpoints" / f"checkpoint-{step}")
                    keep_score(score_file(args.out, folder.name, step), model, score)


def run(folder: Path, arm: str, seed: int, args: Namespace) -> None:
    """The run, to its end."""
    if finished(folder) >= args.steps:
        return
    own = [f"data.train={args.out / 'sets' / arm}.parquet", f"train.seed={seed}", f"train.steps={args.steps}"]
    place = [f"train.folder={folder.parent}", f"train.name={folder.name}"]
    command = [sys.executable, "-m", "microcoder.cli", "train", "demo", *COMMON, *own, *place]
    command += ["--resume"] if (folder / "config.toml").exists() else []
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}")


def keep_score(path: Path, model: str, score: Callable[[str], dict[str, Any]]) -> None:
    """Score the model, unless that was done before."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    found = score(model)
    write_whole(path, json.dumps(found, indent=1).encode() + b"\n")
    print(f"{path.stem}: accuracy {found['accuracy']:.3f}, length {found['length']:.0f}", flush=True)


def scored(name: str, *, problems: list[Problem], tries: int, judge: Judge) -> dict[str, Any]:
    """What a model gets on the held-out problems; everybody's draws have the same seed."""
    source = resolve(name)
    tokenizer, model = load_tokenizer(source), load_model(Config(), source).eval()
    prompts = [encode(tokenizer, messages(problem)) for problem in problems]
    sample = partial(Sampler(model, end_tokens(model, tokenizer)), sampling=Sampling(TEMPERATURE, LIMIT, tries))
    decode = partial(tokenizer.decode, skip_special_tokens=True)
    responses, _ = Responding(list(range(len(prompts))), problems, prompts, sample, decode, judge).all()
    marks: dict[str, str] = {}
    for row in responses:
        marks[row.problem.id] = marks.get(row.problem.id, "") + ("?" if row.faulty else str(int(row.accepted)))
    found = evaluation(responses, tries)
    return {
        "accuracy": found["test_accuracy"],
        "length": found["test_length"],
        "truncated_share": found["test_truncated_share"],
        "diversity": found["test_diversity"],
        "depths": {problem.id: f"{problem.difficulty_score:g}" for problem in problems},
        "accepted": marks,  # by problem, a mark for each try
    }
