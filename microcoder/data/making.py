"""Settings -> the steps of the four stages, and a whole run of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import islice, tee
from pathlib import Path
from typing import Any

from ..config import JudgeConfig, usable_cores
from ..judge import Judge
from .collecting import collect_all, layout_of, read
from .difficulty.calibrate import Calibration, calibrate, calibrated
from .difficulty.predictor import Predictor, predict
from .difficulty.select import BY_SCORE, BY_SUCCESS, Plan, hardness, plan, selected
from .difficulty.training import labelled, train
from .endpoint import Endpoint
from .filter.contamination import EvaluationSet, contamination
from .filter.duplicates import Index
from .filter.quality import quality
from .filter.relevance import relevance
from .filter.signature import signature
from .filter.window import dates, licences
from .output import write_dataset
from .parts import read_records
from .pipeline import STAGES, Observer, Step, run
from .process import process
from .record import Dropped, Record
from .report import page, steps_of
from .settings import EndpointConfig, Pipeline, Source
from .verify import Options, verify


class NotReady(ValueError):
    """What was asked for needs something that is not there yet; the message says how to get it."""


def make(settings: Pipeline, observer: Observer, only: str | None = None, text: str = "") -> dict[str, int] | None:
    """Everything that is not done yet. Returns the kept problems by source; None where only a stage was asked for."""
    out = Path(settings.output.folder)
    workers = settings.output.workers or usable_cores()
    steps = steps_for(settings, out)
    if only is not None:
        _need_before(out, only, steps)
        steps = [step for step in steps if STAGES.index(step.stage) <= STAGES.index(only)]
    parts, digest = collect_all(out, settings.collect.sources, settings.collect.limit, workers, observer)
    parts = run(out, steps, parts, digest, workers, observer)
    if only is not None and only != STAGES[-1]:
        return None
    done = steps_of(out)
    kept = write_dataset(out / "dataset", parts, done, text)
    (out / "report.html").write_text(page(out), encoding="utf-8")
    return kept


def steps_for(settings: Pipeline, out: Path) -> list[Step]:
    """What the settings ask for, in order."""
    wanted, hard = settings.filter, settings.difficulty
    asked = settings.endpoint.model_dump() if settings.endpoint.base_url else None
    steps = [
        Step(
            "process", "1-clean",
            {"most": settings.process.most_tests, "test_kb": settings.process.test_kb, "endpoint": asked},
            each=clean,
        ),
        Step(
            "filter", "1-text",
            {"after": wanted.after, "before": wanted.before, "unknown_date": wanted.unknown_date,
             "allow": wanted.licences, "unknown_licence": wanted.unknown_licence},
            each=worth_reading,
        ),
        Step("filter", "2-duplicates", {"similarity": wanted.similarity}, work=signed, decide=new_ones),
    ]  # fmt: skip
    if wanted.evaluation:
        sources = [source.model_dump() for source in wanted.evaluation]
        steps.append(
            Step("filter", "3-contamination", {"sources": sources, "overlap": wanted.overlap}, each=uncontaminated)
        )
    if hard.by != "none":
        file = hard.predictor or str(out / "filter" / "predictor.json")
        options = {"predictor": file, "given": bool(hard.predictor)}
        options |= {"endpoint": asked if hard.by == "endpoint" else None}
        steps.append(Step("filter", "4-difficulty", options, each=scored, prepare=learned))
        if hard.calibrate:
            options = {"model": hard.calibrate, "attempts": hard.attempts, "problems": hard.calibrate_on}
            options |= {"judge": _judging(settings.judge), "file": str(out / "filter" / "calibration.json")}
            steps.append(Step("filter", "5-calibrate", options, each=with_success, prepare=measured))
        if hard.floor or hard.target:
            options = {"floor": hard.floor, "target": hard.target, "by_success": bool(hard.calibrate)}
            steps.append(Step("filter", "6-select", options, each=chosen, prepare=planned))
    options = {"mutants": settings.verify.mutants, "alive": settings.verify.alive}
    options |= {"unverified": settings.verify.unverified, "judge": _judging(settings.judge), "endpoint": asked}
    steps.append(Step("verify", "1-run", options, stream=verifying))
    return steps


# --- process


def clean(record: Record, *, endpoint: dict[str, Any] | None, **options: Any) -> Record:
    return process(record, endpoint=_endpoint(_frozen(endpoint)) if endpoint else None, **options)


# --- filter


def worth_reading(
    record: Record, *, after: str, before: str, unknown_date: Any, allow: list[str], unknown_licence: Any
) -> Record:
    """Text quality, relevance, date and licence."""
    dates(record, after=after, before=before, unknown=unknown_date)
    licences(record, allow=allow, unknown=unknown_licence)
    return relevance(quality(record))


def signed(record: Record, *, similarity: float) -> bytes:
    return signature(record)


def new_ones(*, similarity: float) -> Callable[[Record, bytes], Record]:
    """Decides in order: the first of several alike stays."""
    index = Index(similarity)

    def decide(record: Record, mark: bytes) -> Record:
        twin = index.match(mark)
        if twin is not None:
            reason = "duplicate" if twin.by == "exact" else "near_duplicate"
            raise Dropped(reason, f"of {twin.id} (the same {twin.by}, {twin.similarity:.2f})")
        index.add(record.problem.id, mark)
        return record

    return decide


def uncontaminated(record: Record, *, sources: list[dict[str, Any]], overlap: float) -> Record:
    return contamination(record, evaluation=_evaluation(_frozen(sources)), overlap=overlap)


@lru_cache(maxsize=1)
def _evaluation(sources: Any) -> EvaluationSet:
    """Built once in each worker process."""

    def problems() -> Iterator[Any]:
        for fields in sources:
            source = Source(**_thawed(fields))
            for found in read(source, layout_of(source)):
                if isinstance(found, Record):
                    yield found.problem

    return EvaluationSet.build(problems())


# --- difficulty


def learned(parts: list[Path], *, predictor: str, given: bool, endpoint: Any) -> dict[str, Any]:
    """Without a predictor, one is trained on the labels that the problems themselves bring."""
    if not given:
        first, second = tee(labelled(_records(parts)))  # read in step, so nothing is kept
        train((record for record, _ in first), (label for _, label in second)).save(predictor)
    return {}


def scored(record: Record, *, predictor: str, given: bool, endpoint: dict[str, Any] | None) -> Record:
    predict(record, predictor=_predictor(predictor))
    if endpoint:
        from .difficulty.rubric import rubric

        rubric(record, endpoint=_endpoint(_frozen(endpoint)))
    return record


@lru_cache(maxsize=1)
def _predictor(path: str) -> Predictor:
    return Predictor.load(path)


def measured(
    parts: list[Path], *, model: str, attempts: int, problems: int, judge: dict[str, Any], file: str
) -> dict[str, Any]:
    """Pass rates of the model on some problems of every difficulty, and the curve through them."""
    from .difficulty.measure import pass_rates, points

    some = list(islice(_records(parts), 50 * problems))
    some.sort(key=lambda record: record.notes["difficulty"])
    some = some[:: max(1, len(some) // problems)][:problems]
    with Judge(**{**JudgeConfig(**judge).options(), "queue": len(some) * attempts}) as sandbox:
        calibrate(points(some, pass_rates(some, model, attempts, judge=sandbox)), model).save(file)
    return {}


def with_success(record: Record, *, file: str, **_: Any) -> Record:
    return calibrated(record, calibration=_calibration(file))


@lru_cache(maxsize=1)
def _calibration(path: str) -> Calibration:
    return Calibration.load(path)


def planned(parts: list[Path], *, floor: float, target: dict[str, float], by_success: bool) -> dict[str, Any]:
    pairs = ((record.problem.id, hardness(record)) for record in _records(parts))
    return {"plan": plan(pairs, floor=floor, target=target, bands=BY_SUCCESS if by_success else BY_SCORE)}


def chosen(record: Record, *, plan: Plan, **_: Any) -> Record:
    return selected(record, plan=plan)


# --- verify


@contextlib.contextmanager
def verifying(
    *, mutants: int, alive: float, unverified: str, judge: dict[str, Any], endpoint: dict[str, Any] | None
) -> Iterator[Callable[[Iterable[Record]], Iterator[Any]]]:
    options = Options(mutants=mutants, alive=alive)
    asks = _endpoint(_frozen(endpoint)) if endpoint else None
    with Judge(**JudgeConfig(**judge).options()) as sandbox:
        check = partial(verify, judge=sandbox, options=options, endpoint=asks)
        yield lambda records: map(partial(_marked, unverified), check(records))


def _marked(unverified: str, result: Any) -> Any:
    if isinstance(result, Record) and unverified == "drop" and "unverified" in result.problem.tags:
        return result, Dropped("unverified", "it has no solution that could be run")
    return result


# --- helpers


def _records(parts: Iterable[Path]) -> Iterator[Record]:
    for part in parts:
        yield from read_records(part)


def _judging(judge: JudgeConfig) -> dict[str, Any]:
    """Of the judge's settings, all: a verdict depends on most of them, and the others are cheap to count in."""
    return judge.model_dump()


@lru_cache(maxsize=1)
def _endpoint(fields: Any) -> Endpoint:
    found = EndpointConfig(**_thawed(fields))
    from ..models import cache

    return Endpoint(found.base_url, found.model, found.key_env, cache=cache() / "endpoint")


def _need_before(out: Path, only: str, steps: list[Step]) -> None:
    done = {step.name for step in steps_of(out)}
    for step in steps:
        if STAGES.index(step.stage) < STAGES.index(only) and step.folder not in done:
            raise NotReady(f"--only {only} goes on from {step.folder}, which is not done; run without --only first")


def _frozen(value: Any) -> Any:
    """Something that can be a key, of what JSON holds."""
    if isinstance(value, dict):
        return tuple((key, _frozen(item)) for key, item in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _thawed(pairs: Any) -> dict[str, Any]:
    return {key: dict(value) if isinstance(value, tuple) else value for key, value in pairs}
