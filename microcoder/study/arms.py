"""An arm of a study at a scale: the settings of `microcoder train` that make it.

    name, label
    set = ["grpo.mask=none"]           the one thing that the arm changes
    stages = [{ at = 0.25, temperature = 1.0 }]   later stages, each at a share of the steps
    ramp = 1.0                         a temperature to go to by a little each step
    after = "first"                    it begins with the weights that this arm ended with, under the same seed
    [arms.at.SCALE]                    label, set, stages, ramp: instead, at that scale
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import Config, ConfigError, load, toml_value
from .strict import StudyError, among, only, read_toml, text, texts

SCALES = Path(__file__).parent / "scales.toml"
NAME = re.compile(r"[\w-]+")
TAKEN = {
    "train.seed": "--seeds says how many there are",
    "train.name": "runs are named after their arms",
    "train.folder": "--out names the folder",
}


@dataclass(frozen=True)
class Scale:
    """What the arms of every study share."""

    name: str
    about: str
    seeds: int
    together: int  # runs side by side; 0: one for each core
    settings: tuple[str, ...]
    needs: tuple[str, ...]  # settings that it leaves to the command line


@dataclass(frozen=True)
class Arm:
    name: str
    label: str
    settings: tuple[str, ...]
    after: str = ""


def scales() -> dict[str, Scale]:
    found = {}
    for name, part in read_toml(SCALES).items():
        lists = tuple(part["settings"]), tuple(part.get("needs", ()))
        found[name] = Scale(name, part["about"], part["seeds"], part.get("together", 0), *lists)
    return found


def find_scale(name: str) -> Scale:
    known = scales()
    if name not in known:
        raise StudyError(f"there is no scale {name!r}{among(name, known)}")
    return known[name]


def read_arm(record: dict[str, Any], scale: Scale, shared: Sequence[str], where: str) -> Arm:
    """The arm that a table describes; `shared` are the settings that it begins with."""
    only(record, ("name", "label", "set", "stages", "ramp", "after", "at"), where)
    here = {**record, **at_scale(record, scale, ("label", "set", "stages", "ramp"), where)}
    text(here, ["name", *(name for name in ("label", "after") if name in here)], where)
    if not NAME.fullmatch(here["name"]):
        raise StudyError(f"{where}: a name has letters, digits, - and _ only, for it becomes part of a folder's")
    settings = (*shared, *texts(here, "set", where))
    config = configured(settings, where)
    stages = [*_stages(here.get("stages", []), config, where), *_ramp(here.get("ramp"), config, where)]
    if stages:
        settings = (*settings, f"train.stages={toml_value(stages)}")
        configured(settings, where)
    return Arm(here["name"], here.get("label", here["name"]), settings, here.get("after", ""))


def at_scale(record: dict[str, Any], scale: Scale, known: Collection[str], where: str) -> dict[str, Any]:
    """What a table says instead at this scale."""
    parts: Any = record.get("at", {})
    if not isinstance(parts, dict) or not all(isinstance(part, dict) for part in parts.values()):
        raise StudyError(f"{where}: at is {parts!r}; write a table for a scale: [at.nano], [arms.at.nano]")
    only(parts, scales(), f"{where}: at")
    for name, part in parts.items():
        only(part, known, f"{where}: at.{name}")
    return dict(parts.get(scale.name, {}))


def configured(settings: Sequence[str], where: str) -> Config:
    """The configuration that settings make; what they may not touch, or cannot be, is refused."""
    for name in (setting.partition("=")[0] for setting in settings):
        if name in TAKEN:
            raise StudyError(f"{where}: {name} is not an arm's to set: {TAKEN[name]}; leave it out")
    try:
        return load(None, list(settings))
    except ConfigError as error:
        raise StudyError(f"{where}: {error}") from None


def _stages(stages: Any, config: Config, where: str) -> list[dict[str, Any]]:
    found = []
    for stage in stages if isinstance(stages, list) else [stages]:
        share = stage.get("at") if isinstance(stage, dict) else None
        if not isinstance(share, float) or not 0 < share < 1:
            raise StudyError(f"{where}: a stage is {stage!r}; it begins at a share of the steps: {{ at = 0.5, ... }}")
        rest = {name: value for name, value in stage.items() if name != "at"}
        found.append({"at_step": max(2, 1 + round(share * config.train.steps)), **rest})
    return found


def _ramp(end: Any, config: Config, where: str) -> list[dict[str, Any]]:
    """A stage for each step but the first: a continuous change can be had in small ones only."""
    if end is None:
        return []
    start, steps = config.grpo.temperature, config.train.steps
    if not isinstance(end, int | float) or isinstance(start, str):
        raise StudyError(f"{where}: a ramp from grpo.temperature={start} to {end!r} is none; give a number for each")
    each = (end - start) / max(steps - 1, 1)
    return [{"at_step": step, "temperature": round(start + each * (step - 1), 4)} for step in range(2, steps + 1)]
