"""Settings -> problems: the starter set, a file, or a suite; what cannot be used is left out by name, never silently.

Where a file holds more problems than data.train_size or data.test_size, a sample is drawn, the same one each time: the
first rows of a file that is sorted by source would be one source alone.

With data.tried the model's own tries choose: a problem that it always or never solves gives no signal. What is held out
stays as it is.

With data.test=held-out a part of the training file is tested on instead of trained on: those problems whose ids have
the smallest hashes, so that a file that grows keeps most of them.

A suite is asked as training asks: with our own prompts, and the program in the last fenced block. So its accuracy is
near that of `microcoder eval`, which asks as the suite's own runner does, but not the same.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from ..config import Config, DataConfig
from ..evaluation.catalog import SUITES, load_suite
from ..evaluation.folder import read_scores
from ..evaluation.suite import EvaluationError
from ..files import read_problems
from ..prompts import messages, says
from ..sampling import encode
from ..schema import Problem, nearest
from ..starter import DEPTHS, problems

Split = Literal["train", "test"]
HELD_OUT = "held-out"
TESTED = tuple(name for name in SUITES if name != "starter")  # suites that data.test may name besides

TAGS = ("many_answers", "unverified")  # that `microcoder data run` sets and data.refuse knows, whatever a file holds


class ProblemsError(ValueError):
    """Problems that cannot be used; the message says why and what to type instead."""


@dataclass(frozen=True)
class Loaded:
    problems: list[Problem]
    dropped: dict[str, int]  # reason: how many
    tests: str = ""  # as Suite.tests

    def words(self) -> str:
        left_out = ", ".join(f"{count} {reason}" for reason, count in self.dropped.items())
        tests = f", {self.tests}" if self.tests else ""
        return f"{len(self.problems)} problems{tests}" + (f" (left out: {left_out})" if left_out else "")


def load_problems(data: DataConfig, split: Split, sandbox: str = "auto") -> Loaded:
    """The problems of a split, in the order of their source, at most as many as the settings say.

    sandbox   as judge.sandbox; EvalPlus's canonical solutions are run in it for their outputs
    """
    name, size = (data.train, data.train_size) if split == "train" else (data.test, data.test_size)
    if split == "test" and data.test_data and name not in TESTED:
        raise ProblemsError(
            f"data.test_data is {data.test_data}, the file of a suite, but data.test is {name}; it must be one of "
            f"{', '.join(TESTED)}, or leave out data.test_data"
        )
    if name == "none" and split == "test":
        return Loaded([], {})
    if data.test == HELD_OUT:
        if data.train == "starter":
            raise ProblemsError(
                "data.test=held-out is for a file of problems; starter has a test part: data.test=starter"
            )
        name = data.train
    ours = split == "train" or data.test == HELD_OUT  # the settings for training problems apply
    low, high = _range(data) if ours else (float("-inf"), float("inf"))
    dropped: Counter[str] = Counter()
    if name == "starter":
        _refuse_unknown(data.refuse, ())
        depths = [depth for depth in DEPTHS if low <= depth <= high]
        if not depths:
            raise ProblemsError(f"data.difficulty is {data.difficulty}, but starter's depths are 1 to 6")
        return Loaded(problems(split, size, depths=depths), dropped)
    if name in TESTED:
        if split == "train":
            raise ProblemsError(f"data.train={name}: a suite is to be tested on, not trained on; data.train=FILE")
        return _suite(data, sandbox)
    if (hint := nearest(name, (*TESTED, HELD_OUT))) and not Path(name).exists():
        raise ProblemsError(f"data.{split}={name}: there is no such file{hint}")
    found: list[Problem] = []
    seen: set[str] = set()  # tags
    bad: list[str] = []
    for problem in read_problems(name):
        seen.update(problem.tags if isinstance(problem, Problem) else ())
        if not isinstance(problem, Problem):
            bad.append(f"line {problem.line}: {problem.reason}")
        elif not says(problem):
            dropped['without "statement" and "starter_code", of which prompts are made'] += 1
        elif ours and (tags := _refused(problem, data.refuse)):
            dropped[f"tagged {tags[0]}"] += 1
        elif data.difficulty and ours and not low <= _score(problem, name) <= high:
            dropped["outside data.difficulty"] += 1
        else:
            found.append(problem)
    if bad:
        dropped[f"unreadable, such as {bad[0]}"] = len(bad)
    if ours:
        _refuse_unknown(data.refuse, seen)
    if not found:
        raise ProblemsError(
            f"{name} holds no problem to {split} on: " + (Loaded([], dropped).words() if dropped else "it is empty")
        )
    if data.test == HELD_OUT:
        found = _parted(found, data, split, dropped)
    if data.tried and split == "train":
        found = _solved_sometimes(found, data, dropped)
    return Loaded([found[n] for n in _drawn(len(found), size, split, dropped)], dropped)


def _parted(found: list[Problem], data: DataConfig, split: Split, dropped: Counter[str]) -> list[Problem]:
    """Return the problems that a split uses: data.test_size of the file are for the test, the rest for training."""
    size = data.test_size
    if len(found) <= size:
        raise ProblemsError(
            f"{data.train} holds {len(found)} problems, so data.test=held-out with data.test_size={size} leaves none "
            "to train on; lower data.test_size"
        )
    held = {problem.id for problem in sorted(found, key=lambda one: sha256(one.id.encode()).digest())[:size]}
    if split == "train":
        dropped["held out for the evaluations"] = size
    else:
        dropped.clear()  # training counts what the file lost
    return [problem for problem in found if (problem.id in held) == (split == "test")]


def _solved_sometimes(found: list[Problem], data: DataConfig, dropped: Counter[str]) -> list[Problem]:
    """The problems of whose tries in data.tried a share within data.solved was right."""
    low, high = data.solved
    try:
        tries = read_scores(data.tried).outcomes()
    except EvaluationError as error:
        raise ProblemsError(f"data.tried: {error}") from None
    kept = []
    for problem in found:
        share = sum(tries[problem.id]) / len(tries[problem.id]) if problem.id in tries else None
        if share is None:
            dropped["not in data.tried"] += 1
        elif share < low:
            dropped[f"solved in less than {low:.0%} of the tries"] += 1
        elif share > high:
            dropped[f"solved in more than {high:.0%} of the tries"] += 1
        else:
            kept.append(problem)
    if not kept:
        raise ProblemsError(
            f"data.tried={data.tried} leaves no problem of {data.train}: {Loaded([], dropped).words()}; it must be an "
            f"evaluation of the same file, and data.solved={data.solved} may be too narrow"
        )
    return kept


def _drawn(count: int, size: int, split: Split, dropped: Counter[str]) -> list[int]:
    """The numbers of the problems that are used, in order; the others are counted in `dropped`."""
    if count <= size:
        return list(range(count))
    dropped[f"not drawn: data.{split}_size={size} are drawn at random, always the same"] = count - size
    return sorted(random.Random(f"data.{split}").sample(range(count), count)[:size])


def _suite(data: DataConfig, sandbox: str) -> Loaded:
    """The problems of the suite in data.test, each with the suite's time limit where it has none."""
    try:
        suite = load_suite(data.test, data=data.test_data or None, unchecked=True, sandbox=sandbox)
    except EvaluationError as error:
        raise ProblemsError(f"data.test={data.test}: {error} (here --data is data.test_data)") from None
    dropped: Counter[str] = Counter()
    found = []
    for n in _drawn(len(suite.problems), data.test_size, "test", dropped):
        whole = suite.problems.whole(n)
        found.append(replace(whole, time_limit_s=whole.time_limit_s or suite.time_limit_s))
    return Loaded(found, dropped, suite.tests)


def overlap(train: Sequence[Problem], test: Sequence[Problem]) -> str:
    """A warning where problems are both trained and tested on; else nothing."""
    known = {problem.fingerprint() for problem in train}
    both = sum(problem.fingerprint() in known for problem in test)
    if not both:
        return ""
    return (
        f"warning: {both} of the {len(test)} test problems are trained on too, so the test accuracy says little of "
        "other problems; name another file: data.test=..., or none: data.test=none"
    )


def with_prompts(loaded: Loaded, tokenizer: Any, config: Config) -> tuple[Loaded, list[list[int]]]:
    """The problems whose prompt fits into data.max_prompt_tokens, and those prompts."""
    limit, style, chat = config.data.max_prompt_tokens, config.data.style, config.model.chat
    try:
        pairs = [(problem, encode(tokenizer, messages(problem, style), chat)) for problem in loaded.problems]
    except ValueError as error:
        raise ProblemsError(str(error)) from None
    kept = [(problem, ids) for problem, ids in pairs if len(ids) <= limit]
    dropped = dict(loaded.dropped)
    if len(kept) < len(pairs):
        dropped["longer than data.max_prompt_tokens"] = len(pairs) - len(kept)
    if pairs and not kept:
        shortest = min(len(ids) for _, ids in pairs)
        raise ProblemsError(f"every prompt is longer than data.max_prompt_tokens={limit}; the shortest has {shortest}")
    return Loaded([problem for problem, _ in kept], dropped, loaded.tests), [ids for _, ids in kept]


def _refused(problem: Problem, refuse: Sequence[str]) -> list[str]:
    """The tags for which a problem is left out; many answers do no harm where a checker knows them."""
    tags = set(problem.tags) & set(refuse)
    return sorted(tags - {"many_answers"} if problem.compare.checker else tags)


def _refuse_unknown(refuse: Sequence[str], seen: Collection[str]) -> None:
    for name in refuse:
        if name not in TAGS and name not in seen:
            known = sorted({*TAGS, *seen})
            hint = nearest(name, known) or f"; there are {', '.join(known[:12])}"
            raise ProblemsError(f"data.refuse names the tag {name!r}, which no problem has{hint}")


def _range(data: DataConfig) -> tuple[float, float]:
    if not data.difficulty:
        return float("-inf"), float("inf")
    if len(data.difficulty) != 2 or data.difficulty[0] > data.difficulty[1]:
        raise ProblemsError(f"data.difficulty is {data.difficulty}; write [low, high], such as data.difficulty=[2,4]")
    return data.difficulty[0], data.difficulty[1]


def _score(problem: Problem, name: str) -> float:
    if problem.difficulty_score is None:
        raise ProblemsError(
            f"{name}: problem {problem.id!r} has no difficulty_score, so data.difficulty cannot choose by it; "
            "leave data.difficulty out, or add the scores"
        )
    return problem.difficulty_score
