"""The steps of the stages, made from the settings."""

from __future__ import annotations

import contextlib
import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from ..config import JudgeConfig
from ..judge.remote import open_judge
from ..runs.disk import write_whole
from .collection import digest_of, layout_of, read
from .difficulty.calibrate import SuccessCurve, calibrate, calibrated
from .difficulty.features import NAMES, features
from .difficulty.predictor import (
    FEWEST,
    MOST,
    ORDER,
    Predictor,
    PredictorError,
    labelled,
    learn,
    predict,
    table,
    too_few,
)
from .difficulty.rubric import rubric
from .difficulty.select import BY_SCORE, BY_SUCCESS, Selection, hardness, lot, plan, selected
from .endpoint import endpoint_for
from .filter import dates, day, licences
from .filter.contamination import EvaluationSet, contamination
from .filter.duplicates import Index
from .filter.quality import quality
from .filter.relevance import relevance
from .filter.signature import signature
from .forge.whole import author_settings, forge_with, stamps
from .parts import OUTSIDE, read_records, stamp
from .pipeline import STAGES, Cores, PipelineStep
from .process import process
from .record import DataError, Dropped, Record
from .settings import DifficultyConfig, ForgeConfig, Pipeline, Source
from .verify import Options, verify

PREDICTOR = "filter/predictor.json"  # in the output folder
PEEK = 2_000  # problems of a source that are searched for labels before the first step


def steps_for(settings: Pipeline, out: Path) -> list[PipelineStep]:
    """Make the steps that the settings ask for, in order."""
    wanted, hard = settings.filter, settings.difficulty
    selects = bool(hard.floor or hard.target or hard.size)
    asked = _text(settings.endpoint) if settings.endpoint.base_url else ""
    judged = settings.judge.model_dump()
    pace = {name: judged.pop(name) for name in ("on", "workers", "queue")}  # changes no verdict, so not in the digest
    steps = [
        PipelineStep(
            "process", "1-clean",
            {"most": settings.process.most_tests, "test_kb": settings.process.test_kb, "endpoint": asked},
            each=clean,
        ),
        PipelineStep(
            "filter", "1-text",
            {"after": wanted.after, "before": wanted.before, "unknown_date": wanted.unknown_date,
             "allow": wanted.licences, "unknown_licence": wanted.unknown_licence},
            each=worth_reading,
        ),
        PipelineStep("filter", "2-duplicates", {"similarity": wanted.similarity}, work=signed, decide=new_ones),
    ]  # fmt: skip
    options: dict[str, Any]
    if wanted.evaluation:
        options = {"sources": _text(wanted.evaluation), "stamp": digest_of(wanted.evaluation, 0)}
        options["overlap"] = wanted.overlap
        prepare = partial(evaluation_set, file=str(out / "filter" / "evaluation.pickle"))
        steps.append(PipelineStep("filter", "3-contamination", options, each=uncontaminated, prepare=prepare))
    if hard.by != "none":
        file = hard.predictor or str(predictor_file(out))
        options = {"predictor": file, "given": stamp(hard.predictor), "needed": bool(needs_predictor(hard))}
        options |= {"endpoint": asked if hard.by == "endpoint" else ""}
        steps.append(PipelineStep("filter", "4-difficulty", options, each=scored, prepare=learned))
        if hard.calibrate:
            options = {"model": hard.calibrate, "attempts": hard.attempts, "problems": hard.calibrate_on}
            options |= {"limit": hard.attempt_tokens, "judge": judged, "file": str(out / "filter" / "calibration.json")}
            options |= {"style": hard.style, "chat": hard.chat}
            prepare = partial(measured, **pace)
            steps.append(PipelineStep("filter", "5-calibrate", options, each=with_success, prepare=prepare))
        if selects:
            options = {"floor": hard.floor, "target": hard.target, "size": hard.size}
            options |= {"by_success": bool(hard.calibrate)}
            steps.append(PipelineStep("filter", "6-select", options, each=chosen, prepare=planned))
    if settings.forge.enabled:
        options = {"settings": settings.forge.model_dump(), "stamp": stamps(settings.forge.adversaries)}
        options |= {"endpoint": author_settings(settings)}
        steps.append(PipelineStep("forge", "1-tests", {**options, "judge": judged}, stream=partial(forging, **pace)))
    options = {"mutants": settings.verify.mutants, "alive": settings.verify.alive}
    options |= {"unverified": settings.verify.unverified, "judge": judged, "endpoint": asked}
    steps.append(PipelineStep("verify", "1-run", options, stream=partial(verifying, **pace)))
    return steps


def check(settings: Pipeline, only: str = STAGES[-1]) -> None:
    """Raise DataError for settings that cannot work, as far as this is known before the first step.

    only   the last stage that will run: difficulty does not matter before filter
    """
    hard = settings.difficulty
    if hard.by == "none" and (hard.floor or hard.target or hard.size or hard.calibrate):
        raise DataError("difficulty.by is none, so nothing can be calibrated or selected by difficulty; set it to auto")
    if hard.by == "endpoint" and not settings.endpoint.base_url:
        raise DataError("difficulty.by is endpoint, but there is none; set endpoint.base_url and endpoint.model")
    if settings.forge.enabled:
        author_settings(settings)
    for name, date in (("after", settings.filter.after), ("before", settings.filter.before)):
        if date and not day(date):
            raise DataError(f"filter.{name} is {date!r}, and there is no such day; write it as 2023-01-01")
    if hard.target:  # tried on a problem of each band
        plan([("easy", 0.0), ("medium", 0.5), ("hard", 1.0)], target=hard.target)
    sources, out = [*settings.collect.sources, *settings.filter.evaluation], Path(settings.output.folder).resolve()
    for source in sources:
        if Path(source.path).is_dir() and out.is_relative_to(Path(source.path).resolve()):
            raise DataError(
                f"output.folder is {settings.output.folder}, inside of the source {source.path}, so that what is "
                "written would be read as problems; name a folder outside of it"
            )
    layouts = [(source, layout_of(source)) for source in sources]
    for source, layout in layouts:  # nothing is read yet
        read(source, layout)
    if hard.predictor:
        Predictor.load(hard.predictor)
    elif (reason := needs_predictor(hard)) and only in ("filter", "forge", "verify"):
        counts, whole = labels_of(layouts[: len(settings.collect.sources)], settings.collect.limit)
        if whole and (complaint := too_few(counts)):
            raise PredictorError(f"{reason} needs difficulty scores, and {complaint}.{ways_out(reason)}")


# --- process


def clean(record: Record, *, endpoint: str, **options: Any) -> Record:
    return process(record, endpoint=endpoint_for(endpoint), **options)


# --- filter


def worth_reading(
    record: Record, *, after: str, before: str, unknown_date: Any, allow: list[str], unknown_licence: Any
) -> Record:
    """Filter by text quality, relevance, date and licence."""
    dates(record, after=after, before=before, unknown=unknown_date)
    licences(record, allow=allow, unknown=unknown_licence)
    return relevance(quality(record))


def signed(record: Record, *, similarity: float) -> bytes:
    return signature(record)


def new_ones(*, similarity: float) -> Callable[[str, bytes], Dropped | None]:
    """Return a function that drops duplicates, called in order: the first of several stays."""
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
    """Build the evaluation set once, on all cores, and write it to a file for the worker processes."""

    def problems() -> Iterator[Any]:
        for fields in json.loads(sources):
            source = Source(**fields)
            for found in read(source, layout_of(source)):
                if isinstance(found, Record):
                    yield found.problem
                elif found[1].reason != OUTSIDE:  # nothing could be compared with it: a leak nobody would see
                    lost.append(f"{found[0].problem.id}: {found[1].reason}, {found[1].detail}")

    lost: list[str] = []
    built = EvaluationSet.build(problems(), spread=cores.map)
    if lost or not built:
        first = f"{len(lost)} rows cannot be read, the first: {lost[0]}" if lost else "they hold no problem"
        raise DataError(
            f"the evaluation sets (filter.evaluation) are to be kept out of the data, but {first}. "
            "Mend the file, name its layout, or take such rows out of it"
        )
    write_whole(Path(file), pickle.dumps(built))
    return {"file": file, "made": stamp(file)}


@lru_cache(maxsize=1)
def _evaluation(file: str, made: str) -> EvaluationSet:
    """Read the evaluation set, once in each worker process."""
    found: EvaluationSet = pickle.loads(Path(file).read_bytes())
    return found


# --- difficulty


def needs_predictor(hard: DifficultyConfig) -> str:
    """Return the setting that needs a predictor; "" if none does."""
    if hard.by == "predictor":
        return "difficulty.by=predictor"
    asked = (name for name in ("target", "floor", "size", "calibrate") if getattr(hard, name))
    return next((f"difficulty.{name}" for name in asked), "") if hard.by == "auto" else ""


def labels_of(layouts: list[tuple[Source, str]], limit: int) -> tuple[Counter[str], bool]:
    """Return (problems by label, whether all problems were read); stop as soon as there are enough labels."""
    counts: Counter[str] = Counter()
    whole = True
    for source, layout in layouts:
        problems = (found for found in read(source, layout, limit) if isinstance(found, Record))
        for _, label in labelled(islice(problems, PEEK)):
            counts[label] += 1
            if min(counts[name] for name in ORDER) >= FEWEST:
                return counts, False
        whole = whole and next(problems, None) is None
    return counts, whole


def ways_out(reason: str = "what needs difficulty scores") -> str:
    """Return a text that says what to type if there are too few labels."""
    return f"""
Do one of these:
  add a source with labels, such as LeetCodeDataset
  name a predictor that another run has left: difficulty.predictor=OUT/{PREDICTOR}
  ask a language model: difficulty.by=endpoint endpoint.base_url=URL endpoint.model=NAME
  go without: remove {reason} from the settings"""


def predictor_file(out: Path) -> Path:
    """Return the path of the predictor that a run trains."""
    return out / PREDICTOR


def learned(parts: list[Path], cores: Cores, *, predictor: str, given: str, needed: bool, **_: Any) -> dict[str, Any]:
    """Train a predictor on the labels of the problems, if none is given and there are enough labels."""
    if given:
        return {"trained": given}
    most = max(1, MOST // max(1, len(parts)))
    found = [row for rows in cores.map(partial(rows_of, most), parts) for row in rows]
    try:
        learn([row for row, _ in found], [label for _, label in found], spread=cores.map).save(predictor)
    except PredictorError as error:
        if needed:
            raise PredictorError(f"{error} among the problems that are left.{ways_out()}") from None
        return {"trained": ""}
    return {"trained": stamp(predictor)}


def rows_of(most: int, part: Path) -> list[tuple[np.ndarray, str]]:
    """Return features and labels of at most `most` problems of a part, in a worker process."""
    found = sorted(labelled(read_records(part)), key=lambda pair: lot(0, pair[0].problem.id))
    return [(table([features(record)], NAMES)[0], label) for record, label in found[:most]]


def scored(record: Record, *, predictor: str, trained: str, endpoint: str, **_: Any) -> Record:
    if trained:
        predict(record, predictor=_predictor(predictor, trained))
    return rubric(record, endpoint=endpoint_for(endpoint))


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
    style: str,
    chat: dict[str, Any],
    judge: dict[str, Any],
    file: str,
    **pace: Any,
) -> dict[str, Any]:
    """Measure pass rates of the model on some problems of every difficulty, and fit a curve to them."""
    from .difficulty.measure import pass_rates, points

    known = sorted((hard, n) for n, (_, hard) in enumerate(chain.from_iterable(cores.map(hardnesses, parts))))
    wanted = {n for _, n in known[:: max(1, len(known) // problems)][:problems]}
    some = [record for n, record in enumerate(chain.from_iterable(map(read_records, parts))) if n in wanted]
    with open_judge({**JudgeConfig(**judge, **pace).options(), "queue": len(some) * attempts}) as sandbox:
        rates = pass_rates(some, model, attempts, judge=sandbox, limit=limit, style=style, chat=chat)
        calibrate(points(some, rates), model).save(file)
    return {}


def with_success(record: Record, *, file: str, **_: Any) -> Record:
    return calibrated(record, calibration=_calibration(file, stamp(file)))


@lru_cache(maxsize=1)
def _calibration(path: str, stamp: str) -> SuccessCurve:
    return SuccessCurve.load(path)


def planned(
    parts: list[Path], cores: Cores, *, floor: float, target: dict[str, float], size: int, by_success: bool
) -> dict[str, Any]:
    pairs = chain.from_iterable(cores.map(hardnesses, parts))
    bands = BY_SUCCESS if by_success else BY_SCORE
    return {"plan": plan(pairs, floor=floor, target=target, bands=bands, size=size or None)}


def hardnesses(part: Path) -> list[tuple[str, float]]:
    """Return id and hardness of each problem of a part, in a worker process."""
    return [(record.problem.id, hardness(record)) for record in read_records(part)]


def chosen(record: Record, *, plan: Selection, **_: Any) -> Record:
    return selected(record, plan=plan)


# --- forge


@contextlib.contextmanager
def forging(
    *, settings: dict[str, Any], judge: dict[str, Any], stamp: str, endpoint: str, **pace: Any
) -> Iterator[Callable[[Iterable[Record]], Iterator[Record]]]:
    with open_judge(JudgeConfig(**judge, **pace).options()) as sandbox:
        with forge_with(ForgeConfig(**settings), sandbox, endpoint=endpoint_for(endpoint)) as forged:
            yield forged


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
    """Write settings as text: a key of a cache, and a value that can be sent to other processes."""
    plain = [each.model_dump() for each in settings] if isinstance(settings, list) else settings.model_dump()
    return json.dumps(plain, sort_keys=True)
