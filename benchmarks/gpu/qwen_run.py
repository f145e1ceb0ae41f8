"""Trainings and scorings side by side until all is done or the time is up.

1. `--together` trainings at a time, and one scoring beside them; where no training is left, more scorings.
2. A training is begun only if it can be expected to end, and to be scored, within the budget, going by those that have
   ended. At the end of the budget what is under way is told to stop; its steps so far stay on the disk.
3. When all runs of the grid have ended, the best of them on validation says with which learning rate and temperature
   the others are made.
4. What is finished is never made again; a run that was stopped goes on from its checkpoint, or else begins anew.
5. What fails is tried once more: a run that was out of memory with passes half as large, which changes nothing but
   memory. Where three runs fail and none ends well, nothing more is begun.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu import qwen_plan as plan
from benchmarks.gpu.qwen_plan import BASE, Entry, Scoring
from microcoder.runs import latest_checkpoint, read_metrics
from microcoder.study.launch import Command, side_by_side, tail

SCORING_S = 60.0  # a guess, until one has ended
SLACK_S = 10.0


class Task(Command):
    """A job that knows what it is for."""

    what: Entry | Scoring

    @property
    def trains(self) -> bool:
        return isinstance(self.what, Entry)


class Experiment:
    def __init__(self, args: Namespace) -> None:
        self.args, self.out = args, args.out
        self.deadline = time.monotonic() + args.budget
        self.begun: set[Task] = set()
        self.waiting: list[Task] = []
        self.seconds: dict[str, list[float]] = {"step": [], "test": [], "humaneval": []}
        self.small: set[str] = set()  # runs that need smaller passes
        self.tried: set[str] = set()  # what has failed once
        self.failed: list[str] = []  # what has failed twice
        self.chosen = False

    def run(self) -> int:
        """0 if nothing failed; what the time did not suffice for is no failure."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.waiting = self._scorings(BASE)
        for entry in [*plan.grid(), *plan.corners()[:1]]:
            self.waiting += self._training(entry)
        self.waiting += self._follow_up()
        self._say(f"{len(self.waiting)} jobs to begin with, {self.args.budget:.0f} s")
        try:
            left = side_by_side(list(self.waiting), self.args.together + 1, self.args.budget, self._ended, self._ready)
        finally:
            self._report()
        for job in left:
            self._say(f"{job.name}: not finished; the same command goes on with it", event="left", job=job.name)
        self._say("not all is done" if left else "all is done")
        return 1 if self.failed else 0

    # --- what there is to do

    def _training(self, entry: Entry) -> list[Task]:
        """The run, or what is left of its scoring."""
        folder = self.out / "runs" / entry.name
        if finished(folder):
            return self._scorings(entry.name)
        if (folder / "config.toml").exists() and latest_checkpoint(folder) is None:
            shutil.rmtree(folder)
        micro = self.args.micro // (2 if entry.name in self.small else 1)
        resume = ["--resume"] if folder.exists() else []
        command = ["train", *plan.settings(entry, self.args, micro), *resume]
        return [self._task(f"train {entry.name}", command, entry)]

    def _scorings(self, model: str) -> list[Task]:
        todo = []
        for scoring in plan.scorings(model):
            if not (plan.bench_folder(scoring, self.out) / "scores.json").exists():
                todo.append(self._task(f"score {scoring.name}", ["bench", *plan.bench(scoring, self.args)], scoring))
        if not todo and model != BASE and self.args.drop_weights:
            shutil.rmtree(self.out / "runs" / model / "checkpoints", ignore_errors=True)
        return todo

    def _follow_up(self) -> list[Task]:
        """The runs that wait for the choice, once it can be made."""
        ended = [entry for entry in plan.grid() if finished(self.out / "runs" / entry.name)]
        under_way = {task.what for task in [*self.waiting, *self.begun]} & set(plan.grid())
        if self.chosen or not ended or under_way:
            return []
        self.chosen = True
        best = max(ended, key=lambda entry: validation(self.out / "runs" / entry.name))
        self._say(
            f"chosen on validation: lr {best.lr:g}, temperature {best.temperature:g}", event="chosen", job=best.name
        )
        return [task for entry in plan.after(best) for task in self._training(entry)]

    def _task(self, name: str, words: Sequence[str], what: Entry | Scoring) -> Task:
        command = [sys.executable, "-m", "microcoder.cli", *words]
        task = Task(name, command, self.out / "logs" / f"{name.replace(' ', '-')}.log")
        task.what = what
        return task

    # --- when

    def _ready(self, job: Command) -> bool:
        """Asked right before a job is begun."""
        assert isinstance(job, Task)
        training = sum(task.trains for task in self.begun)
        if len(self.failed) >= 3 and not self.seconds["step"]:
            ready = False
        elif isinstance(job.what, Entry):
            ready = training < self.args.together and self._fits(job.what)
        else:  # one at a time, while there is something to train
            first = min((task for task in self.waiting if not task.trains), key=lambda task: urgency(task.what))
            trains_next = any(self._fits(task.what) for task in self.waiting if isinstance(task.what, Entry))
            ready = job is first and (len(self.begun) == training or not trains_next)
        if ready:
            self.waiting.remove(job)
            self.begun.add(job)
            self._say(f"{job.name}: begun", event="begun", job=job.name)
        return ready

    def _fits(self, entry: Entry) -> bool:
        if not self.seconds["step"]:
            return True
        training = self.args.steps * entry.cost * max(self.seconds["step"][-self.args.together :])
        scoring = max(self.seconds["test"], default=SCORING_S)
        return time.monotonic() + training + scoring + SLACK_S < self.deadline

    def _ended(self, job: Command, status: int, seconds: float) -> list[Task]:
        assert isinstance(job, Task)
        self.begun.discard(job)
        follow: list[Task] = []
        if isinstance(job.what, Entry):
            if finished(self.out / "runs" / job.what.name):
                self.seconds["step"].append(seconds / self.args.steps / job.what.cost)
                slim(self.out / "runs" / job.what.name)
                self._say(f"{job.name}: {words(self.out / 'runs' / job.what.name)}, {seconds:.0f} s", "ended", job.name)
                follow = self._scorings(job.what.name)
            else:
                follow = self._failed(job, status)
        elif (plan.bench_folder(job.what, self.out) / "scores.json").exists():
            self.seconds[job.what.suite].append(seconds)
            self._say(f"{job.name}: {seconds:.0f} s", "ended", job.name)
            self._scorings(job.what.model)  # drops the weights after the last
        else:
            follow = self._failed(job, status)
        self.waiting += follow
        more = self._follow_up()
        self.waiting += more
        self._report()
        return [*more, *follow]

    def _failed(self, job: Task, status: int) -> list[Task]:
        end = tail(job.log)
        self._say(f"{job.name}: FAILED with exit status {status}; the end of {job.log}:\n{end}", "failed", job.name)
        if job.name in self.tried:
            self.failed.append(job.name)
            return []
        self.tried.add(job.name)
        if isinstance(job.what, Scoring):
            return [job]
        if "out of memory" in end.lower():
            self.small.add(job.what.name)
        return self._training(job.what)

    def _report(self) -> None:
        from benchmarks.gpu.qwen_report import report

        try:
            (self.out / "report.md").write_text(report(self.out))
        except Exception as error:  # a table that cannot be made must not end the runs
            self._say(f"no report: {error!r}")

    def _say(self, text: str, event: str = "", job: str = "") -> None:
        print(text, flush=True)
        with open(self.out / "events.jsonl", "a") as file:
            line = {"time": round(time.time(), 1), "event": event or "note", "job": job, "text": text}
            file.write(json.dumps(line) + "\n")


def urgency(what: Any) -> tuple[int, int]:
    """The test problems first, then HumanEval, then what nobody waits for."""
    return int(what.tries > 4), int(what.suite != "test")


def finished(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / "summary.json").read_text())["status"] == "finished")
    except (OSError, ValueError, KeyError):
        return False


def validation(folder: Path) -> float:
    """Accuracy at the last evaluation."""
    return [line["test_accuracy"] for line in read_metrics(folder) if line.get("test_accuracy") is not None][-1]


def slim(folder: Path) -> None:
    """The optimizer's state is two thirds of a checkpoint, and a finished run needs it no more."""
    for file in folder.glob("checkpoints/*/optimizer.pt"):
        file.unlink()


def words(folder: Path) -> str:
    summary = json.loads((folder / "summary.json").read_text())
    before, after = summary["before"], summary["after"]
    return f"validation {before['accuracy']:.3f} -> {after['accuracy']:.3f}, {summary['steps']} steps"
