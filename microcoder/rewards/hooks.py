"""Reward hooks for OpenRLHF, NeMo-RL, SkyRL and rLLM: a function each, which returns what that trainer asks for.

    reward_func = openrlhf_reward()              # a file of your own, for --reward.remote_url FILE.py
    CodeEnvironment = nemo_rl_environment()      # an actor for register_env; settings come from the run's `env:`
    register("microcoder", skyrl_env())          # skyrl_gym.envs.register; for environment.env_class=microcoder
    evaluate = rllm_evaluator()                  # tests/evaluate.py of a benchmark

1. The problem is in the row: as JSON text, as in trl.parquet and verl.parquet, or by its id where `problems` is given.
2. OpenRLHF, NeMo-RL and SkyRL need a number for each response. Where the judge is at fault that is `on_fault`, 0 if not
   given, and `judge_fault` is logged. rLLM is given an exception, upon which it repeats the rollout.
3. End tokens after a response, which OpenRLHF decodes with the rest, are taken off: behind a closing fence they would
   make the block an open one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..prompts import check_shown, feedback
from ..schema import Problem, Verdict
from .reward import CodeReward, Problems, problem_of, text_of
from .shared import JudgeSetting

_TAIL = 80  # characters of a prompt by which its end is found where its beginning was cut off


def openrlhf_reward(
    problems: Problems | None = None, *, judge: JudgeSetting = "here", shape: str = "all", on_fault: float = 0.0
) -> Callable[..., dict[str, Any]]:
    """Return a `reward_func(queries, prompts, labels)` for OpenRLHF.

    Args:
        problems: A file of problems, or Problems; then labels are ids. Else a label is the problem as JSON text.
        judge: As in CodeReward.
        shape: As in CodeReward.
        on_fault: The reward of a response on which the judge is at fault.
    """
    reward = CodeReward(problems, judge=judge, shape=shape)

    def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **_: Any) -> dict[str, Any]:
        import torch

        found = [reward.problems.get(str(label)) or problem_of(label) for label in labels]
        texts = [_response(query, prompt) for query, prompt in zip(queries, prompts, strict=True)]
        verdicts = reward.verdicts(found, texts)
        scores = [reward.score(*pair) for pair in zip(found, verdicts, strict=True)]
        rewards = torch.tensor([on_fault if score is None else score for score in scores])
        return {
            "rewards": rewards,
            "scores": rewards.clamp(0, 1),  # for dynamic filtering
            "extra_logs": {
                "accepted": torch.tensor([float(verdict.accepted) for verdict in verdicts]),
                "judge_fault": torch.tensor([float(score is None) for score in scores]),
            },
        }

    return reward_func


def nemo_rl_environment() -> Any:
    """Return an environment for NeMo-RL as a Ray actor class. An episode is one response.

    It is made with the section of the run's configuration for it, which may have `problems`, `judge`, `shape` and
    `on_fault`, as `openrlhf_reward` has. The row's `extra_env_info` has the problem: in `problem` or `ground_truth` as
    JSON text, or its `id` where `problems` is given.
    """
    try:
        import ray
        import torch
        from nemo_rl.environments.interfaces import EnvironmentInterface, EnvironmentReturn
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}; NeMo-RL is needed: run this in its environment") from None

    class NemoCodeEnvironment(EnvironmentInterface):
        def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
            cfg = cfg or {}
            judge = cfg.get("judge", "here")
            judge = judge if isinstance(judge, str) else dict(judge)
            self.reward = CodeReward(cfg.get("problems") or None, judge=judge, shape=cfg.get("shape", "all"))
            self.on_fault = float(cfg.get("on_fault", 0.0))
            self.verdicts: list[Verdict] = []  # since the metrics were last asked for

        def step(
            self,
            message_log_batch: Sequence[Sequence[Mapping[str, Any]]],
            metadata: Sequence[Mapping[str, Any]],
            return_extracted_answer: bool = False,
        ) -> Any:
            problems = [_row(self.reward, row) for row in metadata]
            texts = [text_of(log) for log in message_log_batch]
            verdicts = self.reward.verdicts(problems, texts)
            self.verdicts += verdicts
            scores = [self.reward.score(*pair) for pair in zip(problems, verdicts, strict=True)]
            return EnvironmentReturn(
                observations=[{"role": "environment", "content": f"Environment: {one.verdict}"} for one in verdicts],
                metadata=list(metadata),
                next_stop_strings=[None] * len(texts),
                rewards=torch.tensor([self.on_fault if score is None else score for score in scores]),
                terminateds=torch.ones(len(texts)),
                answers=texts if return_extracted_answer else None,
            )

        def global_post_process_and_metrics(self, batch: Any) -> tuple[Any, dict[str, float]]:
            verdicts, self.verdicts = self.verdicts, []
            count = max(len(verdicts), 1)
            return batch, {
                "accuracy": sum(one.accepted for one in verdicts) / count,
                "judge_fault": sum(one.verdict == "internal_error" for one in verdicts) / count,
            }

        def shutdown(self) -> None: ...  # the judge ends with the actor's process

    return ray.remote(NemoCodeEnvironment)


def skyrl_env(
    problems: Problems | None = None,
    *,
    show: str = "verdict",
    judge: JudgeSetting = "here",
    shape: str = "all",
    on_fault: float = 0.0,
) -> Any:
    """Return an environment class for SkyRL, for `skyrl_gym.envs.register`.

    `generator.max_turns` is the number of tries: after a failed one that is not the last the model is told what `show`
    allows. The last try gets the reward.

    Args:
        problems: A file of problems, or Problems. Not needed for rows of verl.parquet, nor where
            `reward_spec.ground_truth` is the problem as JSON text.
        show: `"nothing"`, `"verdict"`, `"error"` or `"difference"`; see `microcoder.prompts.feedback`.
        judge: As in CodeReward.
        shape: As in CodeReward.
        on_fault: The reward of a response on which the judge is at fault.
    """
    try:
        from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}; SkyRL's environments are needed: pip install skyrl-gym") from None
    check_shown(show)
    reward = CodeReward(problems, judge=judge, shape=shape)

    class SkyCodeEnv(BaseTextEnv):
        def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
            super().__init__()
            extras = extras or {}
            self.problem = _row(reward, extras)
            self.max_turns = int(extras.get("max_turns") or 1)
            self.verdict: Verdict | None = None

        def step(self, action: str) -> Any:
            self.turns += 1
            (self.verdict,) = reward.verdicts([self.problem], [action])
            score = reward.score(self.problem, self.verdict)
            done = score is None or self.verdict.accepted or self.turns >= self.max_turns
            told = [] if done else [{"role": "user", "content": feedback(self.problem, self.verdict, show)}]
            given = 0.0 if not done else on_fault if score is None else score
            return BaseTextEnvStepOutput(
                observations=told, reward=given, done=done, metadata={"verdict": self.verdict.verdict}
            )

        def get_metrics(self) -> dict[str, Any]:
            verdict = self.verdict.verdict if self.verdict else ""
            return {
                "accepted": verdict == "accepted",
                "judge_fault": verdict == "internal_error",
                "turns": self.turns,
            }

    return SkyCodeEnv


def rllm_evaluator(
    problems: Problems | None = None, *, judge: JudgeSetting = "here", shape: str = "all"
) -> Callable[[Any, Any], Any]:
    """Return an `evaluate(task, episode)` for rLLM, which scores evaluations and rewards training.

    The problem is found by the task's id among `problems`, or in its metadata: `problem` or `ground_truth` as JSON
    text. Raise RuntimeError where the judge is at fault: rLLM repeats the rollout then.
    """
    reward = CodeReward(problems, judge=judge, shape=shape)

    def evaluate(task: Any, episode: Any) -> Any:
        from rllm.eval.reward_fns._helpers import extract_answer_text
        from rllm.eval.types import EvalOutput, Signal

        problem = _row(reward, {"id": task.id, **task.metadata})
        (verdict,) = reward.verdicts([problem], [extract_answer_text(episode)])
        score = reward.score(problem, verdict)
        if score is None:
            raise RuntimeError(f"the judge is at fault: {verdict.message}")
        return EvalOutput(
            reward=score,
            is_correct=verdict.accepted,
            signals=[Signal(name="accuracy", value=float(verdict.accepted))],
            metadata={"verdict": verdict.verdict},
        )

    return evaluate


def _row(reward: CodeReward, row: Mapping[str, Any]) -> Problem:
    """Return the problem of a row of a data set; SkyRL's name for verl's `reward_model` is `reward_spec`."""
    given = {"reward_model": row["reward_spec"], **row} if row.get("reward_spec") else row
    (problem,) = reward.find(1, {name: [value] for name, value in given.items()})
    return problem


def _response(query: str, prompt: str) -> str:
    """Return what follows the prompt. Where a long prompt lost its beginning, it is known by its end."""
    if query.startswith(prompt):
        return query[len(prompt) :]
    _, found, rest = query.partition(prompt[-_TAIL:])
    return rest if found else query
