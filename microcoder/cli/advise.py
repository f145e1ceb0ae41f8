"""`microcoder advise`: what went wrong in a run, since when, why, and what to type about it."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import Refused
from .shown import echo

if TYPE_CHECKING:
    from ..advise import Advice

SPAN = 5  # steps at the beginning and at the end of a run that are averaged for its state
LOOKED = {  # what the rules look at, and a metric without which they cannot
    "rewards": "reward",
    "groups that teach nothing": "no_signal_share",
    "D": "diversity",
    "entropy": "entropy",
    "truncation": "truncated_share",
    "verdicts": "verdicts",
    "gradients": "grad_norm",
    "held-out accuracy": "test_accuracy",
}


@click.command("advise")
@click.argument("run", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run: str, as_json: bool) -> None:
    """Say what is going wrong in the run directory RUN, why, and what to change.

    Causes come first, with what they explain beneath them, since which step, and the paper's claim and figure on the
    matter. A run that is still going on can be asked about too.
    """
    import tomllib

    from ..advise import advise_run
    from ..runs import RunError, read_info, read_metrics

    try:
        info, metrics = read_info(run), read_metrics(run)
        config = tomllib.loads((Path(run) / "config.toml").read_text(encoding="utf-8"))
    except RunError as error:
        raise Refused(str(error)) from None
    except (OSError, ValueError) as error:
        raise Refused(f"cannot read {Path(run) / 'config.toml'}: {error}") from None
    found = advise_run(metrics, config)
    if as_json:
        return _print_json(run, info, metrics, found)
    _print(f"{run}: {', '.join(_state(info, metrics))}")
    for number, one in enumerate(found, 1):
        echo()
        _print(f"{number}. {one.code}, {_when(one)}: {one.message}")
        for label, text in _lines(one):
            _print(f"{label}: {text.replace('RUN', run)}", "   ")
    if not found:
        echo()
        _print(_nothing(metrics))


def _state(info: dict[str, Any], metrics: list[dict[str, Any]]) -> Iterator[str]:
    """Summarise a run in one line: first and last values, as means of a few steps if the run is long enough."""
    reason = f" ({info['reason']})" if info.get("reason") else ""
    yield f"{info.get('status', 'unknown')}{reason} after {_steps(metrics)} steps"
    tests = _values(metrics, "test_accuracy")
    if tests:
        yield f"test accuracy {tests[0]:.1%}" + (f" -> {tests[-1]:.1%}" if tests[1:] else "")
    means = False
    for label, name, form in (("reward", "reward", ".2f"), ("D", "diversity", ".2f"), ("length", "length_mean", ".0f")):
        values = _values(metrics, name)
        span = SPAN if len(values) >= 2 * SPAN else 1
        if values:
            first, last = (sum(part) / len(part) for part in (values[:span], values[-span:]))
            yield f"{label} {first:{form}}" + (f" -> {last:{form}}" if values[1:] else "")
            means = means or span > 1
    if means:
        yield f"all but accuracy as means of the first and the last {SPAN} steps"


def _lines(one: Advice) -> Iterator[tuple[str, str]]:
    yield "why", one.reason
    yield "try", one.remedy
    if one.claim:
        yield "see", f"claim {one.claim} (figure {one.figure} of the paper)"
    for symptom in one.symptoms:
        yield "with it", f"{symptom.code}, {_when(symptom)}: {symptom.message}"


def _when(one: Advice) -> str:
    return f"since step {one.step}" if one.holds else f"from step {one.step} on, over now"


def _nothing(metrics: list[dict[str, Any]]) -> str:
    if not _steps(metrics):
        return "there is no step to look at yet; ask again when one is done"
    missing = [what for what, name in LOOKED.items() if not any(line.get(name) is not None for line in metrics)]
    unseen = f"; not recorded: {', '.join(missing)}" if missing else ""
    looked = ", ".join(what for what in LOOKED if what not in missing)
    return f"nothing stands out in {_steps(metrics)} steps; looked at: {looked}{unseen}"


def _steps(metrics: list[dict[str, Any]]) -> int:
    return sum(line["step"] > 0 for line in metrics)  # the line of step 0 is the evaluation before training


def _values(metrics: list[dict[str, Any]], name: str) -> list[float]:
    return [line[name] for line in metrics if line.get(name) is not None]


def _print(text: str, indent: str = "") -> None:
    width = min(shutil.get_terminal_size().columns, 120)
    wrapped = textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + "   ",
        break_long_words=False,  # what is to be typed must stay in one piece
        break_on_hyphens=False,
    )
    echo("\n".join(wrapped))


def _print_json(run: str, info: dict[str, Any], metrics: list[dict[str, Any]], found: list[Advice]) -> None:
    import json
    from dataclasses import asdict

    state = {"run": run, "status": info.get("status"), "steps": _steps(metrics)}
    echo(json.dumps({**state, "findings": [asdict(one) for one in found]}, indent=2, ensure_ascii=False))
