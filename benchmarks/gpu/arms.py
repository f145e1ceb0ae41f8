"""Trainings of one model side by side on one GPU, alike in everything but what their arms say, and scored.

    python -m benchmarks.gpu arms run    --model FOLDER --data DATA --out DIR --arms ARM ... --seeds 0 1 --budget 1200
    python -m benchmarks.gpu arms choose --out DIR
    python -m benchmarks.gpu arms report --out DIR --data DATA
    python -m benchmarks.gpu arms pack   --out DIR --to FOLDER

An arm is one of the names in ARMS, or a preset and settings with a name of their own: "hot=grpo_plus
grpo.temperature=1.2". DATA is what `prepare` and `forge` wrote. `run` can be stopped and typed again: what is finished
stays, a run that was stopped goes on from its last checkpoint. A run is begun only if it can be expected to end and to
be scored within the budget, going by the longest that have ended; scores come before trainings. After the budget what
is under way is told to stop. A training that fails is tried once more, after the others. `choose` prints the settings
of the arm that is best on validation (choose.py). `report` makes tables, curves and claims of whatever is there, at any
time (report.py, claims.py).
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import shutil
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.scores import FILES
from microcoder.config import load
from microcoder.files import json_line
from microcoder.runs import steps
from microcoder.study.launch import Command, side_by_side, tail
from microcoder.study.plan import find_scale
from microcoder.training.ranks import TERMINATED

BASE = "base"  # the name of the untrained model among the runs
EXAMPLES, FORGED = "train.jsonl.gz", "train-forged.jsonl.gz"
ARMS = {
    "examples": f"grpo_plus data.train={{data}}/{EXAMPLES}",  # the two or three examples of a statement as rewards
    "forged": "grpo_plus",
    "padded": "grpo_plus train.update=padded train.micro_batch_size=8",
    "grpo": "grpo",
    "grpo_plus": "grpo_plus",
    "dapo": "dapo",
    "dr_grpo": "dr_grpo",
    "microcoder": "microcoder",
    "microcoder-TD": "microcoder grpo.temperature=auto",
    "mask-all": "grpo_plus grpo.mask=all",
    "mask-100": "grpo_plus grpo.mask=conditional grpo.rho=1",
    "mask-apart": "grpo_plus grpo.mask=conditional grpo.rho=1 grpo.masked_in_group=false",
    "TD": "grpo_plus grpo.temperature=auto",
    "cool": "grpo_plus grpo.temperature=0.6",  # what T(D) takes for Qwen2.5-Coder-1.5B
}
COMMON = find_scale("qwen").settings  # microcoder/study/scales.toml; temperature and limit too: all arms alike
SIZES = {  # --size
    "full": [],
    "toy": ["train.train_batch_size=2", "train.ppo_mini_batch_size=1", "grpo.samples=2", "train.max_response_tokens=24",
            "train.eval_tries=1", "data.train_size=4", "data.test_size=2"],
}  # fmt: skip
VOLUME = 15_000_000  # bytes of a packed file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "choose", "report", "pack"))
    parser.add_argument("--model", default="", metavar="FOLDER", help="the model, as transformers has it")
    parser.add_argument("--data", type=Path, metavar="DATA")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--arms", nargs="+", default=["examples", "forged"], metavar="ARM", help=", ".join(ARMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--every", type=int, default=0, help="steps between evaluations; a quarter of all")
    parser.add_argument("--suites", nargs="*", choices=FILES, default=["test", "forged"], help="of `scores`")
    parser.add_argument("--tries", type=int, default=0, help="of a scoring, at T 0.2: as of `scores`")
    parser.add_argument("--limits", type=int, nargs="+", default=[1024], help="of a scoring")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS", help="then it ends by itself")
    parser.add_argument("--together", type=int, default=3, help="jobs at a time")
    parser.add_argument("--judge-workers", type=int, default=4, help="of each job")
    parser.add_argument("--drop-weights", action="store_true", help="remove a run's weights once it is scored")
    parser.add_argument("--size", choices=SIZES, default="full", help="toy: to see that all of it works")
    parser.add_argument("--set", nargs="*", action="extend", default=[], metavar="section.key=value")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="of pack")
    parser.add_argument("--rollouts", type=int, default=3, metavar="N", help="of pack: steps of a run that go along")
    parser.add_argument("--bare", action="store_true", help="of pack: no texts of problems, for a public archive")
    args = parser.parse_args()
    args.out = args.out.resolve()
    if args.command == "pack":
        for path in pack(args.out, args.to or args.out, args.rollouts, args.bare):
            print(f"{path} {path.stat().st_size:,} bytes")
        return 0
    if args.command == "choose":
        from benchmarks.gpu.choose import choose

        print(*choose(args.out))
        return 0
    if args.data is None:
        parser.error("--data is missing")
    args.data = args.data.resolve()
    if args.command == "report":
        from benchmarks.gpu.claims import write_plan
        from benchmarks.gpu.report import ReportError, report

        try:
            print(report(args.out, args.data))
        except ReportError as error:
            parser.error(str(error))
        for line in write_plan(args.out):
            print(f"claims of {line}")
        return 0
    return Experiment(args).run()


class Experiment:
    """The jobs of `run`."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.out = args, args.out
        arms = dict(_arm(words) for words in args.arms)
        self.style = load(None, [word for word in args.set if word.startswith("data.style=")]).data.style
        self.runs = {f"{name}-s{seed}": (words, seed) for seed in args.seeds for name, words in arms.items()}
        self.deadline = time.monotonic() + args.budget
        self.took: dict[str, float] = {}  # the longest training and scoring that ended, in seconds
        self.failed: list[str] = []
        self.stopped = False  # a job, by somebody else
        self.unscored: set[str] = set()  # jobs that wait to score a run that has ended

    def run(self) -> int:
        done = [name for name in self.runs if finished(self.out / "runs" / name)]
        jobs = [job for name in (BASE, *done) for job in self._scores(name)]
        jobs += [self._train(name) for name in self.runs if name not in done]
        left = side_by_side(jobs, self.args.together, self.args.budget, self._ended, self._fits)
        for job in left:
            print(f"{job.name}: not finished; the same command goes on with it", flush=True)
        print("not all is done" if left or self.stopped else "all is done", flush=True)
        return 1 if any(not finished(self.out / "runs" / name) for name in self.failed) else 0

    def _fits(self, job: Command) -> bool:
        """Whether a training can be expected to end in time, and to be scored; scores come before it."""
        if not job.name.startswith("train"):
            self.unscored.discard(job.name)  # it is started now
            return True
        if self.unscored:
            return False
        if "train" not in self.took:
            return True
        return time.monotonic() + self.took["train"] + self.took.get("score", 30.0) < self.deadline

    def _ended(self, job: Command, status: int, seconds: float) -> list[Command]:
        kind, name = job.name.split()[:2]
        if status == TERMINATED:  # somebody asked it to stop, and it has saved its step
            print(f"{job.name}: stopped, {seconds:.0f} s; the same command goes on with it", flush=True)
            self.stopped = True
            return []
        said = f"FAILED with exit status {status}:\n{tail(job.log)}" if status else "done"
        print(f"{job.name}: {said}, {seconds:.0f} s", flush=True)
        if status:
            self.failed.append(job.name)
            return [self._train(name)] if kind == "train" and self.failed.count(job.name) == 1 else []
        self.took[kind] = max(seconds, self.took.get(kind, 0.0))
        folder = self.out / "runs" / name
        if kind == "train":
            for file in folder.glob("checkpoints/*/optimizer.pt"):  # two thirds of a checkpoint
                file.unlink()
        follow = self._scores(name)
        if not follow and self.args.drop_weights:
            shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        if kind != "train":
            return []
        self.unscored |= {each.name for each in follow}
        return follow

    def _train(self, name: str) -> Command:
        (preset, *words), seed = self.runs[name]
        every = self.args.every or max(1, self.args.steps // 4)
        forged = self.args.data / FORGED
        words = [
            *COMMON,
            f"model.name={self.args.model}",
            f"data.train={forged if forged.exists() else self.args.data / EXAMPLES}",
            f"data.test={self.args.data / 'validation.jsonl.gz'}",
            f"grpo.preset={preset}",
            *SIZES[self.args.size],
            f"train.steps={self.args.steps}",
            f"train.eval_every={every}",
            f"train.save_every={every}",
            f"judge.workers={self.args.judge_workers}",
            *self.args.set,
            *(word.format(data=self.args.data) for word in words),
            f"train.seed={seed}",
            f"train.folder={self.out / 'runs'}",
            f"train.name={name}",
        ]
        there = (self.out / "runs" / name / "config.toml").exists()
        return self._command(f"train {name}", ["microcoder.cli", "train", *words, *(["--resume"] if there else [])])

    def _scores(self, name: str) -> list[Command]:
        bench = self.out / "bench"
        left = [suite for suite in self.args.suites if not (bench / f"{name}.{suite}" / "scores.json").exists()]
        if not left:
            return []
        model = self.args.model if name == BASE else str(self.out / "runs" / name)
        words = ["--models", f"{name}={model}", "--data", str(self.args.data), "--out", str(bench), "--suites", *left]
        words += ["--size", self.args.size, "--limits", *map(str, self.args.limits), "--tries", str(self.args.tries)]
        words += ["--judge-workers", str(self.args.judge_workers), "--style", self.style]
        return [self._command(f"score {name}", ["benchmarks.gpu", "scores", *words])]

    def _command(self, name: str, words: Sequence[str]) -> Command:
        log = self.out / "logs" / f"{name.replace(' ', '-')}.log"
        return Command(name, [sys.executable, "-m", *words], log)


def _arm(text: str) -> tuple[str, list[str]]:
    """The name of an arm, and its words: a preset, then settings."""
    first, _, rest = text.partition("=")
    if rest:
        return first, ARMS.get(rest, rest).split()
    if text not in ARMS:
        raise SystemExit(f"no arm is named {text}; there are: {', '.join(ARMS)}; or NAME='preset setting=value ...'")
    return text, ARMS[text].split()


def finished(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / "summary.json").read_text())["status"] == "finished")
    except (OSError, ValueError, KeyError):
        return False


# --- what is brought home


def pack(out: Path, to: Path, rollouts: int, bare: bool = False) -> list[Path]:
    """Everything but weights as results.tar.xz.NN, which `cat` joins; rollouts of so many steps of each run.

    `bare`: without what belongs to others: statements, prompts, samples' texts, messages (which quote tests); and
    without logs and this machine's paths. `report` can be made from it.
    """
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:xz", preset=9 if bare else 2) as archive:
        for path in _small(out, rollouts):
            if not bare:
                archive.add(path, path.relative_to(out), recursive=False)
            elif path.suffix != ".log":
                data = _bare(path, out)
                entry = tarfile.TarInfo(str(path.relative_to(out)))
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    data = held.getvalue()
    to.mkdir(parents=True, exist_ok=True)
    written = []
    for number, start in enumerate(range(0, len(data), VOLUME)):
        written.append(to / f"results.tar.xz.{number:02}")
        written[-1].write_bytes(data[start : start + VOLUME])
    return written


def _bare(path: Path, out: Path) -> bytes:
    """The content of a file without texts of problems and without paths."""
    data = path.read_bytes()
    if path.name.endswith(".jsonl.gz") or path.name in ("samples.jsonl", "verdicts.jsonl"):
        lines = gzip.decompress(data) if path.suffix == ".gz" else data
        rows = [json.loads(line) for line in lines.splitlines()]
        kept = [
            _bare_row(row, path.name == "samples.jsonl") for row in rows if not {"statement", "prompt"} & row.keys()
        ]
        data = b"".join(map(json_line, kept))
        return gzip.compress(data, mtime=0) if path.suffix == ".gz" else data
    for folder, name in ((out, "DIR"), (Path.home(), "~")):
        data = data.replace(str(folder).encode(), name.encode())
    return data


def _bare_row(row: dict[str, Any], sample: bool) -> dict[str, Any]:
    if sample:
        return {key: "" if key == "text" else value for key, value in row.items() if key not in ("ids", "prompt")}
    # which test failed stays of a message: scores by base tests are taken from it
    return {key: value.partition(": ")[0] + ": " if key.endswith("message") else value for key, value in row.items()}


def _small(out: Path, rollouts: int) -> list[Path]:
    found = [path for path in sorted(out.glob("*")) if path.suffix == ".md"]
    found += sorted(out.glob("logs/*.log"))
    found += [path for path in sorted((*out.glob("bench/*/*"), *out.glob("tried/*"))) if path.is_file()]
    for run in sorted((out / "runs").glob("*/")):
        found += [path for path in sorted(run.glob("*")) if path.suffix in (".toml", ".json", ".jsonl")]
        there = steps(run)
        wanted = {round(n * (len(there) - 1) / max(rollouts - 1, 1)) for n in range(rollouts)} if there else set()
        found += [run / "rollouts" / f"step_{there[n]:05}.jsonl.gz" for n in sorted(wanted)]
    return found
