"""What every command of `microcoder bench` that asks a model shares: which problems, which settings, progress."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import Refused
from .completion import complete_suite
from .shown import echo

if TYPE_CHECKING:
    from ..config import Config
    from ..evaluation.local import LocalModel
    from ..evaluation.records import Suite


def suite_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What says which problems: the same for every command that asks a model."""
    options = [
        click.option(
            "--suite",
            required=True,
            shell_complete=complete_suite,
            help="livecodebench, humaneval, mbpp, starter, or a problem file.",
        ),
        click.option("--data", type=click.Path(), help="Its file or folder here; else it comes from the hub."),
        click.option("--release", default="", help="Of livecodebench: v6 is what is new in v6, release_v6 is all."),
        click.option("--from", "start", default="", metavar="DATE", help="Only problems of this day or later."),
        click.option("--to", "end", default="", metavar="DATE", help="Only problems of this day or earlier."),
        click.option("--platform", "platforms", multiple=True, help="Only this platform; may be given again."),
        click.option("--difficulty", "difficulties", multiple=True, help="Only this difficulty; may be given again."),
        click.option("--first", type=click.IntRange(min=1), help="Only the first so many problems, to try things."),
        click.option("--unchecked", is_flag=True, help="Take a suite's files whatever the number of their problems."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def model_and_settings(words: tuple[str, ...]) -> tuple[str, list[str]]:
    """(the model or nothing, the settings)."""
    names = [word for word in words if not is_setting(word)]
    if len(names) > 1:
        raise click.UsageError(f"one model at a time; here are {', '.join(names)}")
    return "".join(names), [word for word in words if is_setting(word)]


def is_setting(word: str) -> bool:
    from ..config import SETTING

    return SETTING.fullmatch(word) is not None


def config_of(settings: list[str]) -> Config:
    from ..config import ConfigError, load

    for word in settings:
        if not word.startswith(("judge.", "rollout.")):
            raise Refused(f"{word}: a bench takes settings of judge and rollout only; see microcoder bench --help")
        if word.startswith(("judge.policy=", "judge.also=")):
            raise Refused(f"a bench is judged under exact and robust at once; leave {word.partition('=')[0]} out")
    try:
        return load(None, settings)
    except ConfigError as error:
        raise Refused(str(error)) from None


def judge_options(config: Config, suite: Suite) -> dict[str, Any]:
    """The suite's time limit, unless another one was asked for."""
    own = "time_limit_s" in config.judge.model_fields_set
    return config.judge.options() | ({} if own else {"time_limit_s": suite.time_limit_s})


def asked(suite: Suite, config: Config, judge: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """What is asked of whatever answers; `judge`: its options."""
    from ..evaluation.asking import conditions

    temperature = options.get("temperature")
    return {
        "suite": suite.name,
        "digest": suite.digest,
        "style": suite.style,
        "tries": options["tries"] or suite.tries,
        "temperature": suite.temperature if temperature is None else temperature,
        "top_p": config.rollout.top_p,
        "top_k": config.rollout.top_k,
        "limits": limits_of(options["limits"]) or suite.limits,
        "seed": options["seed"],
        "judge": conditions(judge),
    }


def suite_of(name: str, options: dict[str, Any]) -> Suite:
    from ..evaluation.suites import load_suite

    names = ("data", "release", "start", "end", "platforms", "difficulties", "first", "unchecked")
    return load_suite(name, **{key: options[key] for key in names}, note=say)


def local_model(model: str, config: Config) -> LocalModel:
    from ..evaluation.local import LocalModel
    from ..training.training import quiet

    quiet()
    return LocalModel(model, config.rollout, say)


def limits_of(text: str | None) -> tuple[int, ...]:
    """4096,8192 or 4k,8k."""
    words = [word for word in (text or "").lower().split(",") if word]
    try:
        found = [int(word.removesuffix("k")) * (1024 if word.endswith("k") else 1) for word in words]
    except ValueError:
        found = [0]
    if any(limit < 1 for limit in found):
        raise Refused(f"--limit {text}: write numbers of tokens, such as 4096,8192 or 4k,8k")
    return tuple(sorted(set(found)))


def numbers_of(text: str) -> list[float]:
    try:
        found = sorted({float(word) for word in text.split(",") if word})
    except ValueError:
        found = []
    if not found or min(found) < 0:
        raise Refused(f"--grid {text}: write temperatures such as 0.2,0.6,1.0")
    return found


def default_folder(model: str, suite: Suite) -> Path:
    from ..evaluation.asking import slug

    if (Path(model) / "run.json").exists():
        return Path(model) / "bench" / slug(suite.name)
    return Path("bench") / slug(model) / slug(suite.name)


def say(text: str) -> None:
    echo(text, err=True)


class Told:
    """Progress: how many verdicts there are, and when all will be."""

    def __init__(self, total: int, title: str = "") -> None:
        from .progress import Progress

        self.progress, self.title = Progress(total, "verdicts"), title

    def judged(self, before: bool) -> None:
        self.progress.step(judged=not before)

    def say(self, text: str) -> None:
        self.progress.say(text)

    def __enter__(self) -> Told:
        if self.title:
            self.say(self.title)
        self.progress.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.progress.__exit__(*error)
