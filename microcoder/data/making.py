"""Settings -> the steps of the four stages, and a whole run of them."""

from __future__ import annotations

import contextlib
import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..config import JudgeConfig, usable_cores
from ..judge import Judge
from ..models import cache
from ..run.disk import write_whole
from .collecting import collect_all, digest_of, layout_of, read
from .difficulty.calibrate import Calibration, calibrate, calibrated
from .difficulty.features import NAMES, features
from .difficulty.predictor import Predictor, PredictorError, predict, table
from .difficulty.rubric import rubric
from .difficulty.select import BY_SCORE, BY_SUCCESS, Plan, hardness, lot, plan, selected
from .difficulty.training import MOST, labelled, learn
from .endpoint import Endpoint
from .filter.contamination import EvaluationSet, contamination
from .filter.duplicates import Index
from .filter.quality import quality
from .filter.relevance import relevance
from .filter.signature import signature
from .filter.window import dates, licences
from .output import write_dataset
from .parts import forget, read_records
from .pipeline import STAGES, Cores, Observer, Step, chained, run
from .process import process
from .record import DataError, Dropped, Record
from .report import page, steps_of
from .settings import EndpointConfig, Pipeline, Source
from .verify import Options, verify


def make(settings: Pipeline, observer: Observer, only: str | None = None, text: str = "") -> dict[str, int] | None:
    """Everything that is not done yet. Returns the kept problems by source; None where only a stage was asked for."""
    out = Path(settings.output.folder)
    workers = settings.output.workers or usable_cores()
    steps = steps_for(settings, out)
    parts, digest = collect_all(out, settings.collect.sources, settings.collect.limit, workers, observer)
    wanted = steps
    if only is not None:
        _need_before(out, only, steps)
        wanted = [step for step in steps if STAGES.index(step.stage) <= STAGES.index(only)]
    parts = run(out, wanted, parts, digest, workers, observer)
    forget_others(out, steps, digest)  # only now: settings that do not work lose nothing
    if only is not None and only != STAGES[-1]:
        return None
    done = steps_of(out)
    kept = write_dataset(out / "dataset", parts, done, text)
    (out / "report.html").write_text(page(out), encoding="utf-8")
    return kept


def steps_for(settings: Pipeline, out: Path) -> list[Step]:
    """What the settings ask for, in order."""
    wanted, hard = settings.filter, settings.difficulty
    selects = bool(hard.floor or hard.target or hard.size)
    if hard.by == "none" and (selects or hard.calibrate):
        raise DataError("difficulty.by is none, so nothing can be calibrated or selected by difficulty; set it to auto")
    if hard.by == "endpoint" and not settings.endpoint.base_url:
        raise DataError("difficulty.by is endpoint, but there is none; set endpoint.base_url and endpoint.model")
    asked = _text(settings.endpoint) if settings.endpoint.base_url else ""
    judged = settings.judge.model_dump()
    pace = {name: judged.pop(name) for name in ("workers", "queue")}  # changes no verdict, so no digest
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
    options: dict[str, Any]
    if wanted.evaluation:
        options = {"sources": _text(wanted.evaluation), "stamp": digest_of(wanted.evaluation, 0)}
        options["overlap"] = wanted.overlap
        prepare = partial(evaluation_set, file=str(out / "filter" / "evaluation.pickle"))
        steps.append(Step("filter", "3-contamination", options, each=uncontaminated, prepare=prepare))
    if hard.by != "none":
        needed = hard.by != "auto" or bool(selects or hard.calibrate)
        file = hard.predictor or str(out / "filter" / "predictor.json")
        options = {"predictor": file, "given": _stamp(hard.predictor), "needed": needed}
        options |= {"endpoint": asked if hard.by == "endpoint" else ""}
        steps.append(Step("filter", "4-difficulty", options, each=scored, prepare=learned))
        if hard.calibrate:
            options = {"model": hard.calibrate, "attempts": hard.attempts, "problems": hard.calibrate_on}
            options |= {"limit": hard.attempt_tokens, "judge": judged, "file": str(out / "filter" / "calibration.json")}
            steps.append(Step("filter", "5-calibrate", options, each=with_success, prepare=partial(measured, **pace)))
        if selects:
            options = {"floor": hard.floor, "target": hard.target, "size": hard.size}
            options |= {"by_success": bool(hard.calibrate)}
            steps.append(Step("filter", "6-select", options, each=chosen, prepare=planned))
    options = {"mutants": settings.verify.mutants, "alive": settings.verify.alive}
    options |= {"unverified": settings.verify.unverified, "judge": judged, "endpoint": asked}
    steps.append(Step("verify", "1-run", options, stream=partial(verifying, **pace)))
    return steps


# --- process


def clean(record: Record, *, endpoint: str, **options: Any) -> Record:
    return process(record, endpoint=_endpoint(endpoint), **options)


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


def new_ones(*, similarity: float) -> Callable[[str, bytes], Dropped | None]:
    """Decides in order: the first of several alike stays."""
    index = Index(similarity)

    def decide(ident: str, mark: bytes) -> Dropped | None:
        twin = index.match(mark)
        if twin is not None:
            reason = "duplicate" if twin.by == "exact" else "near_duplicate"
            return Dropped(reason, f"of {twin.id} (the same {twin.by}, {twin.similarity:.2f})")
        index.add(ident, mark)
        return None

    return decide


def uncontaminated(record: Record, *, file: str, made: str, overlap: float, **_: Any) -> Record:
    return contamination(record, evaluation=_evaluation(file, made), overlap=overlap)


def evaluation_set(parts: list[Path], cores: Cores, *, sources: str, file: str, **_: Any) -> dict[str, Any]:
    """Built once, on all cores; left in a file for the worker processes."""

    def problems() -> Iterator[Any]:
        for fields in json.loads(sources):
            source = Source(**fields)
            for found in read(source, layout_of(source)):
                if isinstance(found, Record):
                    yield found.problem

    write_whole(Path(file), pickle.dumps(EvaluationSet.build(problems(), spread=cores.map)))
    return {"file": file, "made": _stamp(file)}


@lru_cache(maxsize=1)
def _evaluation(file: str, made: str) -> EvaluationSet:
    """Read once in each worker process."""
    found: EvaluationSet = pickle.loads(Path(file).read_bytes())
    return found


# --- difficulty


def learned(parts: list[Path], cores: Cores, *, predictor: str, given: str, needed: bool, **_: Any) -> dict[str, Any]:
    """Without a predictor, one is trained on the labels that the problems themselves bring, if they are enough."""
    if given:
        return {"trained": given}
    most = max(1, MOST // max(1, len(parts)))
    found = [row for rows in cores.map(partial(rows_of, most), parts) for row in rows]
    try:
        learn([row for row, _ in found], [label for _, label in found], spread=cores.map).save(predictor)
    except PredictorError:
        if needed:
            raise
        return {"trained": ""}
    return {"trained": _stamp(predictor)}


def rows_of(most: int, part: Path) -> list[tuple[np.ndarray, str]]:
    """Features and labels of at most so many problems of a part, in a worker process."""
    found = sorted(labelled(read_records(part)), key=lambda pair: lot(0, pair[0].problem.id))
    return [(table([features(record)], NAMES)[0], label) for record, label in found[:most]]


def scored(record: Record, *, predictor: str, trained: str, endpoint: str, **_: Any) -> Record:
    if trained:
        predict(record, predictor=_predictor(predictor, trained))
    return rubric(record, endpoint=_endpoint(endpoint))


@lru_cache(maxsize=1)
def _predictor(path: str, stamp: str) -> Predictor:
    return Predictor.load(path)


def measured(
    parts: list[Path],
    cores: Cores,
    *,
    model: str,
    attempts: int,
    problems: int,
    limit: int,
    judge: dict[str, Any],
    file: str,
    **pace: Any,
) -> dict[str, Any]:
    """Pass rates of the model on some problems of every difficulty, and the curve through them."""
    from .difficulty.measure import pass_rates, points

    known = sorted((hard, n) for n, (_, hard) in enumerate(chain.from_iterable(cores.map(hardnesses, parts))))
    wanted = {n for _, n in known[:: max(1, len(known) // problems)][:problems]}
    some = [record for n, record in enumerate(chain.from_iterable(map(read_records, parts))) if n in wanted]
    with Judge(**{**JudgeConfig(**judge, **pace).options(), "queue": len(some) * attempts}) as sandbox:
        calibrate(points(some, pass_rates(some, model, attempts, judge=sandbox, limit=limit)), model).save(file)
    return {}


def with_success(record: Record, *, file: str, **_: Any) -> Record:
    return calibrated(record, calibration=_calibration(file, _stamp(file)))


@lru_cache(maxsize=1)
def _calibration(path: str, stamp: str) -> Calibration:
    return Calibration.load(path)


def planned(
    parts: list[Path], cores: Cores, *, floor: float, target: dict[str, float], size: int, by_success: bool
) -> dict[str, Any]:
    pairs = chain.from_iterable(cores.map(hardnesses, parts))
    bands = BY_SUCCESS if by_success else BY_SCORE
    return {"plan": plan(pairs, floor=floor, target=target, bands=bands, size=size or None)}


def hardnesses(part: Path) -> list[tuple[str, float]]:
    """The id and the hardness of each problem of a part, in a worker process."""
    return [(record.problem.id, hardness(record)) for record in read_records(part)]


def chosen(record: Record, *, plan: Plan, **_: Any) -> Record:
    return selected(record, plan=plan)


# --- verify


@contextlib.contextmanager
def verifying(
    *, mutants: int, alive: float, unverified: str, judge: dict[str, Any], endpoint: str, **pace: Any
) -> Iterator[Callable[[Iterable[Record]], Iterator[Any]]]:
    options = Options(mutants=mutants, alive=alive)
    asks = _endpoint(endpoint)
    with Judge(**JudgeConfig(**judge, **pace).options()) as sandbox:
        check = partial(verify, judge=sandbox, options=options, endpoint=asks)
        yield lambda records: map(partial(_marked, unverified), check(records))


def _marked(unverified: str, result: Any) -> Any:
    if isinstance(result, Record) and unverified == "drop" and "unverified" in result.problem.tags:
        return result, Dropped("unverified", "it has no solution that could be run")
    return result


# --- helpers


@lru_cache(maxsize=1)
def _endpoint(fields: str) -> Endpoint | None:
    if not fields:
        return None
    found = EndpointConfig(**json.loads(fields))
    return Endpoint(found.base_url, found.model, found.key_env, cache=cache() / "endpoint")


def forget_others(out: Path, steps: list[Step], digest: str) -> None:
    """Remove what other settings have left: it would be shown beside what is true now."""
    digests = {}
    for step in steps:
        digest = digests[out / step.folder] = chained(digest, step)
    for stage in STAGES[1:]:
        for folder in (out / stage).glob("*/"):
            forget(folder, digests.get(folder))


def _need_before(out: Path, only: str, steps: list[Step]) -> None:
    done = {step.name for step in steps_of(out)}
    for step in steps:
        if STAGES.index(step.stage) < STAGES.index(only) and step.folder not in done:
            raise DataError(f"--only {only} goes on from {step.folder}, which is not done; run without --only first")


def _text(settings: Any) -> str:
    """Settings as a key of a cache, and as something that can be sent to other processes."""
    plain = [each.model_dump() for each in settings] if isinstance(settings, list) else settings.model_dump()
    return json.dumps(plain, sort_keys=True)


def _stamp(path: str) -> str:
    """Changes with the file; nothing where none is named."""
    return f"{Path(path).stat().st_size} {Path(path).stat().st_mtime_ns}" if path and Path(path).exists() else path
