"""Problem, Test, Solution and Verdict: the four records that everything else passes around.

They are plain dataclasses (standard library only), so the judge can load them in a bare interpreter in
milliseconds. `Problem.from_dict` and its like check what they read and say what to type instead.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import hashlib
import itertools
import json
import math
import operator
import re
import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["stdin", "function", "assert"]
Policy = Literal["exact", "robust", "paper"]
KINDS = ("stdin", "function", "assert")
POLICIES = ("exact", "robust", "paper")  # of the judge
OWN_POLICIES = (*POLICIES, "evalplus")  # that a problem may name

LANGUAGES = {  # by the names that data and people give them
    "python": "python", "python3": "python", "py": "python", "py3": "python", "cpp": "cpp", "c++": "cpp",
    "java": "java", "javascript": "javascript", "js": "javascript", "node": "javascript", "nodejs": "javascript",
    "go": "go", "golang": "go", "rust": "rust", "rs": "rust",
}  # fmt: skip

LABELS = ("easy", "medium", "hard")  # of difficulty, where a problem has one of the usual
FEW = 10  # different whole numbers that are a band each
ACCEPTED = "accepted"
VERDICTS = (
    ACCEPTED, "wrong_answer", "time_limit", "memory_limit", "output_limit", "runtime_error", "compile_error", "no_code",
    "internal_error",
)  # fmt: skip

NESTED = ("tests", "asserts", "compare", "tags", "solutions", "lineage", "extra")  # JSON text in a Parquet column
JUDGED = (  # the fields of a problem that a verdict depends on
    "id", "kind", "entry_point", "starter_code", "setup", "time_limit_s", "memory_mb", "asserts", "tests", "compare",
)  # fmt: skip

RULES: dict[str, Any] = {  # of Compare
    "tolerance": int | float, "lines": bool, "unordered": bool, "validator_flags": str, "checker": str,
}  # fmt: skip
NAME, NAMES = 100, 10_000  # characters of a name that is looked for among others, and how many others
_QUOTED = reprlib.Repr()
_QUOTED.maxstring = _QUOTED.maxother = _QUOTED.maxlong = NAME


class SchemaError(ValueError):
    """A record that cannot be used; the message says which field, why, and what would work."""


@dataclass(slots=True)
class Test:
    """One test: text in and text out for `stdin`; JSON arguments and JSON value for `function`."""

    __test__ = False  # not a pytest class

    input: str
    output: str
    time_limit_s: float | None = None  # where it is lower than the problem's; the forge sets it for small inputs


@dataclass(slots=True)
class Compare:
    """How the outputs for a problem are compared; by default as the judge's policy says."""

    policy: Policy | Literal["evalplus"] | None = None  # overrides the judge's policy for this problem
    tolerance: float | None = None  # absolute and relative, for floats (1e-6 where not given)
    lines: bool = False  # the division into lines is part of the answer
    unordered: bool = False  # lines (stdin) or elements of the returned list (function) in any order
    validator_flags: str | None = None  # ICPC: "case_sensitive space_change_sensitive float_tolerance 1e-6"
    # Python: def check(input, output, expected) -> bool, or (bool, "reason"). C++, with an #include: as with testlib.h
    checker: str | None = None


class _Marked:
    """A slot for a problem's fingerprint, which is not a field of the record."""

    __slots__ = ("_mark",)
    _mark: tuple[int, tuple[Any, ...], str]  # how many asserts there were, all that was digested, the digest


@dataclass(slots=True)
class Problem(_Marked):
    """A programming problem with its tests. Only `id` and one kind of tests are needed to judge with it."""

    id: str
    kind: Kind = "stdin"
    title: str = ""
    statement: str = ""
    starter_code: str = ""
    entry_point: str = ""  # "add" or "Solution.twoSum"
    tests: list[Test] = field(default_factory=list)
    asserts: list[str] = field(default_factory=list)  # statements, or one check(candidate) program
    setup: str = ""  # code that the asserts need (imports, helpers); never part of the answer
    time_limit_s: float | None = None
    memory_mb: int | None = None
    compare: Compare = field(default_factory=Compare)
    difficulty: str = ""
    difficulty_score: float | None = None
    source: str = ""
    platform: str = ""
    url: str = ""
    date: str = ""
    language: str = ""
    licence: str = ""
    tags: list[str] = field(default_factory=list)
    solutions: list[dict[str, str]] = field(default_factory=list)  # {code, language, verdict}
    lineage: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)  # fields that this package does not know: kept as they are

    @classmethod
    def from_dict(cls, record: dict[str, Any], strict: bool = False) -> Problem:
        """Read a problem, as `to_dict` writes it or as a row of one of our Parquet files, where lists are JSON text.

        A field with another name is kept in `extra`; SchemaError with `strict`, or where it looks like a misspelt name
        of a field that verdicts depend on.
        """
        record = {k: v for k, v in record.items() if not _nothing(v)}
        where = f"problem {quoted(record.get('id', '?'))}"
        if record.get("id") is None:
            raise SchemaError(f'a problem needs an "id"; this has {_some(record)}')
        record["id"] = str(record["id"])
        for name in NESTED:
            if isinstance(record.get(name), str) and record[name][:1] in ("[", "{"):
                with contextlib.suppress(ValueError):
                    record[name] = json.loads(record[name])
        if isinstance(record.get("tests"), str):
            record["tests"] = _json(record["tests"], where, "tests")
        for name in ("asserts", "tags", "lineage"):
            if name in record:
                found = [record[name]] if isinstance(record[name], str) else _list(record, name, where)
                record[name] = found if name in JUDGED else list(map(str, found))
        for name in (f.name for f in dataclasses.fields(cls) if f.type == "str" and f.name in record):
            if not isinstance(record[name], str) and (name in JUDGED or isinstance(record[name], list | dict | bytes)):
                raise SchemaError(f"{where}: {name} must be text, not {quoted(record[name])}")
            record[name] = str(record[name])  # a rating or a date
        if isinstance(record.get("compare"), str):
            record["compare"] = {"policy": record["compare"]}
        if strict:
            _known(cls, record, where)
        else:
            record["extra"] = _extra(cls, record, where)
        tests = [_test(t, where, n, record.get("kind", "stdin")) for n, t in enumerate(_list(record, "tests", where))]
        compare = record.get("compare", {})
        if not isinstance(compare, dict):
            raise SchemaError(f'{where}: compare must be a table such as {{"tolerance": 1e-6}}, not {quoted(compare)}')
        compare = {name: value for name, value in compare.items() if not _nothing(value)}
        _known(Compare, compare, f"{where}: compare")
        problem = cls(**{**record, "tests": tests, "compare": Compare(**compare)})
        problem.check(where)
        return problem

    def check(self, where: str = "") -> None:
        """Raise SchemaError unless the problem can be judged."""
        where = where or f"problem {quoted(self.id)}"
        if self.kind not in KINDS:
            raise SchemaError(f"{where}: kind is {quoted(self.kind)}; it must be one of {', '.join(KINDS)}")
        policy, policies = self.compare.policy, ", ".join(OWN_POLICIES)
        if policy is not None and policy not in OWN_POLICIES:
            raise SchemaError(f"{where}: compare.policy is {quoted(policy)}; it must be one of {policies}")
        if policy == "evalplus" and self.kind == "stdin":
            raise SchemaError(f"{where}: compare.policy evalplus compares returned values; a stdin problem has none")
        for name, kind in RULES.items():
            rule = getattr(self.compare, name)
            if rule is not None and (not isinstance(rule, kind) or (name == "tolerance" and not 0 <= rule < math.inf)):
                wanted = {bool: "true or false", str: "text"}.get(kind, "a number, 0 or more")
                raise SchemaError(f"{where}: compare.{name} is {quoted(rule)}; it must be {wanted}")
        if not isinstance(self.difficulty_score, int | float | None):
            raise SchemaError(f"{where}: difficulty_score is {quoted(self.difficulty_score)}; it must be a number")
        for name in ("time_limit_s", "memory_mb"):
            value = getattr(self, name)
            if value is not None and not _limit(value):
                raise SchemaError(f"{where}: {name} is {quoted(value)}; it must be a positive number")
        if not all(isinstance(a, str) for a in self.asserts):
            raise SchemaError(f'{where}: "asserts" must be a list of Python statements')
        if self.kind == "assert":
            if not self.asserts:
                raise SchemaError(f'{where}: kind is "assert" but "asserts" is empty')
        else:
            if not self.tests:
                raise SchemaError(f'{where}: kind is {self.kind!r} but "tests" is empty, so nothing can be judged')
            if self.kind == "function" and not self.entry_point:
                raise SchemaError(f'{where}: a function problem needs "entry_point", such as "add" or "Solution.add"')

    def fingerprint(self) -> str:
        """Digest of all fields that judging depends on: problems with the same digest get the same verdicts.

        It is cached together with the immutable objects it was made of. While the problem holds the same objects, the
        cached digest is valid, and megabytes of tests need not be hashed again.
        """
        limits = [test.time_limit_s for test in self.tests]
        rules, own = self.compare, (self.id, self.kind, self.entry_point, self.starter_code, self.setup)
        parts = (
            *own, self.time_limit_s, self.memory_mb, rules.policy, rules.tolerance, rules.lines, rules.unordered,
            rules.validator_flags, rules.checker, *self.asserts, *(s for t in self.tests for s in (t.input, t.output)),
            *(limits if any(limits) else ()),
        )  # fmt: skip
        count, known, digest = getattr(self, "_mark", (-1, (), ""))
        if count == len(self.asserts) and len(known) == len(parts) and all(map(operator.is_, known, parts)):
            return digest
        digest = _digest(len(self.asserts), parts)
        self._mark = (len(self.asserts), parts, digest)  # type: ignore[misc]  # mypy overlooks the slot of the base
        return digest

    def size(self) -> int:
        """Approximate size of the tests in bytes."""
        return sum(len(t.input) + len(t.output) for t in self.tests) + sum(map(len, self.asserts))

    def to_dict(self) -> dict[str, Any]:
        record = _without_defaults(self)
        extra = dict(record.pop("extra", {}))
        if apart := {name: extra.pop(name) for name in self.__slots__ if name in extra}:  # no fields of ours
            record["extra"] = apart
        return {**extra, **record}


@dataclass(slots=True)
class Solution:
    """A program to judge: `code`, or a model's whole `completion` with the code in a fenced block."""

    problem_id: str
    code: str | None = None
    completion: str | None = None
    id: str = ""
    language: str = "python"

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Solution:
        # Further fields (the model's name, a seed, a score) are the user's own and are not looked at.
        record = {k: v for k, v in record.items() if not _nothing(v)}
        if record.get("problem_id") is None:
            raise SchemaError(f'a solution needs a "problem_id"{nearest("problem_id", record)}')
        given = [k for k in ("code", "completion") if record.get(k) is not None]
        if len(given) != 1:
            raise SchemaError(
                'a solution needs exactly one of "code" and "completion"; it has '
                + (" and ".join(given) or quoted(list(record)))
            )
        if not isinstance(record[given[0]], str):
            raise SchemaError(f'"{given[0]}" must be text, not {type(record[given[0]]).__name__}')
        ident = record.get("id")
        return cls(
            problem_id=str(record["problem_id"]),
            code=record.get("code"),
            completion=record.get("completion"),
            id="" if ident is None else str(ident),
            language=language_named(record.get("language")),
        )


@dataclass(slots=True)
class TestVerdict:
    """The verdict on one test, with the time and memory used."""

    __test__ = False

    verdict: str
    strategy: str = ""  # the comparison that accepted
    cpu_s: float = 0.0
    wall_s: float = 0.0
    memory_mb: float = 0.0
    message: str = ""
    also: str = ""  # the verdict under the judge's second policy, where it has one
    also_message: str = ""


@dataclass(slots=True)
class Verdict:
    """The verdict on one solution, with those of its tests."""

    verdict: str
    problem_id: str = ""
    id: str = ""
    tests: list[TestVerdict] = field(default_factory=list)
    strategy: str = ""  # the most lenient comparison that was needed to accept
    cpu_s: float = 0.0  # over all tests that ran
    wall_s: float = 0.0
    memory_mb: float = 0.0  # the largest of any test
    message: str = ""  # the first difference, the exception, the limit
    sandbox: str = ""  # "full", "landlock" or "rlimits"
    inside: bool = False  # a test had to run inside the candidate's process: a weaker promise
    also: str = ""  # the verdict under the judge's second policy, where it has one
    also_message: str = ""
    digest: str = ""  # of the problem, the program and the settings, where verdicts are kept to go on later

    @property
    def accepted(self) -> bool:
        return self.verdict == ACCEPTED

    def to_dict(self) -> dict[str, Any]:
        record = dataclasses.asdict(self)
        for part in (record, *record["tests"]):
            for name in ("cpu_s", "wall_s", "memory_mb"):
                part[name] = round(part[name], 4)
            for name in ("also", "also_message", "digest"):
                if not part.get(name, True):
                    del part[name]
        return {"id": record.pop("id"), "problem_id": record.pop("problem_id"), **record}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Verdict:
        _known(cls, record, "verdict")
        tests = [TestVerdict(**t) for t in record.get("tests", [])]
        return cls(**{**record, "tests": tests})


def language_named(name: str | None) -> str:
    """A language that can be judged, such as "python", for any of its names; SchemaError for others."""
    if name is None or name == "":
        return "python"
    if not isinstance(name, str) or name.lower() not in LANGUAGES:
        *some, last = dict.fromkeys(LANGUAGES.values())
        raise SchemaError(f"language is {quoted(name)}; programs in {', '.join(some)} and {last} can be judged")
    return LANGUAGES[name.lower()]


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known name closest to `word`, or nothing.

    Only names are looked at: difflib takes the product of two lengths, and either side may be foreign text.
    """
    names = [name for name in itertools.islice(known, NAMES) if len(name) <= NAME]
    close = [name for name in names if name.rpartition("/")[2] == word][:1]  # abc374_a for livecodebench/abc374_a
    if not close and len(word) <= NAME:
        close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def quoted(value: Any) -> str:
    """The repr of a value for an error message, shortened in the middle if it is long."""
    return _QUOTED.repr(value)


def _digest(count: int, parts: tuple[Any, ...]) -> str:
    """Digest a list of plain values, each with its type and length, so that different lists differ."""
    found = hashlib.blake2b(b"%d %d " % (count, len(parts)), digest_size=32)
    for part in parts:
        if isinstance(part, str):
            kind, data = b"s", part.encode("utf-8", "surrogatepass")
        elif part is None or isinstance(part, bool):
            kind, data = b"b", str(part).encode()
        elif isinstance(part, int):
            kind, data = b"i", hex(part).encode()
        elif isinstance(part, float):
            kind, data = b"f", float.hex(part).encode()
        else:
            raise TypeError(f"a problem holds a {type(part).__name__} where text or a number belongs: {part!r:.80}")
        found.update(b"%s%d " % (kind, len(data)))
        found.update(data)
    return found.hexdigest()


def bands(problems: Iterable[Problem]) -> list[str]:
    """Difficulty band of each problem: its label, else a band of its score, else "".

    Where the scores without a label are a few whole numbers, each is a band ("3"); else bands are fifths of what the
    scores span, with round edges: "0.2-0.4" for scores from 0 to 1, "1000-2000" for ratings. Labels that are more than
    ten different numbers, such as ratings, are put into bands in the same way.
    """
    problems = list(problems)
    labels = {p.difficulty for p in problems if re.fullmatch(r"-?\d{1,9}(\.\d+)?", p.difficulty)}
    ratings = {label: float(label) for label in labels} if len(labels) > FEW else {}
    own = [p.difficulty_score for p in problems if not p.difficulty]
    scores = [score if score is not None and math.isfinite(score) else None for score in own]
    banded, rated = _banded(scores), dict(zip(ratings, _banded(ratings.values()), strict=True))
    return [rated.get(p.difficulty, p.difficulty) or next(banded) for p in problems]


def in_order(names: Iterable[str]) -> list[str]:
    """Sort bands from easy to hard: the usual labels, then numbers by size, then the rest by name."""

    def place(name: str) -> tuple[int, float, str]:
        if name in LABELS:
            return 0, LABELS.index(name), ""
        try:
            return 1, float(re.split(r"(?<=\d)-", name)[0]), ""
        except ValueError:
            return 2, 0.0, name

    return sorted(set(names), key=place)


def _banded(scores: Iterable[float | None]) -> Iterator[str]:
    """The band of each score, one after the other; "" for None."""
    scores = list(scores)
    known = {score for score in scores if score is not None}
    whole = len(known) <= FEW and all(score == int(score) for score in known)
    width = 0.2
    most = max(map(abs, known), default=0.0)
    if most > 1:
        power = 10.0 ** math.floor(math.log10(most / 5))
        width = next(power * step for step in (1, 2, 5, 10) if power * step * 5 >= most)
    for score in scores:
        if score is None or whole:
            yield "" if score is None else f"{score:g}"
            continue
        step = math.floor(round(score / width, 9))
        if width == 0.2 and step == 5:  # 1 is the end of the last band, not a band of its own
            step = 4
        yield f"{round(step * width, 9):g}-{round((step + 1) * width, 9):g}"


def _known(cls: Any, record: dict[str, Any], where: str) -> None:
    names = [f.name for f in dataclasses.fields(cls)]
    for key in record:
        if key not in names:
            hint = nearest(key, names) or f"; known are {', '.join(names)}"
            raise SchemaError(f"{where}: unknown field {quoted(key)}{hint}")


def _extra(cls: Any, record: dict[str, Any], where: str) -> dict[str, Any]:
    """Take the fields with unknown names out of `record`, unless one is a misspelt name of a field that matters."""
    names = [f.name for f in dataclasses.fields(cls)]
    given = record.pop("extra", {})
    found = dict(given) if isinstance(given, dict) else {"extra": given}
    for key in [key for key in record if key not in names]:
        for name in JUDGED:
            if name not in record and len(key) <= NAME and difflib.SequenceMatcher(None, key, name).ratio() > 0.85:
                raise SchemaError(f"{where}: unknown field {quoted(key)}; did you mean {name!r}?")
        found[key] = record.pop(key)
    plain: dict[str, Any] = json.loads(json.dumps(found, default=str))  # a Parquet file may hold dates and bytes
    return plain


def _nothing(value: Any) -> bool:
    """Whether a field is left out: None, or NaN, which pandas has in the place of None."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _limit(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e6


def _some(record: dict[str, Any]) -> str:
    """The names of a record's fields, for a message: the first of them where there are many."""
    names = [str(name)[:NAME] for name in itertools.islice(record, 8)]
    more = len(record) - len(names)
    return (", ".join(names) or "no field at all") + (f" and {more} more" if more else "")


def _json(text: str, where: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SchemaError(f'{where}: "{name}" is text but not JSON: {error}') from None


def _list(record: dict[str, Any], name: str, where: str) -> list[Any]:
    value = record.get(name, [])
    if not isinstance(value, (list, tuple)):
        raise SchemaError(f'{where}: "{name}" must be a list, not {type(value).__name__}')
    return list(value)


def _test(record: Any, where: str, n: int, kind: Any) -> Test:
    if isinstance(record, Test):
        return record
    there = [name for name in ("input", "output") if isinstance(record, dict) and name in record]
    if len(there) < 2 or (kind == "stdin" and any(_nothing(record[name]) for name in there)):
        raise SchemaError(f'{where}: test {n} must be an object with "input" and "output", not {quoted(record)}')
    given, wanted = (_text(record[name], kind) for name in ("input", "output"))
    limit = record.get("time_limit_s")
    if limit is not None and not _limit(limit):
        raise SchemaError(f"{where}: time_limit_s of test {n} is {quoted(limit)}; it must be a positive number")
    return Test(given, wanted, limit)


def _text(value: Any, kind: Any) -> str:
    if kind == "stdin" and isinstance(value, list) and all(isinstance(line, str | int | float) for line in value):
        return "\n".join(_text(line, kind) for line in value)  # its lines
    return value if isinstance(value, str) else json.dumps(value)


def _without_defaults(record: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for f in dataclasses.fields(record):
        value = getattr(record, f.name)
        default = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
        if value == default:
            continue
        if dataclasses.is_dataclass(value):
            value = _without_defaults(value)
        elif isinstance(value, list):
            value = [_without_defaults(v) if dataclasses.is_dataclass(v) else v for v in value]
        out[f.name] = value
    return out
