"""The steps of difficulty: scored by a predictor or an endpoint, calibrated on a model, selected."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..config import JudgeConfig
from ..judge.remote import open_judge
from .difficulty.calibrate import Calibration, calibrate, calibrated
from .difficulty.features import NAMES, features
from .difficulty.predictor import Predictor, PredictorError, predict, table
from .difficulty.rubric import rubric
from .difficulty.select import BY_SCORE, BY_SUCCESS, Plan, hardness, lot, plan, selected
from .difficulty.training import MOST, labelled, learn
from .endpoint import endpoint_for
from .parts import read_records, stamp
from .pipeline import Cores
from .record import Record


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
    return {"trained": stamp(predictor)}


def rows_of(most: int, part: Path) -> list[tuple[np.ndarray, str]]:
    """Features and labels of at most so many problems of a part, in a worker process."""
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
    judge: dict[str, Any],
    file: str,
    **pace: Any,
) -> dict[str, Any]:
    """Pass rates of the model on some problems of every difficulty, and the curve through them."""
    from .difficulty.measure import pass_rates, points

    known = sorted((hard, n) for n, (_, hard) in enumerate(chain.from_iterable(cores.map(hardnesses, parts))))
    wanted = {n for _, n in known[:: max(1, len(known) // problems)][:problems]}
    some = [record for n, record in enumerate(chain.from_iterable(map(read_records, parts))) if n in wanted]
    with open_judge({**JudgeConfig(**judge, **pace).options(), "queue": len(some) * attempts}) as sandbox:
        calibrate(points(some, pass_rates(some, model, attempts, judge=sandbox, limit=limit)), model).save(file)
    return {}


def with_success(record: Record, *, file: str, **_: Any) -> Record:
    return calibrated(record, calibration=_calibration(file, stamp(file)))


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
