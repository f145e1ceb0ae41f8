"""What a request asks for: bytes in, checked records out. Nothing that is sent here can do worse than be refused."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from ..config import JudgeConfig
from ..judge.examine import Settings
from ..judge.remote.http import SETTINGS
from ..schema import JUDGED, Problem, SchemaError, Solution, nearest, quoted

CANDIDATE = ("id", "problem", "code", "completion", "language")
TEXT = ("id", "entry_point", "setup", "starter_code")
KINDS: dict[str, tuple[type, ...]] = {  # of `Compare`
    "tolerance": (int, float), "lines": (bool,), "unordered": (bool,), "validator_flags": (str,), "checker": (str,),
}  # fmt: skip

ID, WORD = 1000, 100  # characters of an id, which comes back with every answer; of a setting


class Most(NamedTuple):
    """Upper limits for what a candidate may ask for."""

    seconds: int = 600
    memory_mb: int = 16384
    output_mb: int = 256
    tests: int = 10_000


class BadRequest(Exception):
    """A refused request: HTTP status, a reason that says what to do, and perhaps when to try again."""

    def __init__(self, status: int, reason: str, retry_after: int | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.retry_after = status, reason, retry_after


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object in a body; 400 for anything else."""
    try:
        value = json.loads(body, parse_constant=_not_json)
    except RecursionError:
        raise BadRequest(400, "the JSON is nested too deeply") from None
    except ValueError as error:  # a number of over 4300 digits is one too
        raise BadRequest(400, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadRequest(422, f"the body must be a JSON object, not {type(value).__name__}")
    return value


def known_keys(record: Any, known: Sequence[str], what: str) -> dict[str, Any]:
    """The record, if it is an object of known fields."""
    if not isinstance(record, dict):
        raise BadRequest(422, f"{what} must be a JSON object, not {type(record).__name__}")
    for name in record:
        if name not in known:
            raise BadRequest(422, f"{what} has an unknown field {quoted(name)}{nearest(name, known)}")
    return record


def problem_of(record: Any, most: Most) -> Problem:
    """A problem that can be handed to the judge, with what that needs and no more; 422 for one that cannot."""
    if not isinstance(record, dict):
        raise BadRequest(422, f"a problem must be a JSON object, not {type(record).__name__}")
    try:
        asserts = record.get("asserts") or []
        asserts = [asserts] if isinstance(asserts, str) else asserts
        if not isinstance(asserts, list) or not all(isinstance(text, str) for text in asserts):
            raise SchemaError('"asserts" must be a list of Python statements')
        problem = Problem.from_dict({**record, "asserts": asserts}, strict=True)
    except SchemaError as error:
        raise BadRequest(422, str(error)) from None
    except RecursionError:
        raise BadRequest(422, "a test of the problem is nested too deeply") from None
    for name in TEXT:
        if not isinstance(getattr(problem, name), str):
            raise BadRequest(422, f"problem {quoted(problem.id)}: {name} must be text")
    for name, kind in KINDS.items():
        value = getattr(problem.compare, name)
        if value is not None and not isinstance(value, kind):
            raise BadRequest(422, f"problem {quoted(problem.id)}: compare.{name} cannot be {quoted(value)}")
    check_id(problem.id)
    check_tests(problem, most)
    return Problem(**{name: getattr(problem, name) for name in JUDGED})


def check_tests(problem: Problem, most: Most) -> None:
    count = len(problem.tests) + len(problem.asserts)
    if count > most.tests:
        words = f"problem {quoted(problem.id)} has {count} tests; at most {most.tests} are taken here (--max-tests)"
        raise BadRequest(422, words)


def candidate_of(record: Any, most: Most, default_id: str = "") -> tuple[Problem | str, Solution]:
    """What to judge against what: the problem, or the key that it was sent under."""
    known_keys(record, CANDIDATE, "a candidate")
    about = record.get("problem")
    if about is None:
        raise BadRequest(422, 'a candidate needs a "problem": the record itself, or the key it was sent under')
    problem = about if isinstance(about, str) else problem_of(about, most)
    ident = record.get("id")
    if not isinstance(ident, str | int | None):
        raise BadRequest(422, f'"id" must be text or a whole number, not {type(ident).__name__}')
    try:
        given = {name: value for name, value in record.items() if name != "problem"}
        solution = Solution.from_dict({**given, "problem_id": problem.id if isinstance(problem, Problem) else ""})
    except SchemaError as error:
        raise BadRequest(422, str(error)) from None
    solution.id = solution.id or default_id
    check_id(solution.id)
    return problem, solution


def settings_of(record: Any, own: Settings) -> Settings:
    """Read the settings of a request that differ from the service's; the sandbox cannot be chosen."""
    if record is None:
        return own
    known_keys(record, SETTINGS, "settings")
    for name, value in record.items():
        if isinstance(value, str) and len(value) > WORD:  # it would be remembered
            raise BadRequest(422, f"settings: {name} cannot be {quoted(value)}")
    try:
        return _settings(tuple(sorted(record.items())), own)
    except TypeError:  # a list or an object, which cannot be remembered, is no setting either
        raise BadRequest(422, "settings: each must be text, a number, or true or false") from None


@functools.lru_cache(64)
def _settings(record: tuple[tuple[str, Any], ...], own: Settings) -> Settings:
    given = {name: getattr(own, name) for name in SETTINGS} | dict(record)
    try:
        config = JudgeConfig(**given)
    except ValidationError as failure:
        [first, *_] = failure.errors()
        raise BadRequest(422, f"settings: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return Settings(**{name: getattr(config, name) for name in SETTINGS}, layer=own.layer)


def check_id(ident: str) -> None:
    if len(ident) > ID:
        raise BadRequest(422, f"an id may have {ID} characters; {quoted(ident)} has {len(ident)}")


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
