"""EvalPlus: HumanEval+ and MBPP+ in its own layout, which has inputs but no outputs. Apache-2.0.

The expected outputs are those of the canonical solution. It runs once, in the judge's sandbox; its outputs are kept in
the cache under a digest of the program and the inputs. The tests are those of `base_input`, then those of `plus_input`;
`extra["base_tests"]` of a problem is the number of the former.

Outputs are compared as EvalPlus does it (policy `evalplus`), with a checker where its evaluator has a rule of its own:

1. Some tasks of MBPP+ may return elements in any order, or what a second reading of the statement allows, or any match
   of a regular expression in place of True.
2. find_zero of HumanEval+ has many right answers: the polynomial must be near 0 there.
3. Tests with outputs of more than 2 million elements are left out (in MBPP+ 5 of combinations_colors, the largest with
   128 million); `extra["left_out"]` of a problem is their number.
4. JSON has neither tuples nor sets nor complex numbers; some tasks of MBPP+ get them in place of lists and texts.
"""

from __future__ import annotations

import gzip
import hashlib
import inspect
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

from ...judge import Judge, JudgeError
from ...judge.boxes import Limits
from ...judge.execution import Ran
from ...models import cache
from ...runs.disk import write_whole
from ...schema import Compare, Problem, Test
from ..record import Dropped, Record
from .cases import definitions, header
from .fields import Row, attempt, solution, text
from .humaneval import parts
from .rows import SourceError, Unreadable, rows

COLUMNS = ({"task_id", "prompt", "entry_point", "canonical_solution", "base_input", "plus_input"},)
REFERENCE = Limits(300.0, 4 << 30, 256 << 20)  # of a canonical solution, for all its inputs together
LEAST_S, TIMES = 4.0, 4  # CPU seconds of a test: as many, or so many times what the canonical solution takes
LARGEST = 1 << 21  # elements of an output; eight characters count as one
Note = Callable[[str], None]
Outputs = list[tuple[str | None, float]]  # None: larger than LARGEST; and the CPU seconds


def read(
    path: str | Path,
    *,
    limit: int | None = None,
    sandbox: str = "auto",
    whole_prompt: bool = False,
    note: Note = lambda _: None,
) -> Iterator[Record | Unreadable]:
    """Read the problems, and run the canonical solutions whose outputs are not known yet.

    whole_prompt   the starter code of HumanEval+ is the whole prompt, as the suite shows it
    note           is called before programs are run
    """
    drafts = [
        (where, row if isinstance(row, Unreadable) else _attempt(where, row, whole_prompt))
        for where, row in islice(rows(path), limit)
    ]
    outputs = _outputs([draft for _, draft in drafts if isinstance(draft, _Draft)], sandbox, note)
    for where, draft in drafts:
        if isinstance(draft, Unreadable):
            yield draft
        else:
            yield attempt("evalplus", where, partial(_record, outputs=outputs[draft.key]), draft)


# ---- a row


@dataclass(frozen=True)
class _Draft:
    """A problem whose tests have no outputs yet."""

    problem: Problem
    tells: bool  # of an output it is only told whether there is one

    @cached_property
    def task(self) -> str:
        """What the sandbox is given."""
        problem = self.problem
        given = {"code": problem.solutions[0]["code"], "entry": problem.entry_point, "tells": self.tells}
        return json.dumps({**given, "inputs": [test.input for test in problem.tests]})

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(f"{_DRIVER}\n{self.task}".encode()).hexdigest()


def _attempt(where: str, row: Row, whole_prompt: bool) -> _Draft | Unreadable:
    try:
        return _draft(row, whole_prompt)
    except Dropped as loss:
        return Unreadable(where, loss.reason, loss.detail)
    except Exception as error:  # foreign data may break any assumption
        return Unreadable(where, "unreadable_row", f"{type(error).__name__}: {error}"[:300])


def _draft(row: Row, whole_prompt: bool) -> _Draft:
    name, prompt, entry = text(row, "task_id"), text(row, "prompt"), text(row, "entry_point")
    code = prompt + text(row, "canonical_solution")
    tolerance = float(row.get("atol") or 0)
    mbpp = name.startswith("Mbpp/")
    if mbpp:
        statement, setup = prompt.strip().strip('"').strip(), ""
        found = definitions(code).get(entry)
        starter = header(found) if found else ""
    else:
        statement, starter, setup = parts(prompt, entry)
    base, plus = (_inputs(row, column, name) for column in ("base_input", "plus_input"))
    if not base:
        raise Dropped("unreadable_tests", "'base_input' holds no test")
    problem = Problem(
        id=name,
        kind="function",
        statement=statement,
        starter_code=prompt if whole_prompt and not mbpp else starter,
        entry_point=entry,
        tests=[Test(written(given), "") for given in (*base, *plus)],
        setup=setup,
        compare=Compare(policy="evalplus", tolerance=tolerance or None, checker=_checker(name, entry, tolerance)),
        licence="Apache-2.0",
        solutions=[solution(code)],
        extra={"base_tests": len(base)},
    )
    return _Draft(problem, mbpp and entry in MATCHES)


def _inputs(row: Row, column: str, name: str) -> list[Any]:
    found = row[column] or []  # a task without plus inputs has {}
    if isinstance(found, str):
        found = json.loads(found)
    if not isinstance(found, list) or not all(isinstance(given, list) for given in found):
        raise Dropped("unreadable_tests", f"{column!r} should be a list of lists of arguments but is {found!r:.80}")
    number = name.removeprefix("Mbpp/")
    first, others = next((kinds for kinds, tasks in ARGUMENTS if name != number and number in tasks), (None, None))
    if first is None or others is None:
        return found
    return [[first(given[0]), *map(others, given[1:])] for given in found]


# ---- what JSON cannot hold


def _same(value: Any) -> Any:
    return value


def _list_of_tuples(value: Any) -> Any:
    return [tuple(item) for item in value]


def _tuple_of_tuples(value: Any) -> Any:
    return tuple(tuple(item) if isinstance(item, list) else item for item in value)


def _list_of_sets(value: Any) -> Any:
    return [set(item) if item else {} for item in value]


def _values_are_tuples(value: Any) -> Any:
    return {name: tuple(item) for name, item in value.items()}


def _tuples_throughout(value: Any) -> Any:
    return tuple(map(_tuples_throughout, value)) if isinstance(value, list) else value


def _tasks(numbers: str) -> frozenset[str]:
    return frozenset(numbers.split())


Kinds = tuple[Callable[[Any], Any], Callable[[Any], Any]]
ARGUMENTS: tuple[tuple[Kinds, frozenset[str]], ...] = (  # kinds of the first argument and of the others; tasks of MBPP+
    ((tuple, tuple), _tasks("2 116 132 143 222 261 273 394 399 421 424 429 470 560 579 596 616 630 726 740 744 809")),
    ((tuple, _same), _tasks("250 307 405 446 617 720 763 808")),
    ((_same, tuple), _tasks("106 750")),
    ((_list_of_tuples, _list_of_tuples), _tasks("63 64 70 94 120 237 272 299 400 409 417 438 473 614 780")),
    ((_list_of_tuples, _same), _tasks("75 413 444 753")),
    ((_tuple_of_tuples, _tuple_of_tuples), _tasks("259 278 401 445")),
    ((_tuples_throughout, _tuples_throughout), _tasks("580 615 791")),
    ((_list_of_sets, _same), _tasks("115")),
    ((_values_are_tuples, _same), _tasks("722")),
    ((float, complex), _tasks("124")),
    ((complex, _same), _tasks("252")),
)


# ---- tasks with a rule of their own

ANY_ORDER = (
    "similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum",
    "intersection_array", "find_dissimilar", "Diff",
)  # fmt: skip
MATCHES = ("check_str", "text_match_three", "text_starta_endb")  # their references return a match or None
_CHECKERS = {
    **dict.fromkeys(ANY_ORDER, "return set(output) == set(expected)"),
    **dict.fromkeys(
        MATCHES, "return output == expected if isinstance(output, bool) else expected == (output is not None)"
    ),
    "are_equivalent": "return True",  # its statement does not say what is equivalent
    "sum_div": "return output == expected or output == 0",
    "surface_Area": """import math
    base, height = input
    upright = round(base**2 + 2 * (base * math.sqrt((base / 2) ** 2 + height**2)))  # not the slant height
    return any(abs(output - right) <= 1e-6 for right in (expected, upright))""",
    "digit_distance_nums": """one, other = map(str, input)
    width = max(len(one), len(other))
    padded = sum(abs(int(a) - int(b)) for a, b in zip(one.zfill(width), other.zfill(width)))
    return output in (expected, padded)""",
}


def _checker(name: str, entry: str, tolerance: float) -> str | None:
    body = _CHECKERS.get(entry) if name.startswith("Mbpp/") else None
    if name.startswith("HumanEval/") and entry == "find_zero":
        body = f"return abs(sum(c * float(output) ** n for n, c in enumerate(input[0]))) <= {tolerance!r}"
    return f"def check(input, output, expected):\n    {body}\n" if body else None


# ---- the outputs of canonical solutions


def written(value: object) -> str:
    """Write a value as JSON where JSON has all of it, else as a Python literal; TypeError if neither has.

    The sandbox runs this function too, so it imports what it needs.
    """
    import json
    import math

    def is_json(value: object) -> bool:
        if isinstance(value, dict):
            return all(type(name) is str for name in value) and all(map(is_json, value.values()))
        if type(value) is list:
            return all(map(is_json, value))
        return not is_long(value) and type(value) in (str, int, float, bool, type(None))

    def is_long(value: object) -> bool:
        return type(value) is int and value.bit_length() > 4000

    def literal(value: object) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(map(literal, value)) + "]"
        if isinstance(value, tuple):
            return "(" + "".join(f"{literal(item)}, " for item in value) + ")"
        if isinstance(value, set):
            return "{" + ", ".join(sorted(map(literal, value))) + "}" if value else "set()"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{literal(name)}: {literal(item)}" for name, item in value.items()) + "}"
        if isinstance(value, float) and math.isinf(value):
            return "1e999" if value > 0 else "-1e999"
        if is_long(value):  # in decimals it would take long to write and to read
            return f"{value:#x}"
        if value is None or (type(value) in (str, bytes, bool, int, float, complex) and value == value):
            return repr(value)
        raise TypeError(f"{type(value).__name__} has no literal")

    return json.dumps(value) if is_json(value) else literal(value)


def is_small(value: object, most: int) -> bool:
    """Whether a value has at most so many elements; eight characters count as one. The sandbox runs it too."""
    stack = [value]
    while stack and most >= 0:
        item = stack.pop()
        if isinstance(item, dict):
            stack += item.keys()
            stack += item.values()
        elif isinstance(item, (list, tuple, set)):
            stack += item
        most -= 1 + len(item) // 8 if isinstance(item, str) else 1
    return most >= 0


_DRIVER = f"""
import ast, io, json, sys, time
{inspect.getsource(written)}
{inspect.getsource(is_small)}
def value_of(text):
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)

task, out, answer = json.load(sys.stdin), sys.stdout, {{"outputs": []}}
sys.stdin, sys.stdout = io.StringIO(), io.StringIO()
try:
    space = {{"__name__": "reference"}}
    exec(task["code"], space)
    for text in task["inputs"]:
        given = value_of(text)
        started = time.process_time()
        value = space[task["entry"]](*given)
        seconds = time.process_time() - started
        value = value is not None if task["tells"] else value
        answer["outputs"].append([written(value) if is_small(value, {LARGEST}) else None, round(seconds, 3)])
except BaseException as error:
    answer["error"] = f"{{type(error).__name__}}: {{error}}"[:300]
json.dump(answer, out)
"""


def _outputs(drafts: list[_Draft], sandbox: str, note: Note) -> dict[str, Outputs | str]:
    """Return the outputs for each draft's key, or what is wrong with its canonical solution."""
    folder = cache() / "references"
    found: dict[str, Outputs | str] = {}
    missing: dict[str, _Draft] = {}
    for draft in drafts:
        try:
            found[draft.key] = json.loads(gzip.decompress((folder / f"{draft.key}.json.gz").read_bytes()))["outputs"]
        except (OSError, EOFError, ValueError, LookupError, TypeError, zlib.error):
            missing[draft.key] = draft
    if not missing:
        return found
    note(f"running {len(missing)} canonical solutions once, for the expected outputs; these are kept in {folder}")
    try:
        with Judge(sandbox=sandbox) as judge:
            runs = {key: judge.run(_DRIVER, stdin=draft.task, limits=REFERENCE) for key, draft in missing.items()}
            answers = {key: _answer(run.result(), len(missing[key].problem.tests)) for key, run in runs.items()}
    except JudgeError as error:
        raise SourceError(f"the canonical solutions have to be run for their outputs, and cannot be: {error}") from None
    folder.mkdir(parents=True, exist_ok=True)
    for key, answer in answers.items():
        if isinstance(answer, list):
            packed = gzip.compress(json.dumps({"outputs": answer}).encode(), 1)  # some write 100 MB
            write_whole(folder / f"{key}.json.gz", packed)
    return found | answers


def _answer(ran: Ran, tests: int) -> Outputs | str:
    """Return the outputs, or what went wrong."""
    if ran.status != "ok":
        return f"{ran.status}, {ran.message}"
    try:
        answer = json.loads(ran.stdout)
        outputs, error = [(output, float(taken)) for output, taken in answer["outputs"]], answer.get("error", "")
    except (ValueError, LookupError, TypeError, AttributeError):
        return f"it wrote {ran.stdout[:80]!r} instead of its outputs"
    if error:
        return f"test {len(outputs)}: {error}"
    if len(outputs) != tests or not all(output is None or isinstance(output, str) for output, _ in outputs):
        return f"it gave {len(outputs)} outputs for {tests} tests"
    return outputs


def _record(draft: _Draft, outputs: Outputs | str) -> Record:
    problem = draft.problem
    if isinstance(outputs, str):
        raise Dropped("reference_fails", f"the canonical solution of {problem.id} fails: {outputs}")
    missing = [output is None for output, _ in outputs]
    left_out = sum(missing)
    if left_out:
        problem.extra["base_tests"] -= sum(missing[: problem.extra["base_tests"]])
        problem.extra["left_out"] = left_out
    problem.tests = [
        Test(test.input, output, max(LEAST_S, TIMES * seconds))
        for test, (output, seconds) in zip(problem.tests, outputs, strict=True)
        if output is not None
    ]
    record = Record(problem)
    if left_out:
        record.did(f"collect: {left_out} tests left out, for their outputs are too large")
    return record
