"""An environment for verifiers 0.4 and what trains with it: problems as tasks, repair as turns, the judge as reward.

    env = verifiers_env("problems.parquet", turns=2)

verifiers finds an environment by the name of an installed package. For its commands and for prime-rl, make one: a file
`my_problems.py` with one line, and in the run's configuration

    from microcoder.rewards.verifiers import CodeTaskset, OneReply, RepairEnv, __all__

    [env]
    turns = 2
    taskset = {id = "my-problems", task = {problems = "problems.parquet"}}

1. The model is asked in this process, since a program of its own is not needed for that (`OneReply`).
2. Tests stay out of traces: a task holds the id of its problem.
3. A fault of the judge is an error of the rollout, which has no reward then.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from typing import Any

from ..prompts import check_shown, feedback, messages
from ..schema import Problem, Verdict
from .reward import CodeReward

try:
    import httpx
    import verifiers.v1 as vf
    from verifiers.v1.dialects.chat import message_to_wire
except ModuleNotFoundError as error:
    raise ImportError(f"{error}; verifiers 0.4 is needed: pip install 'microcoder[verifiers]'") from None

__all__ = ["CodeTaskset", "OneReply", "RepairEnv"]  # what verifiers looks for: one of each kind

NAME = "microcoder"


class CodeTaskConfig(vf.TaskConfig):
    problems: str = ""
    """A file of problems, such as `microcoder data run` writes."""
    judge: str | dict[str, Any] = "here"
    """As in CodeReward: here, http://HOST:8422, ray:auto, or settings of [judge]."""
    shape: str = "all"
    """As in CodeReward."""


class CodeTasksetConfig(vf.TasksetConfig):
    task: CodeTaskConfig = CodeTaskConfig()


class CodeTask(vf.Task[vf.TaskData, vf.State, CodeTaskConfig]):
    """One problem."""

    @property
    def key(self) -> str:
        return str(self.data.id)

    @property
    def problem(self) -> Problem:
        return self.judging.problems[self.data.id]

    @property
    def judging(self) -> CodeReward:
        return _judging(self.config.model_dump_json(include={"problems", "judge", "shape"}))

    async def verdict(self, trace: vf.Trace) -> Verdict:
        """Return the verdict on the last reply. It is in the trace too, so each reply is judged once."""
        known = trace.info.setdefault("verdicts", [])
        if len(known) < trace.num_turns:
            (verdict,) = await self.judging.averdicts([self.problem], [trace.last_reply])
            known.append(verdict.to_dict())
        return Verdict.from_dict(known[-1])

    @vf.reward
    async def code_reward(self, trace: vf.Trace) -> float:
        verdict = await self.verdict(trace)
        reward = self.judging.score(self.problem, verdict)
        if reward is None:
            raise RuntimeError(verdict.message)
        return reward


class CodeTaskset(vf.Taskset[CodeTask, CodeTasksetConfig]):
    """The problems of a file."""

    def load(self) -> Iterable[CodeTask]:
        config = self.config.task
        if not config.problems:
            raise ValueError("taskset.task.problems is not set; it is a file of problems, such as problems.parquet")
        for problem in _judging(config.model_dump_json(include={"problems", "judge", "shape"})).problems.values():
            yield CodeTask(vf.TaskData(id=problem.id, name=problem.title or problem.id, prompt=_asked(problem)), config)


class OneReply(vf.Harness[vf.HarnessConfig]):
    """A harness that asks the model once, without a program or tools."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        system, prompt = self.resolve_prompt(data)
        asked = [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else list(prompt or [])
        wire = [message_to_wire(message) for message in asked]
        if system:
            wire.insert(0, {"role": "system", "content": system})
        async with httpx.AsyncClient(timeout=None) as client:  # the rollout's own limits hold
            answer = await client.post(
                f"{endpoint.rstrip('/')}/chat/completions",
                json={"model": ctx.model, "messages": wire},
                headers={"Authorization": f"Bearer {secret}"},
            )
        return vf.ProgramResult(
            exit_code=int(answer.is_error), stdout="", stderr=answer.text if answer.is_error else ""
        )


class RepairEnvConfig(vf.EnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    turns: int = 1
    """Tries for each problem. The last one gets the reward."""
    show: str = "verdict"
    """What the model is told of a failed try: nothing, verdict, error or difference; see `prompts.feedback`."""


class RepairEnv(vf.Env[RepairEnvConfig]):
    """A reply, and after a failure the judge's message and another try, up to `turns`."""

    def __init__(self, config: RepairEnvConfig) -> None:
        check_shown(config.show)
        if config.turns < 1:
            raise ValueError(f"turns is {config.turns}; it must be 1 or more")
        super().__init__(config)

    async def run(self, task: CodeTask, agents: vf.Agents) -> None:
        async with agents.agent.interaction(task) as exchange:
            segment = await exchange.turn()
            for _ in range(self.config.turns - 1):
                if segment.terminated:
                    return
                verdict = await task.verdict(exchange.trace)
                if verdict.accepted or verdict.verdict == "internal_error":
                    return
                segment = await exchange.turn(feedback(task.problem, verdict, self.config.show))


def verifiers_env(
    problems: str, *, turns: int = 1, show: str = "verdict", judge: str | dict[str, Any] = "here", shape: str = "all"
) -> RepairEnv:
    """Return an environment of verifiers with the problems of a file.

    Args:
        problems: The file.
        turns: Tries for each problem; the last one gets the reward.
        show: What the model is told of a failed try: `"nothing"`, `"verdict"`, `"error"` or `"difference"`.
        judge: As in CodeReward, but not an open judge.
        shape: As in CodeReward.
    """
    for kind in ("tasksets", "harnesses"):  # where verifiers looks for names; only for this process
        sys.modules.setdefault(f"verifiers.v1.{kind}.{NAME}", sys.modules[__name__])
    taskset = {"id": NAME, "task": {"problems": str(problems), "judge": judge, "shape": shape}}
    return RepairEnv(RepairEnvConfig.model_validate({"taskset": taskset, "turns": turns, "show": show}))


def _asked(problem: Problem) -> str:
    (message,) = messages(problem)
    return message["content"]


@functools.lru_cache
def _judging(settings: str) -> CodeReward:
    """Return the reward for a task's settings; the file is read once."""
    config = CodeTaskConfig.model_validate_json(settings)
    return CodeReward(config.problems, judge=config.judge, shape=config.shape)
