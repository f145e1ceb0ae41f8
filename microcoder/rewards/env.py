"""CodeEnv: a problem as an environment with reset and step, as Gymnasium has them.

What a model may see of a verdict (`show`), from little to much:

    nothing      that the program is not right
    verdict      the kind of failure, such as wrong_answer or time_limit. (default)
    error        also what the program itself did wrong: its exception, its syntax error, the time it took. Never what
                 was expected. The exception may carry the test's input, where the program puts it there.
    difference   the judge's whole message: for a wrong answer what was expected, as far as the first difference. A
                 second try can print what the first was told, so give its reward less weight, or use other tests.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from ..judge.base import Judging
from ..prompts import messages
from ..schema import Problem, Verdict, nearest
from .reward import CodeReward, Completion, Problems, problems_by_id, text_of
from .shared import JudgeSetting

SHOWN = ("nothing", "verdict", "error", "difference")
Messages = list[dict[str, str]]

_MEANING = {
    "wrong_answer": "gives a wrong answer",
    "time_limit": "takes too long",
    "memory_limit": "takes too much memory",
    "output_limit": "writes too much output",
    "runtime_error": "fails while it runs",
    "compile_error": "is not valid code",
    "no_code": "was not found: the answer has no complete fenced code block",
}


def check_shown(show: str) -> str:
    """Return `show`; raise ValueError if there is no such level."""
    if show not in SHOWN:
        raise ValueError(f"show is {show!r}{nearest(show, SHOWN) or '; it is one of ' + ', '.join(SHOWN)}")
    return show


def feedback(problem: Problem, verdict: Verdict, show: str = "verdict") -> str:
    """Return the message to a model whose program failed."""
    said = "is not right" if show == "nothing" else _MEANING.get(verdict.verdict, "is not right")
    # an assert is quoted in a message, and holds what is expected
    own = verdict.verdict not in ("wrong_answer", "internal_error") and problem.kind != "assert"
    own = own or verdict.verdict == "compile_error"
    if verdict.message and (show == "difference" or (show == "error" and own)):
        said += f" ({verdict.message})"
    return f"Your program {said}. Write the whole program again, corrected, in one fenced code block."


class CodeEnv:
    """Problems as episodes: `reset` gives the prompt, `step` takes a completion and judges it.

    Args:
        problems: A file of problems, or Problems.
        turns: Tries for each problem. After a failed one that is not the last, the model is told what `show` allows.
        show: `"nothing"`, `"verdict"`, `"error"` or `"difference"`; see `microcoder.rewards.env`.
        judge: As in CodeReward.
        shape: As in CodeReward. The last try gets the reward.
        seed: Seed of the order of problems.
    """

    def __init__(
        self,
        problems: Problems,
        *,
        turns: int = 1,
        show: str = "verdict",
        judge: JudgeSetting | Judging = "here",
        shape: str = "all",
        seed: int = 0,
    ) -> None:
        if turns < 1:
            raise ValueError(f"turns is {turns}; it must be 1 or more")
        self.turns, self.show = turns, check_shown(show)
        self.problems = problems_by_id(problems)
        if not self.problems:
            raise ValueError("problems is empty; an environment needs at least one")
        self.reward = CodeReward(self.problems, judge=judge, shape=shape)
        self.random = random.Random(seed)
        self.problem: Problem | None = None  # of the episode that is open
        self.messages: Messages = []
        self.turn = 0

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Messages, dict[str, Any]]:
        """Begin an episode and return (the prompt's messages, info). `options={"id": ...}` chooses the problem."""
        if seed is not None:
            self.random.seed(seed)
        ident = (options or {}).get("id")
        if ident is None:
            ident = self.random.choice(list(self.problems))
        elif ident not in self.problems:
            raise KeyError(f"there is no problem {ident!r}{nearest(str(ident), self.problems)}")
        self.problem, self.turn = self.problems[ident], 0
        self.messages = messages(self.problem)
        return list(self.messages), {"id": ident}

    def step(self, completion: Completion) -> tuple[Messages, float | None, bool, bool, dict[str, Any]]:
        """Judge a completion and return (messages, reward, terminated, truncated, info).

        The messages are the whole conversation. The reward is 0 for a try that is followed by another. A fault of the
        judge ends the episode: the reward is None and `truncated` is True. `info["verdict"]` is the whole verdict,
        which is not for the model.
        """
        if self.problem is None:
            raise RuntimeError("no episode is open; call reset() first")
        problem, self.turn = self.problem, self.turn + 1
        (verdict,) = self.reward.verdicts([problem], [completion])
        info = {"id": problem.id, "turn": self.turn, "verdict": verdict}
        self.messages.append({"role": "assistant", "content": text_of(completion)})
        reward = self.reward.score(problem, verdict)
        if reward is None or verdict.accepted or self.turn == self.turns:
            self.problem = None
            return list(self.messages), reward, reward is not None, reward is None, info
        self.messages.append({"role": "user", "content": feedback(problem, verdict, self.show)})
        return list(self.messages), 0.0, False, False, info
