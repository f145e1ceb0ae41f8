"""The folder of an evaluation: conditions, samples, verdicts, scores.

    bench.json        the conditions: an evaluation is resumed only under the same ones
    samples.jsonl     a line for each sample, appended as it is finished
    verdicts.jsonl    a line for each sample and limit: `verdict` under robust, `also` under exact
    scores.json       the results; report.md and table.tex are made from it

The id of a verdict is PROBLEM#NUMBER@LIMIT; the limit is 0 if none was set. Ids without `@0`, from folders of versions
before 0.2, are read too. A process that is killed leaves at most one incomplete line at the end of each file; the next
writer removes it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from ..files import FileError, VerdictLog, json_line
from ..runs.disk import RunError, release_lock, take_lock, write_whole
from ..schema import ACCEPTED, Verdict
from . import tables
from .score import POLICIES, compare, on_base_tests, outcomes
from .suite import EvaluationError, Mark, Sample, check_temperature

MADE = ("bench.json", "samples.jsonl", "verdicts.jsonl", "scores.json", "report.md", "table.tex")
ENDS = 1 << 20  # bytes at the beginning and at the end of a file of weights that its fingerprint covers
OF_A_MODEL = (".safetensors", ".bin", ".json", ".jinja", ".model")
VERDICTS_DEPEND_ON = (
    "time_limit_s", "time_factor", "memory_mb", "output_mb", "reuse", "stop_at_first_failure", "sandbox",
)  # fmt: skip


@dataclass(frozen=True)
class Ask:
    """The conditions of an evaluation: everything that samples and verdicts depend on. A change forbids resuming."""

    model: str  # its name as given; or the file of completions
    weights: str  # fingerprint of the weights or of the file; or a server's address
    suite: str
    digest: str  # of its problems
    style: str  # of the prompts: a name in microcoder.prompts.STYLES
    chat: dict[str, Any]  # arguments of the chat template
    source: str  # graph, transformers, vllm, server, file
    tries: int
    temperature: float | None  # None: not known, as of a file
    top_p: float
    top_k: int
    limits: tuple[int, ...]  # ascending; 0: none was set
    seed: int | None
    chunk: int  # number of problems that share one seed
    judge: dict[str, Any]  # settings of the judge that verdicts depend on

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "limits": list(self.limits)}

    def check(self) -> Ask:
        """Return itself, or raise EvaluationError if a model cannot be sampled under these conditions."""
        if not self.limits or list(self.limits) != sorted(set(self.limits)) or min(self.limits) < 1:
            named = ", ".join(map(str, self.limits)) or "nothing"
            raise EvaluationError(f"limits of {named}; name each once, from 1 on: --limit 4096,8192")
        temperature = self.temperature or 0.0
        check_temperature(temperature)
        if temperature == 0 and self.tries > 1:
            raise EvaluationError(
                f"at temperature 0 all {self.tries} samples are the same; ask for one sample, or leave 0 out"
            )
        return self


def differences(known: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    """List the conditions that differ, such as `tries: 4 there, 8 now`."""

    def shorten(value: Any) -> str:
        return str(value) if len(str(value)) <= 60 else f"{str(value)[:57]}..."

    names = [*known, *(name for name in asked if name not in known)]
    return [
        f"{name}: {shorten(known.get(name))} there, {shorten(asked.get(name))} now"
        for name in names
        if known.get(name) != asked.get(name)
    ]


def conditions(judge: dict[str, Any]) -> dict[str, Any]:
    """Pick the options of Judge that verdicts depend on."""
    return {name: judge[name] for name in VERDICTS_DEPEND_ON}


def slug(name: str) -> str:
    """Turn a name into a folder name."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")


def fingerprint(path: str | Path) -> str:
    """Hash a file, or a folder of weights by names, sizes and ends of its files. Return a hub id unchanged."""
    path = Path(path)
    if not path.exists():
        return str(path)
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    digest = hashlib.sha256()
    for file in sorted(p for p in path.iterdir() if p.is_file() and p.suffix in OF_A_MODEL):
        size = file.stat().st_size
        with open(file, "rb") as stream:
            head = stream.read(ENDS)
            stream.seek(max(0, size - ENDS))
            digest.update(f"{file.name} {size} ".encode() + head + stream.read(ENDS))
    return digest.hexdigest()[:16]


class ResultFolder:
    """An evaluation's folder, open for writing by one process. `samples` and `verdicts.done` are its contents by id."""

    def __init__(self, path: str | Path, ask: Ask, fresh: bool = False) -> None:
        self.path, self.ask = Path(path), ask
        self.samples: dict[str, Sample] = {}
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = take_lock(self.path, "name another folder with -o")
        except OSError as error:
            raise EvaluationError(f"{path} cannot be made: {error.strerror}; name another folder with -o") from None
        except RunError as error:
            raise EvaluationError(str(error)) from None
        try:
            self._begin(fresh)
            self._file: IO[bytes] = open(self.path / "samples.jsonl", "a+b")
            self._recover()
            self.verdicts = VerdictLog(self.path / "verdicts.jsonl")
        except FileError as error:
            release_lock(self._lock)
            raise EvaluationError(str(error)) from None
        except BaseException:
            release_lock(self._lock)
            raise

    def add(self, sample: Sample) -> Sample:
        """Append a sample to the file and flush it, so that it survives a kill of this process. Return it."""
        default, needed = asdict(Sample("", 0, "")), ("problem_id", "number", "text")
        line = {name: value for name, value in asdict(sample).items() if name in needed or value != default[name]}
        self._file.write(json_line(line))
        self._file.flush()
        self.samples[sample.id] = sample
        return sample

    def add_verdict(self, verdict: Verdict) -> None:
        """Append a verdict to the file, and store it by its id."""
        self.verdicts.append(verdict)
        self.verdicts.done[verdict.id] = verdict

    def write(self, name: str, text: str) -> None:
        write_whole(self.path / name, text.encode("utf-8", "replace"))

    def close(self) -> None:
        self._file.close()
        self.verdicts.close()
        release_lock(self._lock)

    def __enter__(self) -> ResultFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, fresh: bool) -> None:
        file, asked = self.path / "bench.json", self.ask.to_dict()
        known = None if fresh else _read_conditions(file)
        if known is None:
            if not fresh and any((self.path / name).exists() for name in MADE):
                files = f"{self.path} holds files of an evaluation, but no bench.json"
                raise EvaluationError(f"{files}; name another folder with -o")
            for name in MADE:
                (self.path / name).unlink(missing_ok=True)
            write_whole(file, json.dumps(asked, indent=1).encode() + b"\n")
        elif found := differences(known, asked):
            lines = "\n".join(f"  {line}" for line in found)
            raise EvaluationError(
                f"{self.path} holds an evaluation under other conditions:\n{lines}\n"
                "Name another folder with -o, or start this one over with --fresh."
            )

    def _recover(self) -> None:
        good = 0
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                self._file.truncate(good)
                break
            sample = as_sample(self.path / "samples.jsonl", number, line)
            self.samples[sample.id] = sample
            good += len(line)
        self._file.seek(0, os.SEEK_END)


@dataclass(frozen=True, repr=False)
class Scores:
    """The scores of an evaluation under one limit and policy, for all tests or the base tests of EvalPlus; `at` gives
    the others. `print` shows all tables.
    """

    folder: Path
    result: dict[str, Any]  # the contents of scores.json: the conditions and all scores
    limit: int  # tokens in a response; 0: none was set
    policy: str = "robust"
    tests: str = "all"  # or "base"

    @property
    def accuracy(self) -> float | None:
        """The mean over problems of the share of accepted samples; None if nothing was judged."""
        found: float | None = self._of_policy["accuracy"]
        return found

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the accuracy over problems; None if all score the same, or if there is only one."""
        low, high = self._of_policy["low"], self._of_policy["high"]
        return None if low is None or low == high else (low, high)

    @property
    def by_difficulty(self) -> dict[str, dict[str, Any]]:
        """{label or band: {"accuracy", "low", "high", "problems"}}, from easy to hard."""
        return {name: cell for name, cell in self._of_policy["table"]["all"].items() if name != "all"}

    @property
    def problems(self) -> int:
        """The number of problems that were scored."""
        return int(self._of_policy["problems"])

    @property
    def samples(self) -> list[dict[str, Any]]:
        """A row for each sample: "problem_id", "number", "completion", "verdict", "message", "tokens", "truncated"."""
        texts = {sample.id: sample for sample in read_samples(self.folder / "samples.jsonl")}
        return [
            {
                "problem_id": mark.problem_id,
                "number": mark.number,
                "completion": texts[mark.id].text[: texts[mark.id].cuts.get(str(self.limit))],
                "verdict": getattr(mark, self.policy),
                "message": getattr(mark, f"{self.policy}_message"),
                "tokens": mark.tokens,
                "truncated": mark.truncated,
            }
            for mark in self.marks
            if mark.limit == self.limit
        ]

    @property
    def limits(self) -> list[int]:
        """The limits that samples were scored under, in ascending order."""
        return list(self.result["limits"])

    def at(self, limit: int | None = None, policy: str | None = None, tests: str | None = None) -> Scores:
        """Return the scores under another limit or policy ("exact", "robust"), or for other tests ("all", "base")."""
        if tests not in (None, "all", "base"):
            raise EvaluationError(f"there are no tests {tests!r}; give all or base")
        if tests == "base" and "base_tests" not in self.result:
            raise EvaluationError(f"{self.folder}: {self.result['suite']} has no base tests; leave them out")
        if policy not in (None, *POLICIES):
            raise EvaluationError(f"there is no policy {policy!r} here; it must be one of {', '.join(POLICIES)}")
        if limit is not None and limit not in self.limits:
            raise EvaluationError(f"{self.folder} has limits {self.limits}, not {limit}")
        limit = self.limit if limit is None else limit
        return replace(self, limit=limit, policy=policy or self.policy, tests=tests or self.tests)

    def outcomes(self) -> dict[str, list[float]]:
        """{problem: 1 or 0 for each sample that was judged}."""
        marks = [mark for mark in self.marks if mark.limit == self.limit]
        return outcomes(on_base_tests(marks) if self.tests == "base" else marks, self.policy)

    @cached_property
    def marks(self) -> list[Mark]:
        """The verdicts on every sample under every limit."""
        samples = read_samples(self.folder / "samples.jsonl")
        base = self.result.get("base_tests", {})
        return marks_of(samples, _read_verdicts(self.folder / "verdicts.jsonl"), self.limits, base)

    @property
    def _of_policy(self) -> dict[str, Any]:
        at = self.result["scores"][str(self.limit)]
        found: dict[str, Any] = (at["base"] if self.tests == "base" else at)[self.policy]
        return found

    def __str__(self) -> str:
        return tables.text(self.result)

    def __repr__(self) -> str:
        limit = f", limit {self.limit}" if self.limit else ""
        found = f"{self.policy} {tables.cell_text(self._of_policy)}, in %{limit}"
        return f"<Scores of {tables.headline(self.result)}: {found}>"


def read_scores(path: str | Path) -> Scores:
    """Read a finished evaluation; raise EvaluationError for one that is not finished."""
    folder = Path(path)
    ask = _read_conditions(folder / "bench.json")
    if ask is None:
        inside = sorted(file.parent for file in folder.glob("**/bench.json")) if folder.is_dir() else []
        hint = f"; did you mean {inside[0]}?" if inside else "; to make one: microcoder eval MODEL --suite ..."
        raise EvaluationError(f"{path} holds no evaluation{hint}")
    result = read_json(folder / "scores.json")
    if result is None:
        raise EvaluationError(f"the evaluation in {path} is not finished; run its command again, and it goes on")
    found = Scores(folder, {**result, **ask}, max(ask["limits"]))
    _ = found.marks  # raises if a sample has no verdict
    return found


def compare_scores(
    before: Scores | Sequence[Scores],
    after: Scores | Sequence[Scores],
    limit: int | None = None,
    policy: str = "robust",
    tests: str = "all",
) -> tuple[dict[str, Any], list[str]]:
    """Compare two evaluations, or two lists of them, problem by problem: the result of `compare`, and a list of notes.

    limit   all must have it; without it the largest that all have
    tests   all, or base: the base tests of EvalPlus alone
    notes   the conditions that differ
    """
    sides = [[side] if isinstance(side, Scores) else list(side) for side in (before, after)]
    every = [scores for side in sides for scores in side]
    shared = set.intersection(*(set(scores.limits) for scores in every))
    if limit is None and not shared:
        limits = " and ".join(dict.fromkeys(str(scores.limits) for scores in every))
        raise EvaluationError(f"they have no limit in common: {limits}")
    limit = max(shared) if limit is None else limit
    sides = [[scores.at(limit, policy, tests) for scores in side] for side in sides]
    notes = []
    for name in ("digest", "style", "chat", "temperature", "top_p", "top_k", "tries", *VERDICTS_DEPEND_ON):
        if len(values := dict.fromkeys(str({**s.result["judge"], **s.result}.get(name)) for s in every)) > 1:
            words = f"judge.{name}" if name in VERDICTS_DEPEND_ON else name
            notes.append(
                "their problems are not all the same" if name == "digest" else f"{words}: {' and '.join(values)}"
            )
    asked = {"limit": limit, "policy": policy, "tests": tests}
    return {**asked, **compare(*([scores.outcomes() for scores in side] for side in sides))}, notes


def marks_of(
    samples: Iterable[Sample], verdicts: Mapping[str, Verdict], limits: Sequence[int], base: Mapping[str, int]
) -> list[Mark]:
    """Return the mark of every sample under every limit. `base`: how many of a problem's first tests are base tests."""
    found = []
    for sample in sorted(samples, key=lambda sample: (sample.problem_id, sample.number)):
        for limit in limits:
            verdict = verdict_of(sample, limit, verdicts)
            if verdict is None:
                raise EvaluationError(f"{sample.id} was not judged; run the command again, and it goes on")
            over = bool(limit and sample.tokens is not None and sample.tokens > limit)
            mark = Mark(
                sample.problem_id,
                sample.number,
                limit,
                robust=verdict.verdict,
                exact=verdict.also or verdict.verdict,
                strategy=verdict.strategy,
                robust_message=verdict.message,
                exact_message=verdict.also_message,
                tokens=limit if over else sample.tokens,
                truncated=over or sample.truncated,
            )
            if sample.problem_id in base:
                tests = base[sample.problem_id]
                robust = _on_first_tests(mark.robust, mark.robust_message, tests)
                exact = _on_first_tests(mark.exact, mark.exact_message, tests)
                mark = replace(mark, robust_base=robust, exact_base=exact)
            found.append(mark)
    return found


def _on_first_tests(verdict: str, message: str, tests: int) -> str:
    """Return the verdict on the first tests alone; the message of a verdict names the first test that failed."""
    failed = re.match(r"test (\d+): ", message)
    return ACCEPTED if failed and int(failed[1]) >= tests else verdict


def verdict_id(sample: Sample, limit: int) -> str:
    return f"{sample.id}@{limit}"


def verdict_of(sample: Sample, limit: int, verdicts: Mapping[str, Verdict]) -> Verdict | None:
    """Find the verdict of a sample by its id. For limit 0 also try the id of versions before 0.2."""
    return verdicts.get(verdict_id(sample, limit)) or (None if limit else verdicts.get(sample.id))


def _read_conditions(path: Path) -> dict[str, Any] | None:
    """Read bench.json; None if there is no such file. Up to 0.2 there was no chat, and the style code had no name."""
    found = read_json(path)
    if found is not None and found.get("style") == "microcoder":
        found["style"] = "code"
    return found if found is None else {"chat": {}, **found}


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON object from a file; None if there is no such file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        remedy = "start over with --fresh, or name another folder"
        raise EvaluationError(f"{path} cannot be read ({error}); {remedy}") from None
    if not isinstance(found, dict):
        raise EvaluationError(f"{path} holds no object; start over with --fresh, or name another folder")
    return found


def read_samples(path: Path) -> list[Sample]:
    """Read the samples; skip an incomplete last line."""
    return [as_sample(path, number, line) for number, line in enumerate(_lines(path), 1)]


def as_sample(path: Path, number: int, line: bytes) -> Sample:
    try:
        return Sample(**json.loads(line))
    except (ValueError, TypeError):
        raise EvaluationError(f"{path}:{number} is no sample; remove that line, or start over with --fresh") from None


def _read_verdicts(path: Path) -> dict[str, Verdict]:
    found = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            verdict = Verdict.from_dict(json.loads(line))
        except (ValueError, TypeError, AttributeError):
            raise EvaluationError(f"{path}:{number} is no verdict; start over with --fresh") from None
        found[verdict.id] = verdict
    return found


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\n")[:-1]  # the last piece is empty, or an incomplete line
    except OSError as error:
        raise EvaluationError(f"cannot read {path}: {error.strerror}") from None
