"""A study's file -> what it compares at a scale, and what is claimed of it. The package's own are in `studies/`.

    title, figure, about               figure: the number of the paper's, if it has one
    shared = [...]                     settings of all arms, after those of the scale (scales.toml)
    measurements = ["judging"]         what is measured of the finished runs besides (judging.py)
    [at.SCALE]                         shared, measurements: instead, at that scale
    [[arms]]                           see arms.py
    [[claims]]                         see claims.py

`{varied}` in a setting stands for the starter problems with answers in varied formats (formats.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .arms import Arm, Scale, at_scale, configured, find_scale, read_arm, scales
from .claims import Claim, read_claims
from .formats import PLACE
from .strict import StudyError, among, only, read_toml, tables, text, texts

__all__ = ["Arm", "Scale", "Study", "find_scale", "find_study", "load_study", "scales"]
ORDER = ("evaluator", "temperature", "data", "context", "truncation", "batch", "kl_clip", "models", "algorithms")
FOLDER = Path(__file__).parent / "studies"
MEASUREMENTS = ("judging",)


@dataclass(frozen=True)
class Study:
    name: str
    title: str
    figure: int  # 0: none of the paper's
    about: str
    arms: tuple[Arm, ...]
    claims: tuple[Claim, ...]
    measurements: tuple[str, ...]
    path: Path


def find_study(name: str) -> Path:
    """The file of one of the package's studies, or of one's own."""
    if name in ORDER:
        return FOLDER / f"{name}.toml"
    if name.endswith(".toml"):
        return Path(name)
    raise StudyError(f"there is no study {name!r}{among(name, ORDER)}; a file of your own ends in .toml")


def load_study(path: str | Path, scale: Scale, extra: Sequence[str] = ()) -> Study:
    """What a file says at a scale. `extra` are settings of all arms, over which what the file itself sets wins."""
    path = Path(path)
    data, where = read_toml(path), str(path)
    only(data, ("title", "figure", "about", "shared", "measurements", "at", "arms", "claims"), where)
    text(data, [name for name in ("title", "about") if name in data], where)
    figure: Any = data.get("figure", 0)
    if type(figure) is not int or figure < 0:
        raise StudyError(f"{where}: figure is {figure!r}; it must be the number of one of the paper's: figure = 2")
    here = {**data, **at_scale(data, scale, ("shared", "measurements"), where)}
    measurements = texts(here, "measurements", where)
    only(measurements, MEASUREMENTS, f"{where}: measurements")
    arms = _arms(data, scale, (*scale.settings, *extra, *texts(here, "shared", where)), where)
    for arm in arms.values() if "judging" in measurements else ():
        if configured(arm.settings, where).data.train != PLACE:
            raise StudyError(f"{where}: arm {arm.name}: judging needs problems with varied answers: data.train={PLACE}")
    claims = read_claims(data, path.stem, list(arms), where)
    title, about = data.get("title", path.stem), data.get("about", "")
    return Study(path.stem, title, figure, about, tuple(arms.values()), claims, measurements, path)


def _arms(data: dict[str, Any], scale: Scale, shared: Sequence[str], path: str) -> dict[str, Arm]:
    arms: dict[str, Arm] = {}
    for n, record in enumerate(tables(data, "arms", path), 1):
        where = f"{path}: arm {record.get('name', f'at place {n}')}"
        arm = read_arm(record, scale, shared, where)
        if arm.name in arms:
            raise StudyError(f"{where} occurs twice; give each arm a name of its own")
        if arm.after and arm.after not in arms:
            raise StudyError(f"{where} begins after {arm.after!r}, which is no arm before it{among(arm.after, arms)}")
        arms[arm.name] = arm
    return arms
