"""Claims as data: what the paper concludes, and the tests that would show it. A file of them is read strictly.

    [[claims]]
    number = 30
    aspect = "truncation"
    text = "..."
    study = "truncation"
    [[claims.tests]]
    statistic = "last(test_accuracy)"
    of = "conditional"        # an arm of the study,
    against = "none"          # and another one, paired by seed; left out: against 0
    expect = "more"           # more | less | same
    by = 0.02                 # at least so much more (less); the same within so much
    [[claims.tests]]
    statistic = "growth(length_mean)"
    over = ["none", "mask-10", "all"]  # instead of the two: the slope over these arms, in this order
    expect = "more"
    by = 0.0
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..schema import nearest
from .measures import parse

ASPECTS = ("evaluator", "temperature", "data", "context", "truncation", "batch", "kl_clip")
EXPECTATIONS = ("more", "less", "same")


class StudyError(ValueError):
    """A study or a claim that cannot be used; the message says where, why, and what would work."""


@dataclass(frozen=True, slots=True)
class ClaimTest:
    """One comparison of arms, and what is expected of it."""

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
    """A conclusion of the paper; it holds if all of its tests do."""

    number: int
    aspect: str
    text: str
    study: str
    tests: tuple[ClaimTest, ...]


def load_claims(path: str | Path) -> list[Claim]:
    """The claims of a TOML file, in its order."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or not TOML
        raise StudyError(f"{path} is not TOML: {error}") from None
    _only(data, ("claims",), str(path))
    claims: list[Claim] = []
    for place, record in enumerate(_tables(data, "claims", str(path)), 1):
        claim = _claim(record, f"{path}: claim {record.get('number', f'at place {place}')}")
        if claim.number in [other.number for other in claims]:
            raise StudyError(f"{path}: claim {claim.number} occurs twice; give each claim a number of its own")
        claims.append(claim)
    return claims


def _claim(record: dict[str, Any], where: str) -> Claim:
    _only(record, [field.name for field in dataclasses.fields(Claim)], where)
    number: Any = record.get("number")
    if type(number) is not int or number < 1:
        raise StudyError(f"{where}: number is {number!r}; it must be a whole number from 1 on, such as number = 30")
    _text(record, ("aspect", "text", "study"), where)
    _one_of(record, "aspect", ASPECTS, where)
    tests = [_test(test, f"{where}, test {n}") for n, test in enumerate(_tables(record, "tests", where), 1)]
    return Claim(number, record["aspect"], record["text"], record["study"], tuple(tests))


def _test(record: dict[str, Any], where: str) -> ClaimTest:
    _only(record, [field.name for field in dataclasses.fields(ClaimTest)], where)
    _text(record, ("statistic", "expect", *(name for name in ("of", "against") if name in record)), where)
    try:
        parse(record["statistic"])
    except ValueError as error:
        raise StudyError(f"{where}: {error}") from None
    _one_of(record, "expect", EXPECTATIONS, where)
    by: Any = record.get("by")
    if type(by) not in (int, float) or not 0 <= by < math.inf:
        raise StudyError(f"{where}: by is {by!r}; it must be a number from 0 on, the size that counts: by = 0.02")
    if record["expect"] == "same" and by == 0:
        raise StudyError(f"{where}: by is 0, and nothing is measured as exactly the same; say within how much it is")
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


def _only(record: dict[str, Any], known: Any, where: str) -> None:
    for key in record:
        if key not in known:
            raise StudyError(f"{where}: unknown key {key!r}{nearest(key, known) or '; known are ' + ', '.join(known)}")


def _text(record: dict[str, Any], names: Any, where: str) -> None:
    for name in names:
        if not isinstance(record.get(name), str) or not record[name].strip():
            found = f"is {record[name]!r}" if name in record else "is missing"
            raise StudyError(f'{where}: {name} {found}; write it as text: {name} = "..."')


def _one_of(record: dict[str, Any], name: str, known: tuple[str, ...], where: str) -> None:
    if record[name] not in known:
        hint = nearest(record[name], known)
        raise StudyError(f"{where}: {name} is {record[name]!r}{hint or '; it must be one of ' + ', '.join(known)}")


def _tables(record: dict[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    tables = record.get(name)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        above = "claims." if name == "tests" else ""
        raise StudyError(f"{where}: there is no table of {name}; write [[{above}{name}]] and its keys below it")
    return tables
