"""CodeEnv: a problem as an environment with reset and step, as Gymnasium has them.

What a model may see of a verdict (`show`) is told by `microcoder.prompts.feedback`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from ..judge.base import Judging
from ..prompts import check_shown, feedback, messages
from ..schema import Problem, nearest
from .reward import CodeReward, Completion, Problems, problems_by_id, text_of
from .shared import JudgeSetting

Messages = list[dict[str, str]]


class CodeEnv:
    """Problems as episodes: `reset` gives the prompt, `step` takes a completion and judges it.

    Args:
        problems: A file of problems, or Problems.
        turns: Tries for each problem. After a failed one that is not the last, the model is told what `show` allows.
        show: `"nothing"`, `"verdict"`, `"error"` or `"difference"`; see `microcoder.prompts.feedback`.
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
        elif (ident := str(ident)) not in self.problems:
            raise KeyError(f"there is no problem {ident!r}{nearest(ident, self.problems)}")
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
