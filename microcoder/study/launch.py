"""Launch the runs of studies, several at a time: finished runs stay, stopped ones are resumed.

Arms with the same settings share a run, even across studies. A run is named after the first of its arms:
`truncation.none.0`. An existing run is recognised by its settings, not by its name. So a run that another study has
made is not made again, and a run with other settings never counts.

    OUT/SCALE/plan.json                {"truncation/none/0": "context.medium.0"}: the run of each study, arm and seed
    OUT/SCALE/studies/truncation.toml  the studies' files, so that a report needs nothing else
    OUT/SCALE/runs/context.medium.0/   run directories of `microcoder train`
    OUT/SCALE/logs/context.medium.0.log
    OUT/SCALE/varied.jsonl             problems with answers in varied formats, if a study trains on them
    OUT/SCALE/judged/, styles/         further measurements of a run (policies.py, measures.py)
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..config import Config, ConfigError, load, settings, toml_value
from ..judge.sandbox import kernel
from ..runs import read_metrics
from ..runs.disk import release_lock, take_lock, write_whole
from .measures import styles
from .phrases import duration
from .plan import OUT, PLACE, Study, StudyError
from .policies import judge_runs, write_varied

Identity = Mapping[str, str]  # setting -> its value as text
Place = tuple[str, str, int]  # study, arm, seed
FREE = {  # settings that do not change the results of a run
    "train.folder",
    "train.name",
    "train.trackers",
    "train.save_every",
    "train.keep_checkpoints",
    "train.micro_batch_size",  # the gradient stays the same
    "rollout.memory",
    "grpo.preset",  # only names other settings, which are all compared
    "judge.on",
    "judge.workers",
    "judge.queue",
    "judge.remember",
}
PATHS = ("model.name", "data.train", "data.test")  # settings that may be paths inside the scale's folder
Tell = Callable[[str], None]


GRACE_S = 30.0  # from the request to stop until a process is killed: a training finishes its step and saves it


@dataclass
class Planned:
    """A planned run; several arms may share it."""

    name: str
    settings: tuple[str, ...]  # with placeholders, see `filled`
    after: str = ""  # name of the run whose final weights it starts from
    measurements: set[str] = field(default_factory=set)


def plan(
    studies: Sequence[Study], seeds: Sequence[int], there: Mapping[str, Identity] | None = None
) -> tuple[list[Planned], dict[Place, str]]:
    """Plan the runs, one seed after the other, and name the run of each arm and seed. `there`: existing runs."""
    there = there or {}
    named = {_key(identity): name for name, identity in sorted(there.items(), reverse=True)}
    if len({study.name for study in studies}) < len(studies):
        raise StudyError("two of the studies have the same name; rename a file, or leave one out")
    runs: dict[str, Planned] = {}
    where: dict[Place, str] = {}
    for seed in seeds:
        for study in studies:
            for arm in study.arms:
                own = f"{study.name}.{arm.name}.{seed}"
                after = where[study.name, arm.after, seed] if arm.after else ""
                chosen = [*arm.settings, *([f"model.name={{runs}}/{after}"] if after else []), f"train.seed={seed}"]
                identity = identify(load(None, filled(chosen, OUT, own)))
                name = named.setdefault(_key(identity), own)
                if there.get(own) == identity:
                    name = own
                elif name == own and own in there:
                    was = there[own]
                    changed = [f"{key} was {was[key]}, now {identity[key]}" for key in was if was[key] != identity[key]]
                    raise StudyError(
                        f"the run {own} is there, made with other settings: {'; '.join(changed)}; "
                        "name another folder with --out, or remove that run"
                    )
                run = runs.setdefault(name, Planned(name, tuple(chosen), after))
                run.measurements |= set(study.measurements)
                where[study.name, arm.name, seed] = name
    return list(runs.values()), where


def filled(settings: Sequence[str], out: str | Path, name: str) -> list[str]:
    """Fill in the placeholders in the settings of a run, for `microcoder train`; `out` is the scale's folder."""
    paths = {PLACE: f"{out}/varied.jsonl", "{runs}": f"{out}/runs", OUT: str(out)}
    for gap, path in paths.items():
        settings = [setting.replace(gap, path) for setting in settings]
    return [*settings, f"train.folder={out}/runs", f"train.name={name}"]


def identify(config: Config) -> Identity:
    """Return the settings that a run's results depend on, independent of its folder."""
    found = {key: toml_value(attrgetter(key)(config)) for key, _ in settings() if key not in FREE}
    home = f'"{Path(config.train.folder).parent}/'
    return found | {key: found[key].replace(home, f'"{OUT}/') for key in PATHS}


def missing(studies: Sequence[Study], out: Path) -> list[Path]:
    """Return the files in the scale's folder that the settings of studies name, and that are not there."""
    arms = [dict(setting.split("=", 1) for setting in arm.settings) for study in studies for arm in study.arms]
    named = {value for arm in arms for value in arm.values() if value.startswith(OUT)}  # a later setting wins
    return [path for path in sorted(Path(value.replace(OUT, str(out))) for value in named) if not path.exists()]


def shared(where: Mapping[Place, str]) -> list[str]:
    """List the arms that share their runs."""
    served: dict[str, list[str]] = {}
    for (study, arm, _), name in where.items():
        served.setdefault(name, []).append(f"{study}/{arm}")
    alike = dict.fromkeys(", ".join(arms) for arms in served.values() if len(arms) > 1)
    return [f"{arms}: the same settings, so that one run serves them all" for arms in alike]


def _key(identity: Identity) -> str:
    return "\n".join(identity.values())


@dataclass
class StudyOutcome:
    """Names of runs by outcome: finished, failed, left."""

    finished: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # stopped or never started


def planned(studies: Sequence[Study], seeds: Sequence[int], out: Path) -> tuple[list[Planned], dict[Place, str]]:
    """Plan the runs of studies; `out` is the scale's folder, whose existing runs are used."""
    there: dict[str, Identity] = {}
    for path in sorted(out.glob("runs/*/config.toml")):
        try:
            there[path.parent.name] = identify(load(path))
        except ConfigError as error:
            raise StudyError(f"{error}; name another folder with --out, or remove {path.parent}") from None
    return plan(studies, seeds, there)


def run_studies(
    studies: Sequence[Study], seeds: Sequence[int], out: Path, together: int, stop_after: float, tell: Tell
) -> StudyOutcome:
    """Make the missing runs. `tell` is called with a line as each one ends. Raise ModuleNotFoundError without torch."""
    if find_spec("torch") is None:
        raise ModuleNotFoundError("the runs of a study need the extra `train`", name="torch")
    out = out.resolve()  # it becomes part of settings, and one folder can be written in many ways
    deadline = time.monotonic() + stop_after
    runs, where = planned(studies, seeds, out)
    (out / "studies").mkdir(parents=True, exist_ok=True)
    held = take_lock(out, "name another folder with --out")
    try:
        path = out / "plan.json"
        known = json.loads(path.read_bytes()) if path.exists() else {}  # keep what other commands have planned
        known |= {"/".join(map(str, place)): name for place, name in where.items()}
        write_whole(path, json.dumps(known, indent=1, sort_keys=True).encode() + b"\n")
        for study in studies:
            write_whole(out / "studies" / f"{study.name}.toml", study.path.read_bytes())
        _refuse_orphans(runs, out)
        data = [load(None, list(run.settings)).data for run in runs]
        if sizes := [each.train_size for each in data if each.train == PLACE]:
            write_varied(out / "varied.jsonl", max(sizes))
        for line in shared(where):
            tell(line)
        outcome = StudyOutcome([run.name for run in runs if finished(out / "runs" / run.name)])
        todo = [run for run in runs if run.name not in outcome.finished]
        tell(f"{len(todo)} runs to make, {len(outcome.finished)} finished before; {together} at a time")
        _make(todo, out, together, deadline, tell, outcome)
        _measure([run for run in runs if run.name in outcome.finished], out, deadline, tell)
    finally:
        release_lock(held)
    return outcome


def _refuse_orphans(runs: Sequence[Planned], out: Path) -> None:
    """Refuse a finished run whose first weights were those of a run that was removed: another may take its name."""
    for run in runs:
        if run.after and finished(out / "runs" / run.name) and not finished(out / "runs" / run.after):
            raise StudyError(
                f"the run {run.name} continued from the weights of {run.after}, which is not there or not finished; "
                f"remove {out / 'runs' / run.name} too, and both are made"
            )


def _make(todo: list[Planned], out: Path, together: int, deadline: float, tell: Tell, outcome: StudyOutcome) -> None:
    """Make the runs, several at a time; a run that starts from another's weights waits until that one is finished.

    A run that fails after some steps is resumed once, after the others: if several share a GPU, it may only have run
    out of memory that the others held.
    """
    planned = {run.name: run for run in todo}
    times: list[float] = []
    again: list[str] = []

    def job(run: Planned) -> Command:
        for folder in ("judged", "styles"):  # what was measured of a run that was there before, and was removed
            (out / folder / f"{run.name}.json").unlink(missing_ok=True)
        return Command(run.name, command(run, out), out / "logs" / f"{run.name}.log")

    def ended(last: Command, status: int, seconds: float) -> list[Command]:
        name, folder = last.name, out / "runs" / last.name
        times.append(seconds)
        if status or not finished(folder):
            first = name not in again and len(read_metrics(folder)) > 1
            (again if first else outcome.failed).append(name)
            words = "it is resumed after the others; " if first else ""
            tell(f"{name}: failed with exit status {status}; {words}the end of {last.log}:\n{tail(last.log)}")
            return [job(planned[name])] if first else []
        for file in folder.glob("checkpoints/*/optimizer.pt"):
            file.unlink()  # two thirds of a checkpoint, and useless after a run is finished
        outcome.finished.append(name)
        left = len(todo) + len(again) - len(times)
        ahead = f"{left} left, about {duration(left * sum(times) / len(times) / together)}" if left else "the last one"
        tell(f"{name}: {seconds:.0f} s, {_gain(folder)}; {ahead}")
        return []

    def waits(name: str) -> bool:
        after = planned[name].after
        return bool(after) and after not in outcome.finished

    seconds_left = deadline - time.monotonic()
    left = side_by_side(map(job, todo), together, seconds_left, ended, lambda each: not waits(each.name))
    outcome.left += [each.name for each in left]
    for name in filter(waits, outcome.left):
        tell(f"{name}: not started: it continues from {planned[name].after}, which is not finished")


def command(run: Planned, out: Path) -> list[str]:
    resume = ["--resume"] if (out / "runs" / run.name / "config.toml").exists() else []
    return [sys.executable, "-m", "microcoder.cli", "train", *filled(run.settings, out, run.name), *resume]


def finished(folder: Path) -> bool:
    return bool(_summary(folder).get("status") == "finished")


def _measure(runs: list[Planned], out: Path, deadline: float, tell: Tell) -> None:
    for run in (run for run in runs if "styles" in run.measurements):
        path = out / "styles" / f"{run.name}.json"
        path.parent.mkdir(exist_ok=True)
        if not path.exists() and time.monotonic() < deadline:
            write_whole(path, json.dumps(styles(out / "runs" / run.name)).encode() + b"\n")
    results = out / "judged"
    todo = [run.name for run in runs if "judging" in run.measurements and not (results / f"{run.name}.json").exists()]
    if todo and time.monotonic() < deadline:
        tell(f"{len(todo)} runs to judge the programs of, under every policy")
        for name in judge_runs([out / "runs" / name for name in todo], out / "varied.jsonl", results):
            tell(f"{name}: judged")
            if time.monotonic() >= deadline:
                break


def _summary(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / "summary.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def _gain(folder: Path) -> str:
    before, after = (_summary(folder).get(name) for name in ("before", "after"))
    return f"accuracy {before['accuracy']:.3f} -> {after['accuracy']:.3f}" if before and after else "not evaluated"


@dataclass(eq=False)
class Command:
    name: str
    command: list[str]
    log: Path


def side_by_side(
    jobs: Iterable[Command],
    together: int,
    stop_after: float,
    ended: Callable[[Command, int, float], Sequence[Command] | None],
    ready: Callable[[Command], bool] = lambda _: True,
) -> list[Command]:
    """Run commands in order, `together` at a time; a command that is not ready is skipped for now.

    As each one ends, `ended(job, exit status, seconds)` is called; a job that it returns is run after the others.

    Return the jobs that were stopped or never started. Each has one thread, unless OMP_NUM_THREADS is set: so results
    do not depend on how many run at a time, and threads that wait for each other on busy cores are slow.

    Commands end with this process: they get SIGTERM if it gets Ctrl-C or SIGTERM, at which a training saves its step,
    and the system kills them if it is killed. So the same commands can be started again at once.
    """
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONUNBUFFERED": "1"}
    deadline = time.monotonic() + stop_after
    waiting, running = list(jobs), dict[Command, tuple[subprocess.Popen[bytes], float]]()
    with _signals():
        try:
            while (waiting or running) and time.monotonic() < deadline:
                while len(running) < together and (job := next(filter(ready, waiting), None)):
                    waiting.remove(job)
                    running[job] = _start(job, environment), time.monotonic()
                if not running:
                    break  # the others will never be ready
                time.sleep(0.1)
                for job, (process, started) in list(running.items()):
                    if process.poll() is not None:
                        del running[job]
                        waiting.extend(ended(job, process.returncode, time.monotonic() - started) or ())
            return [*running, *waiting]
        finally:
            _stop([process for process, _ in running.values()])


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Stop properly at SIGTERM and SIGINT; without this, processes started with `&` in a shell ignore SIGINT."""
    handlers = {signal.SIGTERM: lambda *_: sys.exit(143), signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _start(job: Command, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with open(job.log, "ab") as log:
        return subprocess.Popen(
            job.command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # only we get a terminal's Ctrl-C: a second one would interrupt its ending
            preexec_fn=functools.partial(kernel.die_with_parent, os.getpid()),
        )


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + GRACE_S
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        process.kill()
        process.wait()


def tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
