"""Settings -> the steps of the four stages; those of difficulty are in `ranking`."""

from __future__ import annotations

import contextlib
import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from ..config import JudgeConfig
from ..judge.remote import open_judge
from ..runs.disk import write_whole
from .collecting import digest_of, layout_of, read
from .endpoint import endpoint_for
from .filter import dates, licences
from .filter.contamination import EvaluationSet, contamination
from .filter.duplicates import Index
from .filter.quality import quality
from .filter.relevance import relevance
from .filter.signature import signature
from .parts import stamp
from .pipeline import Cores, Step
from .process import process
from .ranking import chosen, learned, measured, planned, scored, with_success
from .record import DataError, Dropped, Record
from .settings import Pipeline, Source
from .verify import Options, verify


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
    pace = {name: judged.pop(name) for name in ("on", "workers", "queue")}  # changes no verdict, so no digest
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
        options = {"predictor": file, "given": stamp(hard.predictor), "needed": needed}
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
    return process(record, endpoint=endpoint_for(endpoint), **options)


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
            if twin.by == "exact":
                return Dropped("duplicate", f"of {twin.id} (word for word)")
            return Dropped("near_duplicate", f"of {twin.id} (the same {twin.by}, {twin.similarity:.2f})")
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
    return {"file": file, "made": stamp(file)}


@lru_cache(maxsize=1)
def _evaluation(file: str, made: str) -> EvaluationSet:
    """Read once in each worker process."""
    found: EvaluationSet = pickle.loads(Path(file).read_bytes())
    return found


# --- verify


@contextlib.contextmanager
def verifying(
    *, mutants: int, alive: float, unverified: str, judge: dict[str, Any], endpoint: str, **pace: Any
) -> Iterator[Callable[[Iterable[Record]], Iterator[Any]]]:
    options = Options(mutants=mutants, alive=alive)
    asks = endpoint_for(endpoint)
    with open_judge(JudgeConfig(**judge, **pace).options()) as sandbox:
        check = partial(verify, judge=sandbox, options=options, endpoint=asks)
        yield lambda records: map(partial(_marked, unverified), check(records))


def _marked(unverified: str, result: Any) -> Any:
    if isinstance(result, Record) and unverified == "drop" and "unverified" in result.problem.tags:
        return result, Dropped("unverified", "it has no solution that could be run")
    return result


def _text(settings: Any) -> str:
    """Settings as a key of a cache, and as something that can be sent to other processes."""
    plain = [each.model_dump() for each in settings] if isinstance(settings, list) else settings.model_dump()
    return json.dumps(plain, sort_keys=True)
