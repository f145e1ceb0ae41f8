"""Claims as data: what the paper concludes, and the tests that would show it, in the file of the study that decides it.

    [[claims]]
    number = 30               # of the paper's insight; a study of your own may count as it likes
    text = "..."
    [[claims.tests]]
    statistic = "last(test_accuracy)"
    of = "mask-20"            # an arm of the study,
    against = "none"          # and another one, paired by seed; left out: against 0
    expect = "more"           # more | less | same
    by = 0.02                 # at least so much more (less); the same within so much. Shares: 0.02 is two points
    [[claims.tests]]
    statistic = "growth(length_mean)"
    over = ["none", "mask-10", "all"]  # instead of the two: the slope over these arms, in this order
    expect = "more"
    by = 0.0
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from .measures import parse
from .strict import StudyError, among, one_of, only, tables, text

EXPECTATIONS = ("more", "less", "same")


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
    text: str
    study: str  # the paper's aspect, where the study is ours
    tests: tuple[ClaimTest, ...]


def read_claims(data: dict[str, Any], study: str, arms: Collection[str], where: str) -> tuple[Claim, ...]:
    """The claims of a study's parsed file, in its order; none where it makes none."""
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


def _test(record: dict[str, Any], where: str) -> ClaimTest:
    only(record, [field.name for field in dataclasses.fields(ClaimTest)], where)
    text(record, ("statistic", "expect", *(name for name in ("of", "against") if name in record)), where)
    try:
        parse(record["statistic"])
    except ValueError as error:
        raise StudyError(f"{where}: {error}") from None
    one_of(record, "expect", EXPECTATIONS, where)
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
