"""Read a study's file: its arms at a scale, and its claims. The package's own studies are in `studies/`.

    title, figure, about               figure: the number of the paper's figure, if there is one
    shared = [...]                     settings of all arms, after those of the scale (scales.toml)
    measurements = ["judging"]         of finished runs: judging (policies.py), styles (measures.py)
    [at.SCALE]                         shared, measurements: instead, at that scale

    [[arms]]                           an arm: the settings of `microcoder train` that make it
    name, label
    set = ["grpo.mask=none"]           the settings that the arm changes
    stages = [{ at = 0.25, temperature = 1.0 }]   later stages, each at a share of the steps
    ramp = 1.0                         a final temperature, approached a little at each step
    after = "first"                    start from the final weights of this arm with the same seed
    [arms.at.SCALE]                    label, set, stages, ramp: instead, at that scale

    [[claims]]                         a conclusion of the paper, and the tests that would show it
    number = 30                        of the paper's insight; a study of your own may count as it likes
    text = "..."
    [[claims.tests]]
    statistic = "last(test_accuracy)"  see measures.py
    of = "mask-20"                     an arm of the study,
    against = "none"                   and another one, paired by seed; left out: against 0
    expect = "more"                    more | less | same
    by = 0.02                          at least so much more (less); the same within so much. 0.02 is two points
    [[claims.tests]]
    statistic = "growth(length_mean)"
    over = ["none", "mask-10", "all"]  instead of the two: the slope over these arms, in this order
    expect = "more"
    by = 0.0

    [[gates]]                          what must hold in the runs before a claim is decided; else it is not testable
    text = "..."
    statistic = "mean(no_signal_share)"
    of = "none"                        an arm of the study; the mean over its seeds counts
    at_most = 0.5                      or at_least, or both
    claims = [25, 26]                  numbers of the claims that need it; left out: all of the study
    [gates.at.SCALE]                   at_least, at_most: instead, at that scale; a gate with bounds at some scales
                                       only stands at these alone

`{varied}` in a setting stands for the starter problems with answers in varied formats (policies.py). A key that is
unknown, missing or of a wrong type is refused with its place and a remedy.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import Config, ConfigError, load, toml_value
from ..schema import nearest
from .measures import parse

EXPECTATIONS = ("more", "less", "same")
SCALES = Path(__file__).parent / "scales.toml"
NAME = re.compile(r"[\w-]+")
TAKEN = {
    "train.seed": "--seeds says how many there are",
    "train.name": "runs are named after their arms",
    "train.folder": "--out names the folder",
}
ORDER = ("evaluator", "temperature", "data", "context", "truncation", "batch", "kl_clip", "models", "algorithms")
FOLDER = Path(__file__).parent / "studies"
MEASUREMENTS = ("judging", "styles")
OUT = "{out}"  # stands for the scale's folder in its settings
PLACE = "{varied}"  # stands for the problems with varied answers in the settings of a study


class StudyError(ValueError):
    """A study or a claim that cannot be used; the message says where, why, and what to write instead."""


def among(word: str, known: Collection[str], what: str = "there are") -> str:
    """Suggest the nearest of the known names, or list all of them."""
    return nearest(word, known) or f"; {what} {', '.join(known) or 'none'}"


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or not TOML
        raise StudyError(f"{path} is not TOML: {error}") from None


def only(record: Iterable[str], known: Collection[str], where: str) -> None:
    for key in record:
        if key not in known:
            raise StudyError(f"{where}: unknown key {key!r}{among(key, known, 'known are')}")


def text(record: dict[str, Any], names: Iterable[str], where: str) -> None:
    for name in names:
        if not isinstance(record.get(name), str) or not record[name].strip():
            found = f"is {record[name]!r}" if name in record else "is missing"
            raise StudyError(f'{where}: {name} {found}; write it as text: {name} = "..."')


def texts(record: dict[str, Any], name: str, where: str) -> tuple[str, ...]:
    """Read a list of texts; empty if it is left out."""
    found = record.get(name, [])
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise StudyError(f'{where}: {name} is {found!r}; it must be a list of texts: {name} = ["..."]')
    return tuple(found)


def one_of(record: dict[str, Any], name: str, known: Collection[str], where: str) -> None:
    if record[name] not in known:
        raise StudyError(f"{where}: {name} is {record[name]!r}{among(record[name], known, 'it must be one of')}")


def tables(record: dict[str, Any], name: str, where: str, above: str = "") -> list[dict[str, Any]]:
    """Read one or more tables; `above` names the list that each of them belongs to."""
    found = record.get(name)
    if not isinstance(found, list) or not found or not all(isinstance(table, dict) for table in found):
        raise StudyError(f"{where}: there is no table of {name}; write [[{above}{name}]] and its keys below it")
    return found


@dataclass(frozen=True, slots=True)
class ClaimTest:
    """One comparison of arms, and its expected result."""

    statistic: str
    expect: str
    by: float
    of: str = ""
    against: str = ""
    over: tuple[str, ...] = ()

    @property
    def arms(self) -> tuple[str, ...]:
        return self.over or tuple(filter(None, (self.of, self.against)))


@dataclass(frozen=True, slots=True)
class Claim:
    """A conclusion of the paper; it holds if all of its tests hold."""

    number: int
    text: str
    study: str  # the name of the study; for our own studies, an aspect of the paper
    tests: tuple[ClaimTest, ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition on the runs of an arm without which the effect of a claim could not appear."""

    text: str
    statistic: str
    of: str
    at_least: float = -math.inf
    at_most: float = math.inf
    claims: tuple[int, ...] = ()  # none: all of the study

    def concerns(self, claim: Claim) -> bool:
        return not self.claims or claim.number in self.claims


def read_gates(
    data: dict[str, Any], scale: str, arms: Collection[str], claims: Collection[Claim], where: str
) -> tuple[Gate, ...]:
    """Read the gates of a study's parsed file that have bounds at a scale."""
    numbers, found = [claim.number for claim in claims], []
    for place, record in enumerate(tables(data, "gates", where) if "gates" in data else [], 1):
        found.append(_gate(record, scale, arms, numbers, f"{where}: gate {place}"))
    return tuple(gate for gate in found if gate is not None)


def _gate(record: dict[str, Any], scale: str, arms: Collection[str], claims: list[int], where: str) -> Gate | None:
    bounds = ("at_least", "at_most")
    only(record, ("text", "statistic", "of", *bounds, "claims", "at"), where)
    here = {**record, **at_scale(record, scale, bounds, where)}
    here.pop("at", None)
    text(here, ("text", "statistic", "of"), where)
    _statistic(here["statistic"], where)
    one_of(here, "of", arms, where)
    given = {name: here[name] for name in bounds if name in here}
    if not given and record.get("at"):
        return None  # it stands at other scales
    if not given or any(type(bound) not in (int, float) or not math.isfinite(bound) for bound in given.values()):
        raise StudyError(f"{where}: its bounds are {given or 'missing'}; give a number: at_least = 0.6, at_most = 0.5")
    if here.get("at_least", -math.inf) > here.get("at_most", math.inf):
        raise StudyError(
            f"{where}: at_least is {here['at_least']:g}, above at_most, {here['at_most']:g}; nothing passes"
        )
    numbers: Any = here.get("claims", [])
    if not isinstance(numbers, list) or not all(number in claims for number in numbers):
        raise StudyError(f"{where}: claims are {numbers!r}; list numbers of the study's claims: {claims}")
    return Gate(**{**here, "claims": tuple(numbers)})


def read_claims(data: dict[str, Any], study: str, arms: Collection[str], where: str) -> tuple[Claim, ...]:
    """Read the claims of a study's parsed file, in its order."""
    claims: list[Claim] = []
    for place, record in enumerate(tables(data, "claims", where) if "claims" in data else [], 1):
        claim = _claim(record, study, arms, f"{where}: claim {record.get('number', f'at place {place}')}")
        if claim.number in [other.number for other in claims]:
            raise StudyError(f"{where}: claim {claim.number} occurs twice; give each claim a number of its own")
        claims.append(claim)
    return tuple(claims)


def _claim(record: dict[str, Any], study: str, arms: Collection[str], where: str) -> Claim:
    only(record, ("number", "text", "tests"), where)
    number: Any = record.get("number")
    if type(number) is not int or number < 1:
        raise StudyError(f"{where}: number is {number!r}; it must be a whole number from 1 on, such as number = 30")
    text(record, ("text",), where)
    tests = []
    for n, each in enumerate(tables(record, "tests", where, "claims."), 1):
        tests.append(_test(each, f"{where}, test {n}"))
        for unknown in set(tests[-1].arms) - set(arms):
            raise StudyError(f"{where}, test {n}: the study has no arm {unknown!r}{among(unknown, arms)}")
    return Claim(number, record["text"], study, tuple(tests))


def _statistic(expression: str, where: str) -> None:
    try:
        parse(expression)
    except ValueError as error:
        raise StudyError(f"{where}: {error}") from None


def _test(record: dict[str, Any], where: str) -> ClaimTest:
    only(record, [field.name for field in dataclasses.fields(ClaimTest)], where)
    text(record, ("statistic", "expect", *(name for name in ("of", "against") if name in record)), where)
    _statistic(record["statistic"], where)
    one_of(record, "expect", EXPECTATIONS, where)
    by: Any = record.get("by")
    if type(by) not in (int, float) or not 0 <= by < math.inf:
        raise StudyError(f"{where}: by is {by!r}; it must be a number from 0 on, the size that counts: by = 0.02")
    if record["expect"] == "same" and by == 0:
        raise StudyError(f"{where}: by is 0, but no two measurements are equal; give the size that counts: by = 0.02")
    if ("of" in record) == ("over" in record):
        found = "both" if "of" in record else "neither"
        raise StudyError(f'{where}: it has {found} of "of" and "over"; name one arm, or list the arms of a trend')
    if "over" not in record:
        if record["of"] == record.get("against"):
            raise StudyError(f"{where}: {record['of']!r} is compared with itself; name two different arms")
        return ClaimTest(**{**record, "by": float(by)})
    if "against" in record:
        raise StudyError(f'{where}: "against" goes with "of"; a trend is against no change: remove it')
    over = record["over"]
    if not isinstance(over, list) or not all(isinstance(arm, str) and arm for arm in over) or len(set(over)) < 2:
        raise StudyError(f'{where}: over is {over!r}; it must list two or more arms: over = ["none", "all"]')
    if len(set(over)) < len(over):
        raise StudyError(f"{where}: over names an arm twice; a trend passes each arm once")
    return ClaimTest(**{**record, "by": float(by), "over": tuple(over)})


@dataclass(frozen=True)
class Scale:
    """A size of runs: the settings that the arms of every study share."""

    name: str
    about: str
    seeds: int
    together: int  # runs side by side; 0: one for each core
    settings: tuple[str, ...]
    needs: tuple[str, ...]  # settings that the command line must give
    make: str = ""  # the command that makes what its settings name in {out}, the scale's folder


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
        found[name] = Scale(name, part["about"], part["seeds"], part.get("together", 0), *lists, part.get("make", ""))
    return found


def find_scale(name: str) -> Scale:
    known = scales()
    if name not in known:
        raise StudyError(f"there is no scale {name!r}{among(name, known)}")
    return known[name]


def read_arm(record: dict[str, Any], scale: Scale, shared: Sequence[str], where: str) -> Arm:
    """Read an arm from its table; `shared` are the settings that come first."""
    only(record, ("name", "label", "set", "stages", "ramp", "after", "at"), where)
    here = {**record, **at_scale(record, scale.name, ("label", "set", "stages", "ramp"), where)}
    text(here, ["name", *(name for name in ("label", "after") if name in here)], where)
    if not NAME.fullmatch(here["name"]):
        raise StudyError(f"{where}: a name becomes part of a folder's name; use only letters, digits, - and _")
    settings = (*shared, *texts(here, "set", where))
    config = configured(settings, where)
    stages = [*_stages(here.get("stages", []), config, where), *_ramp(here.get("ramp"), config, where)]
    if stages:
        settings = (*settings, f"train.stages={toml_value(stages)}")
        configured(settings, where)
    return Arm(here["name"], here.get("label", here["name"]), settings, here.get("after", ""))


def at_scale(record: dict[str, Any], scale: str, known: Collection[str], where: str) -> dict[str, Any]:
    """Read the values that a table gives for this scale."""
    parts: Any = record.get("at", {})
    if not isinstance(parts, dict) or not all(isinstance(part, dict) for part in parts.values()):
        raise StudyError(f"{where}: at is {parts!r}; write a table for a scale: [at.nano], [arms.at.nano]")
    only(parts, scales(), f"{where}: at")
    for name, part in parts.items():
        only(part, known, f"{where}: at.{name}")
    return dict(parts.get(scale, {}))


def configured(settings: Sequence[str], where: str) -> Config:
    """Load the configuration of an arm. Raise StudyError for settings that an arm may not set, and for bad values."""
    for name in (setting.partition("=")[0] for setting in settings):
        if name in TAKEN:
            raise StudyError(f"{where}: an arm cannot set {name}: {TAKEN[name]}; leave it out")
    try:
        return load(None, list(settings))
    except ConfigError as error:
        raise StudyError(f"{where}: {error}") from None


def _stages(stages: Any, config: Config, where: str) -> list[dict[str, Any]]:
    found = []
    steps = config.train.steps
    for stage in stages if isinstance(stages, list) else [stages]:
        share = stage.get("at") if isinstance(stage, dict) else None
        if not isinstance(share, float) or not 0 < share < 1:
            raise StudyError(f"{where}: a stage is {stage!r}; it begins at a share of the steps: {{ at = 0.5, ... }}")
        rest = {name: value for name, value in stage.items() if name != "at"}
        found.append({"at_step": max(2, min(steps, 1 + round(share * steps))), **rest})
    return found


def _ramp(end: Any, config: Config, where: str) -> list[dict[str, Any]]:
    """Make a stage for each step after the first: a continuous change of temperature, in small steps."""
    if end is None:
        return []
    start, steps = config.grpo.temperature, config.train.steps
    if not isinstance(end, int | float) or isinstance(start, str):
        raise StudyError(f"{where}: a ramp goes from grpo.temperature={start} to {end!r}; give a number for each")
    each = (end - start) / max(steps - 1, 1)
    return [{"at_step": step, "temperature": round(start + each * (step - 1), 4)} for step in range(2, steps + 1)]


@dataclass(frozen=True)
class Study:
    name: str
    title: str
    figure: int  # 0: none of the paper's
    about: str
    arms: tuple[Arm, ...]
    claims: tuple[Claim, ...]
    gates: tuple[Gate, ...]
    measurements: tuple[str, ...]
    path: Path


def find_study(name: str) -> Path:
    """Find the file of a study: one of the package's by name, or one of your own by path."""
    if name in ORDER:
        return FOLDER / f"{name}.toml"
    if name.endswith(".toml"):
        return Path(name)
    raise StudyError(f"there is no study {name!r}{among(name, ORDER)}; a file of your own ends in .toml")


def load_study(path: str | Path, scale: Scale, extra: Sequence[str] = ()) -> Study:
    """Read a study at a scale. `extra`: settings of all arms; settings in the file override them."""
    path = Path(path)
    data, where = read_toml(path), str(path)
    only(data, ("title", "figure", "about", "shared", "measurements", "at", "arms", "claims", "gates"), where)
    text(data, [name for name in ("title", "about") if name in data], where)
    figure: Any = data.get("figure", 0)
    if type(figure) is not int or figure < 0:
        raise StudyError(f"{where}: figure is {figure!r}; it must be the number of a figure of the paper: figure = 2")
    here = {**data, **at_scale(data, scale.name, ("shared", "measurements"), where)}
    measurements = texts(here, "measurements", where)
    only(measurements, MEASUREMENTS, f"{where}: measurements")
    arms = _arms(data, scale, (*scale.settings, *extra, *texts(here, "shared", where)), where)
    for arm in arms.values() if "judging" in measurements else ():
        if configured(arm.settings, where).data.train != PLACE:
            raise StudyError(f"{where}: arm {arm.name}: judging needs problems with varied answers: data.train={PLACE}")
    claims = read_claims(data, path.stem, list(arms), where)
    gates = read_gates(data, scale.name, list(arms), claims, where)
    title, about = data.get("title", path.stem), data.get("about", "")
    return Study(path.stem, title, figure, about, tuple(arms.values()), claims, gates, measurements, path)


def choose_studies(names: Sequence[str], scale_name: str, extra: Sequence[str] = ()) -> tuple[Scale, list[Study]]:
    """Read the named studies (`all`: the package's own) at a scale. `extra`: settings for all of them."""
    names = [each for name in names for each in (ORDER if name == "all" else (name,))]
    if not names:
        raise StudyError(f"name a study: {', '.join(ORDER)}, all of them by `all`, or a file of your own")
    scale = find_scale(scale_name)
    configured(extra, "on the command line")
    given = {setting.partition("=")[0] for setting in extra}
    if missing := [need for need in scale.needs if need not in given]:
        files = " ".join(f"{need}=FILE" for need in missing)
        raise StudyError(f"the scale {scale.name} does not say {' and '.join(missing)}; add {files}")
    return scale, [load_study(find_study(name), scale, extra) for name in dict.fromkeys(names)]


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
