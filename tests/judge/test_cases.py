"""Each case in tests/cases gets the verdict that it states: a program, its problem, and what becomes of it.

A file holds `[problems.NAME]` (the fields of a Problem without its id) and `[[cases]]`. A case names its problem, or
holds it inline, and gives the program as `code`, as `completion`, as `prints` (the program writes this text) or as
`returns` (the function returns this expression). Where the text would be long, `code_expr`, `input_expr` and
`output_expr` are Python expressions for it. `strategy`, `message` (a part of it) and `inside` are checked where given.
A case is skipped where a package that it `needs` is missing, and outside the `sandbox` layer that it names.
"""

import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from microcoder import Judge, Problem, Verdict
from microcoder.judge.compare import STRATEGIES
from microcoder.schema import KINDS, POLICIES, VERDICTS

FOLDER = Path(__file__).parents[1] / "cases"
PROGRAMS = {"code", "code_expr", "completion", "prints", "returns"}
CLAIMS = {"name", "problem", "verdict", "strategy", "policy", "message", "inside", "newest_python", "needs", "sandbox"}


@dataclass(frozen=True)
class Case:
    name: str
    problem: Problem
    program: dict[str, str]  # {"code": ...} or {"completion": ...}
    verdict: str
    strategy: str | None = None
    policy: str = "robust"
    message: str = ""
    inside: bool | None = None
    newest_python: str = ""  # the case does not hold in later versions
    needs: tuple[str, ...] = ()  # packages
    sandbox: str = ""  # the layer in which alone the case holds


def read_cases(path: Path) -> Iterator[Case]:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    for record in table["cases"]:
        unknown = set(record) - PROGRAMS - CLAIMS
        assert not unknown, f"{path.name}: {record['name']}: unknown keys {unknown}"
        given = record.pop("problem")
        problem = read_problem(record["name"], table["problems"][given] if isinstance(given, str) else given)
        ((how, text),) = [(key, record.pop(key)) for key in PROGRAMS & set(record)]
        yield Case(problem=problem, program=read_program(how, text, problem), **record)


def read_problem(name: str, fields: dict[str, Any]) -> Problem:
    tests = [
        {key.removesuffix("_expr"): eval(value) if key.endswith("_expr") else value for key, value in test.items()}
        for test in fields.get("tests", [])
    ]
    return Problem.from_dict({**fields, "id": name, "tests": tests})


def read_program(how: str, text: str, problem: Problem) -> dict[str, str]:
    if how == "prints":
        return {"code": f"import sys\nsys.stdout.buffer.write({text.encode()!r})\n"}
    if how == "returns":
        return {"code": f"def {problem.entry_point}(*args, **kwargs):\n    return {text}\n"}
    if how == "code_expr":
        return {"code": eval(text)}
    return {how: text}


CASES = [case for path in sorted(FOLDER.glob("*.toml")) for case in read_cases(path)]


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest) -> dict[str, "Future[Verdict]"]:
    """The verdicts on all selected cases, judged together: one judge for each policy, one after the other."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    chosen: list[Any] = [item.callspec.params["case"] for item in items if item.function is test_case]
    futures: dict[str, Future[Verdict]] = {}
    for policy in POLICIES:
        cases = [case for case in chosen if case.policy == policy]
        if cases:
            with Judge(policy=policy) as judge:
                futures |= {case.name: judge.submit(case.problem, **case.program) for case in cases}
                for case in cases:
                    futures[case.name].exception()  # waits for the verdict; the case itself reports a fault
    return futures


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, verdicts: dict[str, "Future[Verdict]"]) -> None:
    if case.newest_python and sys.version_info[:2] > tuple(map(int, case.newest_python.split("."))):
        pytest.skip(f"holds up to Python {case.newest_python}")
    if missing := [package for package in case.needs if find_spec(package) is None]:
        pytest.skip(f"needs {' '.join(missing)}")
    given = verdicts[case.name].result()
    if case.sandbox and given.sandbox != case.sandbox:
        pytest.skip(f"holds in the {case.sandbox} sandbox")
    assert given.verdict == case.verdict, given.message
    if case.strategy is not None:
        assert given.strategy == case.strategy
    assert case.message in given.message
    if case.inside is not None:
        assert given.inside == case.inside


STATE_IN_MODULES = "no_state_is_left_from_test_to_test"  # what `reuse` cannot undo, and a failure is not tried again


@pytest.mark.long
def test_reuse_gives_the_same_verdicts() -> None:
    known = [case for case in CASES if all(find_spec(package) for package in case.needs)]
    cases = [case for case in known if case.policy == "robust" and not case.newest_python]
    with Judge(reuse=True) as judge:
        cases = [case for case in cases if case.name != STATE_IN_MODULES and case.sandbox in ("", judge.sandbox)]
        futures = [judge.submit(case.problem, **case.program) for case in cases]
        given = {case.name: future.result().verdict for case, future in zip(cases, futures, strict=True)}
    assert given == {case.name: case.verdict for case in cases}


def test_the_table_is_large_and_its_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(names) >= 330
    assert len(set(names)) == len(names)


def test_every_verdict_that_a_program_can_earn_is_covered() -> None:
    assert {case.verdict for case in CASES} == set(VERDICTS) - {"internal_error"}


def test_every_strategy_is_covered() -> None:
    assert {case.strategy for case in CASES if case.strategy} == {*STRATEGIES, "checker", "inside"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_right_and_wrong_programs(kind: str) -> None:
    earned = {case.verdict for case in CASES if case.problem.kind == kind}
    assert {"accepted", "wrong_answer", "time_limit", "runtime_error", "compile_error", "no_code"} <= earned


def test_every_policy_is_covered() -> None:
    assert {case.policy for case in CASES} == set(POLICIES)
