"""Where programs are judged: on this machine, by a service, or on a Ray cluster. `judge.on` says which.

with open_judge(config.judge.options()) as judge:
    verdict = judge.check(problem, completion)
"""

from __future__ import annotations

from typing import Any

from .. import JudgeError
from ..base import Judging

HERE = "here"


def open_judge(options: dict[str, Any]) -> Judging:
    """Open the judge that `options` (from `JudgeConfig.options`) ask for. All kinds give the same verdicts."""
    given = dict(options)
    on, remember = given.pop("on", HERE), given.pop("remember", 0)
    judge = _judge(on, given)
    if not remember:
        return judge
    from ..remembering import Remembering

    return Remembering(judge, remember)


def _judge(on: str, given: dict[str, Any]) -> Judging:
    if on == HERE:
        from .. import Judge

        return Judge(**given)
    if on.startswith(("http://", "https://")):
        from .http import RemoteJudge

        return RemoteJudge(on, **given)
    if on.startswith("ray:"):
        from .ray_judge import RayJudge

        return RayJudge(on.removeprefix("ray:"), **given)
    raise JudgeError(f'judge.on is {on!r}; it is "here", the address of a service (http://...), or ray:ADDRESS')
