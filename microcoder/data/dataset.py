"""Data sets: build one from data.toml, open one that was built, and read kept and dropped problems.

    out/dataset/problems.parquet   ours: `microcoder train one-gpu data.train=out/dataset/problems.parquet`
    out/dataset/trl.parquet        prompt (a conversation), id, problem (JSON)
    out/dataset/verl.parquet       data_source, prompt, ability, reward_model, extra_info
    out/dataset/README.md          a card: counts, sources, licences, how it was made
    out/report.html                counts, pictures, and drops to check by eye

`build` runs the missing steps; `Dataset` opens the results.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..config import load_as, to_toml, usable_cores
from ..files import writable, write_problems
from ..prompts import messages, prompt
from ..runs.disk import RunError, release_lock, take_lock
from ..schema import Problem, nearest
from .collection import collect_all
from .difficulty.select import known_hardness
from .parts import OUTSIDE, Counts, dropped_parts, forget, kept_parts, read_losses, read_records
from .pipeline import STAGES, ClusterCores, PipelineStep, StepProgress, chained, run
from .record import DataError, Record, package
from .report import Done, page, steps_of
from .settings import Pipeline
from .steps import check, steps_for
from .verify.references import UNVERIFIED

BATCH = 500  # rows in memory
CLEANING = ("ftfy", "markdownify", "py3langid", "selectolax")  # packages that the cleaning steps need
LINES = 30  # lines of a statement that are shown
FILES = {"problems": "problems.parquet", "trl": "trl.parquet", "verl": "verl.parquet", "card": "README.md"}
EXAMPLE = '[[collect.sources]]\npath = "mbpp.jsonl"'


class Drop(NamedTuple):
    """A dropped problem, as it was before the step."""

    problem: Problem
    reason: str  # one word, such as near_duplicate
    detail: str  # what was found
    step: str  # filter/2-duplicates


class Dataset:
    """A data set in the folder of a run of the pipeline.

    folder     the folder of the run
    problems   the problems that were kept
    dropped    the problems that were dropped, each with its reason
    report     a row for each step: step, seen, kept, dropped by reason, seconds
    paths      the files that were written: problems, trl, verl, card, report
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Open the folder of a run. Raise DataError if it holds no finished step."""
        self.folder = Path(folder)
        self.steps = steps_of(self.folder)
        if not self.steps:
            raise DataError(f"{folder} holds no finished step; make some: microcoder data run data.toml")

    @cached_property
    def problems(self) -> list[Problem]:
        return list(problems(kept_parts(self.steps[-1].folder)))

    @cached_property
    def dropped(self) -> list[Drop]:
        return [
            Drop(record.problem, loss.reason, loss.detail, step.name)
            for step in self.steps
            for part in dropped_parts(step.folder)
            for record, loss in read_losses(part)
            if loss.reason != OUTSIDE
        ]

    @property
    def report(self) -> list[dict[str, Any]]:
        return [
            {"step": step.name, "seen": step.counts.seen, "kept": step.counts.kept,
             "dropped": dict(step.counts.dropped.most_common()), "seconds": step.seconds}
            for step in self.steps
        ]  # fmt: skip

    @property
    def reasons(self) -> Counter[str]:
        """The number of dropped problems by reason."""
        return sum((step.counts.dropped for step in self.steps), Counter())

    @property
    def paths(self) -> dict[str, Path]:
        named = {name: self.folder / "dataset" / file for name, file in FILES.items()}
        named["report"] = self.folder / "report.html"
        return {name: path for name, path in named.items() if path.exists()}

    @property
    def finished(self) -> bool:
        """Whether all stages are done and the files are written."""
        return self.steps[-1].name.startswith(STAGES[-1]) and "report" in self.paths

    @property
    def scored(self) -> bool:
        """Whether the problems have a difficulty, from a predictor, an endpoint or a model's pass rates."""
        records = (record for part in kept_parts(self.steps[-1].folder) for record in read_records(part))
        return any(known_hardness(record) is not None for record in islice(records, 1))

    @property
    def unverified(self) -> int:
        """The number of kept problems without a solution that could be run, so that their tests are not checked."""
        records = (record for part in kept_parts(self.steps[-1].folder) for record in read_records(part))
        return sum(UNVERIFIED in record.problem.tags for record in records)

    def __len__(self) -> int:
        return self.steps[-1].counts.kept

    def __repr__(self) -> str:
        return f"Dataset({str(self.folder)!r}: {len(self):,} problems kept, {self.reasons.total():,} dropped)"


# --- building


def build(
    config: str | os.PathLike[str],
    changes: Sequence[str] = (),
    *,
    only: str = STAGES[-1],
    limit: int = 0,
    ray: str = "",
    progress: StepProgress | None = None,
) -> Dataset:
    """Build a training set from the file `config` and `changes` (section.key=value); resume a stopped build.

    only       go no further than this stage: collect, process, filter or verify
    limit      most problems of each source, in a separate folder
    ray        the address of a Ray cluster for all stages but collect; "auto": the one this machine belongs to
    progress   is called with each step
    """
    if only not in STAGES:
        raise DataError(f"there is no stage {only!r}; the stages are {', '.join(STAGES)}")
    _read_config(Path(config))
    settings = load_as(Pipeline, Path(config), changes)
    if limit:  # a trial: the results of a whole run stay
        folder = f"{Path(settings.output.folder)}-limit-{limit}"  # as a path, "out/" is "out"
        settings = load_as(Pipeline, Path(config), [*changes, f"collect.limit={limit}", f"output.folder={folder}"])
    if not settings.collect.sources:
        raise DataError(f"{config} names no sources; add some:\n{EXAMPLE}")
    text = to_toml(settings, comments=False)
    if ray:  # the place of the work is no setting of the data set
        settings = settings.model_copy(update={"judge": settings.judge.model_copy(update={"on": f"ray:{ray}"})})
    return make(settings, progress or Unwatched(), only, text, ray)


def make(settings: Pipeline, progress: StepProgress, only: str = STAGES[-1], text: str = "", ray: str = "") -> Dataset:
    """Run all missing steps up to the stage `only`, and write the files, with `text` in the card."""
    check(settings, only)
    out = Path(settings.output.folder)
    if not out.exists():
        out.mkdir(parents=True)
    try:
        lock = take_lock(out, "name another folder: output.folder=...")
    except RunError as error:
        raise DataError(str(error)) from None
    try:
        return _made(settings, out, progress, only, text, ray)
    except BrokenProcessPool:
        raise DataError(
            "a worker process was killed, perhaps because memory ran out; what is finished stays, and the same command "
            "goes on from there, with less memory if fewer work at a time: output.workers=1"
        ) from None
    finally:
        release_lock(lock)


def _made(settings: Pipeline, out: Path, progress: StepProgress, only: str, text: str, ray: str) -> Dataset:
    workers = settings.output.workers or usable_cores()
    if only != STAGES[0]:
        for name in CLEANING:  # a step would report a missing one only after minutes
            if find_spec(name) is None:
                package(name)
    steps = steps_for(settings, out)
    parts, digest = collect_all(out, settings.collect.sources, settings.collect.limit, workers, progress)
    wanted = [step for step in steps if STAGES.index(step.stage) <= STAGES.index(only)]
    parts = run(out, wanted, parts, digest, ClusterCores(ray, out) if ray else workers, progress)
    forget_others(out, steps, digest)  # only now, so that wrong settings lose nothing
    if len(wanted) == len(steps):
        write_dataset(out / "dataset", parts, steps_of(out), text)
        (out / "report.html").write_text(page(out), encoding="utf-8")
    return Dataset(out)


def forget_others(out: Path, steps: list[PipelineStep], digest: str) -> None:
    """Remove the folders of steps that ran with other settings."""
    digests = {}
    for step in steps:
        digest = digests[out / step.folder] = chained(digest, step)
    for stage in STAGES[1:]:
        for folder in (out / stage).glob("*/"):
            forget(folder, digests.get(folder))


class Unwatched:
    """Progress that is not shown."""

    def step(self, name: str, parts: int) -> None: ...
    def part(self, counts: Counts) -> None: ...
    def done(self, name: str, counts: Counts, seconds: float, again: bool) -> None: ...


def _read_config(path: Path) -> None:
    """Raise DataError unless the file exists and is TOML."""
    about = f"A data file is TOML that names the sources of problems, at least:\n{EXAMPLE}\n"
    about += "To begin with all settings and their meaning: microcoder data config > data.toml"
    try:
        tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}. {about}") from None
    except UnicodeDecodeError:
        raise DataError(f"cannot read {path}: it is not UTF-8 text. {about}") from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is not TOML: {error}. {about}") from None


# --- files


def write_dataset(folder: Path, parts: list[Path], steps: list[Done], settings: str) -> dict[str, int]:
    """Write all files and return the number of problems by source."""
    folder.mkdir(parents=True, exist_ok=True)
    sources: Counter[str] = Counter()
    licences: Counter[str] = Counter()

    def counted() -> Iterator[Problem]:
        for problem in problems(parts):
            sources[problem.source or "unknown"] += 1
            licences[problem.licence or "unknown"] += 1
            yield problem

    write_problems(folder / "problems.parquet", counted())
    _write(folder / "trl.parquet", problems(parts), for_trl)
    _write(folder / "verl.parquet", problems(parts), for_verl)
    (folder / "README.md").write_text(card(sources, licences, steps, settings), encoding="utf-8")
    return dict(sources)


def problems(parts: Iterable[Path]) -> Iterator[Problem]:
    """Yield the problems of parts, with the measured hardness as difficulty score, for `data.difficulty`."""
    for part in parts:
        for record in read_records(part):
            if (hard := known_hardness(record)) is not None:
                record.problem.difficulty_score = round(hard, 4)
            yield record.problem


def for_trl(problem: Problem, number: int) -> dict[str, Any]:
    """Return a row for TRL: `prompt`, and the columns that a reward function needs."""
    return {"id": problem.id, "prompt": messages(problem), "problem": _json(problem)}


def for_verl(problem: Problem, number: int) -> dict[str, Any]:
    """Return a row for verl's RLHF dataset."""
    hard = math.nan if problem.difficulty_score is None else float(problem.difficulty_score)  # a column has one type
    return {
        "data_source": problem.source or "microcoder",
        "prompt": messages(problem),
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": _json(problem)},
        "extra_info": {"id": problem.id, "index": number, "split": "train", "difficulty": hard},
    }


def card(sources: Counter[str], licences: Counter[str], steps: list[Done], settings: str) -> str:
    """Return the card of the data set: counts, sources, licences and steps, in the format of the hub."""
    total = sources.total()
    size = next(
        (name for most, name in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")) if total < most),
        "100K<n<1M",
    )
    lines = ["---", "task_categories:", "- text-generation", "tags:", "- code", "- reinforcement-learning"]
    lines += ["size_categories:", f"- {size}", "---", "", "# Programming problems with tests", ""]
    lines += [f"{total:,} problems, made by `microcoder data run` from the sources below.", ""]
    lines += ["| source | problems |", "|---|---|", *(f"| {name} | {n:,} |" for name, n in sources.most_common()), ""]
    lines += ["| licence | problems |", "|---|---|", *(f"| {name} | {n:,} |" for name, n in licences.most_common()), ""]
    lines += ["| step | kept | dropped |", "|---|---|---|"]
    for step in steps:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in step.counts.dropped.most_common())
        lines.append(f"| {step.name} | {step.counts.kept:,} | {reasons} |")
    return "\n".join([*lines, "", "The settings:", "", "```toml", settings.strip(), "```", ""])


def _write(path: Path, rows: Iterator[Problem], layout: Callable[[Problem, int], dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = path.with_name(f".{path.name}.part")
    writer = None
    number = 0
    try:
        while batch := list(islice(rows, BATCH)):
            table = pa.Table.from_pylist([writable(layout(problem, number + n)) for n, problem in enumerate(batch)])
            number += len(batch)
            writer = writer or pq.ParquetWriter(part, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:  # no problem is left, so an old file must go
        path.unlink(missing_ok=True)
    else:
        part.replace(path)


def _json(problem: Problem) -> str:
    return json.dumps(problem.to_dict(), ensure_ascii=False)


# --- records to read


def show(
    out: str | Path, reason: str | None = None, step: str | None = None, ident: str | None = None, count: int = 5
) -> list[str]:
    """Show at most `count` records of a run as text: kept, dropped for a reason, of a step, or the one with an id."""
    steps = Dataset(out).steps
    if step is not None:
        names = [each.name for each in steps]
        if step not in names:
            raise DataError(f"there is no step {step!r}{nearest(step, names) or '; there are ' + ', '.join(names)}")
        steps = [each for each in steps if each.name == step]
    if ident is not None:
        return _one(steps, ident)
    if reason is not None:
        return _dropped(steps, reason, count)
    last = steps[-1]
    records = (record for part in kept_parts(last.folder) for record in read_records(part))
    shown = [text(record, f"kept by {last.name}") for record in islice(records, count)]
    if not shown:
        raise DataError(f"{last.name} has kept nothing; see what was dropped: --dropped REASON")
    return shown


def _reasons(step: Done) -> set[str]:
    return {*step.counts.dropped, *([OUTSIDE] if step.counts.outside else [])}


def _dropped(steps: list[Done], reason: str, count: int) -> list[str]:
    known = {name for step in steps for name in _reasons(step)}
    if reason not in known:
        hint = nearest(reason, known) or f"; the reasons are {', '.join(sorted(known))}"
        raise DataError(f"nothing was dropped as {reason!r}{hint}")
    shown: list[str] = []
    for step in steps:
        for part in dropped_parts(step.folder) if reason in _reasons(step) else []:
            for record, loss in read_losses(part):
                if loss.reason == reason and len(shown) < count:
                    shown.append(text(record, f"dropped by {step.name}: {loss}"))
    return shown


def _one(steps: list[Done], ident: str) -> list[str]:
    for step in reversed(steps):
        for part in kept_parts(step.folder):
            for record in read_records(part):
                if record.problem.id == ident:
                    return [text(record, f"kept by {step.name}")]
        for part in dropped_parts(step.folder):
            for record, loss in read_losses(part):
                if record.problem.id == ident:
                    return [text(record, f"dropped by {step.name}: {loss}")]
    raise DataError(f"no step has seen a problem {ident!r}")


def _forged(problem: Problem) -> list[str]:
    """What the forge says of a problem: why it stays as it is, or where its tests come from."""
    about = problem.extra.get("forge")
    if not isinstance(about, dict):
        return []
    if "reason" in about:
        return [f"forge: no tests added, {about['reason']}: {about.get('detail', '')}"]
    makers = Counter(test["by"] for test in about["tests"])
    said = [f"forge: inputs by {about['bounded_by']}: " + ", ".join(f"{by} {n}" for by, n in makers.most_common())]
    left = ", ".join(f"{reason} {n}" for reason, n in about["left_out"].items())
    said += [f"forge: inputs left out: {left}"] if left else []
    said += [f"forge: several right answers: {about['checker']}"] if about["checker"] else []
    return said + [f"forge: {text}" for text in (*about["contradictions"], *about["refused"])]


def text(record: Record, fate: str) -> str:
    problem = record.problem
    try:
        asked = prompt(problem)
    except (IndexError, AttributeError):  # not complete enough for one
        asked = problem.statement
    lines = asked.splitlines()
    more = [f"... {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    count = len(problem.tests) or len(problem.asserts)
    facts: dict[str, Any] = {"kind": problem.kind, "tests": count, "solutions": len(problem.solutions)}
    facts |= {"difficulty label": problem.difficulty, **record.notes}
    known = ", ".join(f"{name} {value}" for name, value in facts.items() if value not in ("", None))
    done = [f"  {line}" for line in [*problem.lineage, *_forged(problem)]]
    return "\n".join([f"== {problem.id}: {fate}", known, *done, "", *lines[:LINES], *more, ""])
