"""An OpenEnv environment: CodeEnv behind a server, and the client for it.

    app = openenv_app("problems.parquet", turns=2)         # my_env.py; then `uvicorn my_env:app`

    with CodeClient(base_url="http://localhost:8000").sync() as env:
        result = env.reset(id="double")
        result = env.step("```python\\nprint(1)\\n```")      # result.reward, result.done, result.observation.messages

Each connection has an episode of its own; all share the problems and the judge of the server's process. A fault of the
judge ends an episode without a reward: `done` is True and `reward` None. OpenEnv's own clients work too: an action is
{"completion": text}.
"""

from __future__ import annotations

import functools
from typing import Any

from .env import CodeEnv
from .reward import Problems, problems_by_id
from .shared import JudgeSetting

try:
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from openenv.core.env_server import Action, Environment, Observation, State, create_app
except ModuleNotFoundError as error:
    raise ImportError(f"{error}; OpenEnv is needed: pip install openenv") from None

NAME = "microcoder"


class CodeAction(Action):
    completion: str
    """What the model wrote."""


class CodeObservation(Observation):
    messages: list[dict[str, str]]
    """The conversation, as the model may see it. The verdict is in `metadata`, which is not for the model."""


class CodeEnvironment(Environment):
    """CodeEnv as OpenEnv's server asks for it."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, problems: Problems, **settings: Any) -> None:
        super().__init__()
        self.env = CodeEnv(problems, **settings)
        self.episode: str | None = None
        self.about: dict[str, Any] = {}

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, id: str | None = None, **_: Any
    ) -> CodeObservation:
        """Begin an episode; `id` chooses the problem."""
        messages, self.about = self.env.reset(seed=seed, options={"id": id})
        self.episode = episode_id
        return CodeObservation(messages=messages, metadata=self.about)

    def step(self, action: CodeAction, timeout_s: float | None = None, **_: Any) -> CodeObservation:
        """Judge a completion. The time is limited by the problem's limit, so `timeout_s` is not looked at."""
        messages, reward, terminated, truncated, info = self.env.step(action.completion)
        self.about = {**info, "verdict": info["verdict"].verdict}
        return CodeObservation(messages=messages, reward=reward, done=terminated or truncated, metadata=self.about)

    @property
    def state(self) -> State:
        return State(episode_id=self.episode, step_count=self.env.turn, **self.about)


def openenv_app(
    problems: Problems,
    *,
    turns: int = 1,
    show: str = "verdict",
    judge: JudgeSetting = "here",
    shape: str = "all",
    sessions: int = 256,
) -> Any:
    """Return OpenEnv's server for problems, as an ASGI application.

    Args:
        problems: A file of problems, or Problems.
        turns: Tries for each problem. The last one gets the reward.
        show: What the model is told of a failed try; see `microcoder.prompts.feedback`.
        judge: As in CodeReward.
        shape: As in CodeReward.
        sessions: Episodes that may be open at the same time.
    """
    settings = {"turns": turns, "show": show, "judge": judge, "shape": shape}
    make = functools.partial(CodeEnvironment, problems_by_id(problems), **settings)
    make()  # a setting that cannot work is told now, not to the first client
    return create_app(make, CodeAction, CodeObservation, env_name=NAME, max_concurrent_envs=sessions)


class CodeClient(EnvClient):
    """The client. `step` takes the completion's text."""

    def _step_payload(self, action: str | CodeAction) -> dict[str, Any]:
        return {"completion": action if isinstance(action, str) else action.completion}

    def _parse_result(self, payload: dict[str, Any]) -> Any:
        given = {name: payload.get(name) for name in ("reward", "done")}
        return StepResult(observation=CodeObservation(**payload["observation"], **given), **given)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)
