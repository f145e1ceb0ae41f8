"""CodeReward: problems and completions in, rewards out. TRL takes it as a reward function as it is.

Shapes, and what each invites a model to do:

    all             1 if every test passes, else 0. It invites to solve the problem, and nothing else. (default)
    share           the share of tests that pass. It invites to answer the common case, or a constant that many tests
                    share, and to leave the hard case; a group in which all fail still differs.
    prefix          the share of tests before the first that fails. As `share`, but for the first tests only; as cheap
                    as `all`, since a program stops at its first failure.
    first:K         1 if the first K tests pass, else 0. Cheap. It invites to do what the first tests look at: where
                    they are the statement's examples, to answer the examples.
    first:K:share   the share of the first K tests that pass. Both invitations together.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from ..files import load_problems
from ..judge.asserts import count_tests, first_tests
from ..judge.base import Judging
from ..schema import VERDICTS, Problem, SchemaError, Solution, Verdict, language_named, nearest
from .shared import JudgeSetting, options_of, shared_judge

SHAPES = ("all", "share", "prefix", "first:K", "first:K:share")
COLUMNS = ("problem", "ground_truth", "reward_model", "id", "extra_info")  # those that a problem is found by
TEXTS = 256  # problems kept that were given as text

Completion = str | Sequence[Mapping[str, Any]]
Problems = str | os.PathLike[str] | Iterable[Problem] | Mapping[str, Problem]
Reward = float | None


@dataclasses.dataclass(frozen=True)
class RewardShape:
    """How a verdict becomes a reward."""

    name: str
    first: int = 0  # only so many tests are run; 0 for all
    partial: bool = False  # part of the reward for part of the tests
    stops: bool = True  # whether a program may stop at its first failed test

    @classmethod
    def named(cls, name: str) -> RewardShape:
        """Return the shape of a name; raise ValueError with the names that exist."""
        word, _, rest = name.partition(":")
        count, _, share = rest.partition(":")
        if name in ("all", "prefix"):
            return cls(name, partial=name == "prefix")
        if name == "share":
            return cls(name, partial=True, stops=False)
        if word == "first" and count.isdecimal() and int(count) > 0 and share in ("", "share") and name[-1] != ":":
            return cls(name, int(count), share == "share", share == "")
        hint = nearest(name, SHAPES) or f"; it is one of {', '.join(SHAPES)}, such as first:3"
        raise ValueError(f"shape is {name!r}{hint}")

    def problem(self, problem: Problem) -> Problem:
        """Return the problem with the tests that count."""
        if not self.first:
            return problem
        asserts = first_tests(problem.asserts, problem.setup, self.first) if problem.asserts else []
        return dataclasses.replace(problem, tests=problem.tests[: self.first], asserts=asserts, solutions=[], extra={})

    def reward(self, problem: Problem, verdict: Verdict) -> Reward:
        """Return the reward for a verdict on `self.problem(...)`; None if the judge is at fault."""
        if verdict.verdict == "internal_error":
            return None
        if not self.partial or verdict.accepted:
            return float(verdict.accepted)
        known = len(problem.tests) or count_tests(problem.asserts, problem.entry_point, problem.setup)
        count = max(known, len(verdict.tests), 1)
        accepted = [test.verdict == "accepted" for test in verdict.tests]
        if self.stops and not all(accepted):
            accepted = accepted[: accepted.index(False)]  # an open judge may have gone on
        passed = sum(accepted)
        return min(passed, count - 1) / count


class CodeReward:
    """Rewards for completions, from the verdicts of a judge.

    Args:
        problems: A file, such as `microcoder data run` writes, or Problems. Not needed where the data set has the
            problems in a column, as trl.parquet and verl.parquet have.
        judge: Where and how programs are judged: `"here"`, `"http://HOST:8422"` (`microcoder serve`), `"ray:auto"`, or
            settings of [judge] as names and values, such as `{"workers": 4, "time_limit_s": 2.0}`. An open judge is
            used as it is, and left open; it must not stop at the first failure where the shape is a share.
        shape: `"all"`, `"share"`, `"prefix"`, `"first:K"` or `"first:K:share"`; see `microcoder.rewards.reward`.
        language: `"python"`; for stdin problems also `"cpp"`, `"java"`, `"javascript"`, `"go"` or `"rust"`.
        name: The name in logs.
    """

    def __init__(
        self,
        problems: Problems | None = None,
        *,
        judge: JudgeSetting | Judging = "here",
        shape: str = "all",
        language: str = "python",
        name: str = "code_reward",
    ) -> None:
        self.shape = RewardShape.named(shape)
        self.language = language_named(language)
        self.problems = {} if problems is None else problems_by_id(problems)
        self.judge: Judging | dict[str, Any]
        if isinstance(judge, Judging):
            self.judge = judge
        else:
            self.judge = options_of(judge, stop_at_first_failure=self.shape.stops)
        self.__name__ = name

    def __call__(
        self,
        completions: Sequence[Completion],
        prompts: Any = None,
        *,
        log_metric: Callable[[str, float], None] | None = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        **columns: Any,
    ) -> list[Reward]:
        """Return a reward for each completion: a number, or None where the judge is at fault.

        Args:
            completions: Texts, or chat messages whose last one by the assistant counts.
            prompts: Not looked at; TRL gives them.
            log_metric: Is called with the share of each verdict, such as `"code_reward/accepted"`.
            log_extra: Is called with a column of all verdicts.
            **columns: A list each, with a value for each completion. A problem is found by `id` among `problems`, or
                is itself in `problem` (trl.parquet) or `reward_model` (verl.parquet). Others are not looked at.
        """
        problems = self.find(len(completions), columns)
        return self._rewards(problems, self.verdicts(problems, completions), log_metric, log_extra)

    def verdicts(self, problems: Sequence[Problem], completions: Sequence[Completion]) -> list[Verdict]:
        """Return a verdict for each completion on the problem in the same place. All are judged at the same time."""
        judge = self.opened()
        futures = self._submit(judge, problems, completions)
        try:
            return [future.result() for future in futures]
        except BaseException:  # Ctrl-C: nobody waits for the rest
            for future in futures:
                judge.drop(future)
            raise

    async def averdicts(self, problems: Sequence[Problem], completions: Sequence[Completion]) -> list[Verdict]:
        """`verdicts` for coroutines."""
        judge = await asyncio.to_thread(self.opened)
        futures = await asyncio.to_thread(self._submit, judge, problems, completions)
        try:
            return list(await asyncio.gather(*map(asyncio.wrap_future, futures)))
        except BaseException:
            for future in futures:
                judge.drop(future)
            raise

    def score(self, problem: Problem, verdict: Verdict) -> Reward:
        """Return the reward for a verdict; None where the judge is at fault."""
        return self.shape.reward(self.shape.problem(problem), verdict)

    def opened(self) -> Judging:
        """Return the judge, which all rewards of this process with the same settings share."""
        return self.judge if isinstance(self.judge, Judging) else shared_judge(self.judge)

    def find(self, count: int, columns: Mapping[str, Any]) -> list[Problem]:
        """Return the problems of so many rows; raise SchemaError if one cannot be found."""
        known = {name: columns[name] for name in COLUMNS if columns.get(name) is not None}
        for name, values in known.items():
            if isinstance(values, str) or len(values) != count:
                raise SchemaError(f"{name}= must be a list with a value for each of the {count} completions")
        return [self._find({name: values[n] for name, values in known.items()}, columns) for n in range(count)]

    def _find(self, row: dict[str, Any], columns: Mapping[str, Any]) -> Problem:
        about, model = row.get("extra_info"), row.get("reward_model")
        ident = row.get("id")
        if ident is None and isinstance(about, Mapping):
            ident = about.get("id")
        if ident is not None and str(ident) in self.problems:
            return self.problems[str(ident)]
        given = row.get("problem") or row.get("ground_truth")
        given = given or (model.get("ground_truth") if isinstance(model, Mapping) else model)
        if given:
            return problem_of(given)
        if ident is None:
            have = ", ".join(sorted(columns)) or "none"
            raise SchemaError(
                f"no column tells the problem: `problem` (as in trl.parquet) or `id` is needed; there are: {have}"
            )
        if not self.problems:
            raise SchemaError(
                f'problem {ident!r} is not known; give a file of problems: CodeReward("problems.parquet")'
            )
        hint = nearest(str(ident), self.problems)
        raise SchemaError(f"problem {ident!r} is not among the {len(self.problems):,} given{hint}")

    def _submit(
        self, judge: Judging, problems: Sequence[Problem], completions: Sequence[Completion]
    ) -> list[Future[Verdict]]:
        """Queue all completions. Equal ones of one problem are judged once."""
        shaped: dict[int, Problem] = {}
        known: dict[tuple[int, str], Future[Verdict]] = {}
        found = []
        for problem, completion in zip(problems, completions, strict=True):
            key = id(problem), text_of(completion)
            if key not in known:
                if key[0] not in shaped:
                    shaped[key[0]] = self.shape.problem(problem)
                solution = Solution(problem.id, completion=key[1], language=self.language)
                known[key] = judge.submit(shaped[key[0]], solution)
            found.append(known[key])
        return found

    def _rewards(
        self,
        problems: Sequence[Problem],
        verdicts: Sequence[Verdict],
        log_metric: Callable[[str, float], None] | None,
        log_extra: Callable[[str, list[Any]], None] | None,
    ) -> list[Reward]:
        counts = Counter(verdict.verdict for verdict in verdicts)
        if log_metric is not None and verdicts:
            for verdict in VERDICTS:
                log_metric(f"{self.__name__}/{verdict}", counts[verdict] / len(verdicts))
        if log_extra is not None:
            log_extra(f"{self.__name__}_verdict", [verdict.verdict for verdict in verdicts])
        return [self.score(problem, verdict) for problem, verdict in zip(problems, verdicts, strict=True)]


class AsyncCodeReward(CodeReward):
    """CodeReward as a coroutine: TRL awaits several of its kind, and other reward functions, at the same time."""

    async def __call__(  # type: ignore[override]
        self,
        completions: Sequence[Completion],
        prompts: Any = None,
        *,
        log_metric: Callable[[str, float], None] | None = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        **columns: Any,
    ) -> list[Reward]:
        """See CodeReward."""
        problems = self.find(len(completions), columns)
        return self._rewards(problems, await self.averdicts(problems, completions), log_metric, log_extra)


def text_of(completion: Completion) -> str:
    """Return the text of a completion: itself, or the last message of the assistant."""
    if completion is None:
        return ""
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Mapping):
        completion = [completion]
    for message in reversed(completion):
        if message.get("role", "assistant") == "assistant":
            content = message.get("content") or ""
            if isinstance(content, str):
                return content
            return "".join(part.get("text") or "" for part in content)  # parts, as of models that take images
    return ""


def problem_of(given: Any) -> Problem:
    """Return the problem in a column: a Problem, its fields, or these as JSON text."""
    if isinstance(given, Problem):
        return given
    if isinstance(given, str):
        return _problem_of_text(given)
    if isinstance(given, Mapping):
        return Problem.from_dict(dict(given))
    raise SchemaError(f"a problem is JSON text, as in trl.parquet, not {type(given).__name__}")


@functools.lru_cache(TEXTS)
def _problem_of_text(text: str) -> Problem:
    try:
        record = json.loads(text)
    except ValueError as error:
        raise SchemaError(f"a problem is JSON text, as in trl.parquet; this is not: {text[:60]!r} ({error})") from None
    if not isinstance(record, dict):
        raise SchemaError(f"a problem is a JSON object, as in trl.parquet, not {text[:60]!r}")
    return Problem.from_dict(record)


def problems_by_id(given: Problems) -> dict[str, Problem]:
    """Return problems by their ids, from a file or from Problems. Raise FileError for a record that is broken."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, (str, os.PathLike)):
        given = load_problems(given)
    return {problem.id: problem for problem in given}
