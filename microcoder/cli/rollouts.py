"""`microcoder rollouts`: the answers a run has sampled, to be read with what the judge said of each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from ..schema import ACCEPTED, VERDICTS, nearest
from . import Refused
from .shown import echo, visible

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 8  # rollouts that are printed where nobody says how many
LINES = 20  # of a prompt
FLAGS = ("truncated", "repeated", "masked")
COLUMNS = ("step", "rows", "reward", "accuracy", "truncated_share", "masked_share", "size")


@click.command("rollouts")
@click.argument("run", type=click.Path())
@click.option("--step", type=int, help="Step of the completions; the newest if not given.")
@click.option("--worst", type=click.IntRange(min=1), metavar="N", help="The N with the lowest rewards.")
@click.option("--best", type=click.IntRange(min=1), metavar="N", help="The N with the highest rewards.")
@click.option("--test", is_flag=True, help="Completions of the evaluation after the step.")
@click.option("--problem", metavar="ID", help="Only completions of this problem.")
@click.option("--verdict", type=click.Choice(VERDICTS), help="Only completions with this verdict.")
@click.option("--masked", is_flag=True, help="Only those whose advantage the truncation mask set to 0.")
@click.option("--truncated", is_flag=True, help="Only those cut at the response limit.")
@click.option("-n", "limit", type=click.IntRange(min=1), help=f"At most so many; {SHOWN} where not given.")
@click.option("--list", "as_list", is_flag=True, help="List the steps that have rollouts instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines; all of them where -n is not given.")
def command(
    run: str,
    step: int | None,
    worst: int | None,
    best: int | None,
    test: bool,
    problem: str | None,
    verdict: str | None,
    masked: bool,
    truncated: bool,
    limit: int | None,
    as_list: bool,
    as_json: bool,
) -> None:
    """Print completions of the run RUN, each with its verdict, reward and the judge's message."""
    from ..runs import RunError, index, read_info, read_prompts, read_rollouts, read_statements, select, steps

    if worst and best:
        raise click.UsageError("--worst and --best cannot go together; leave one out")
    if as_list and any((test, step is not None, problem, verdict, masked, truncated, worst, best, limit)):
        raise click.UsageError("--list lists the steps of training; only --json goes with it")
    try:
        read_info(run)
        if as_list:
            return _print_json(index(run)) if as_json else _print_list(index(run))
        step = step if step is not None else max(steps(run, test), default=0)
        everything = read_rollouts(run, step, test)
        asked = read_statements(run, step, test) | read_prompts(run, step, test)
    except RunError as error:
        raise Refused(str(error)) from None
    problems = {r["problem"] for r in everything}
    if problem is not None and problem not in problems:
        some = ", ".join(sorted(problems)[:5]) + ", ..." * (len(problems) > 5)
        hint = nearest(problem, problems) or f"; its problems are {some}"
        raise Refused(f"no rollout of step {step} is for problem {problem!r}{hint}")
    flags = {"masked": masked or None, "truncated": truncated or None}  # one that is not given asks for nothing
    found = select(everything, worst=worst, best=best, problem=problem, verdict=verdict, limit=limit, **flags)
    if as_json:
        return _print_json(found)
    shown = found if limit or worst or best else found[:SHOWN]
    _print_rollouts(shown, asked)
    echo(_footer(step, everything, found, shown), err=True)


def _footer(step: int, everything: list[Any], found: list[Any], shown: list[Any]) -> str:
    if not found:
        there = ", ".join(f"{name} {count}" for name, count in Counter(r["verdict"] for r in everything).most_common())
        return f"none of the {len(everything)} rollouts of step {step} is like that; their verdicts: {there}"
    more = f"; -n {len(found)} shows all {len(found)} that match" if len(shown) < len(found) else ""
    return f"{len(shown)} of the {len(everything)} rollouts of step {step}{more}"


def _print_json(records: list[dict[str, Any]]) -> None:
    from ..files import json_line

    for record in records:
        echo(json_line(record).decode(), nl=False)


def _print_list(entries: list[dict[str, Any]]) -> None:
    rows = [COLUMNS, *(tuple(_short(entry[name]) for name in COLUMNS) for entry in entries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        echo("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def _print_rollouts(rollouts: list[dict[str, Any]], asked: dict[str, str]) -> None:
    """Print each completion after its prompt (or statement), which is printed once for a problem."""
    from .terminal import Terminal

    console = Terminal()
    last = None
    for rollout in rollouts:
        if rollout["problem"] != last and asked.get(rollout["problem"]):
            echo(_quoted(asked[rollout["problem"]]))
        last = rollout["problem"]
        for number, one in enumerate(rollout.get("earlier") or [], 1):
            _print_try(console, f"{visible(rollout['problem'])}  {visible(one['verdict'])}  try {number}", one)
            echo(_quoted(one["told"]))
        _print_try(console, _header(rollout), rollout)


def _print_try(console: Console, header: str, rollout: dict[str, Any]) -> None:
    """Print what the model wrote, and what the judge said of it."""
    if console.is_terminal:
        return _print_colours(console, header, rollout)
    message = rollout.get("message")
    echo(f"--- {header}\n{visible(rollout['completion'])}")
    echo(f"judge: {visible(message)}\n" if message else "")


def _print_colours(console: Console, header: str, rollout: dict[str, Any]) -> None:
    from rich.syntax import Syntax
    from rich.text import Text

    style = {ACCEPTED: "bold green", "internal_error": "bold magenta"}.get(rollout["verdict"], "bold red")
    console.print(Text(f"--- {header}", style=style))
    text = visible(rollout["completion"])  # shown as it is, fences and all; the Python in them is highlighted
    console.print(Syntax(text, "markdown", theme="ansi_dark", background_color="default", word_wrap=True))
    message = rollout.get("message")
    console.print(Text(f"judge: {visible(message)}\n" if message else "", style="yellow"))


def _quoted(prompt: str) -> str:
    lines = visible(prompt).strip().splitlines()
    more = [f"... ({len(lines) - LINES} more lines)"] if len(lines) > LINES else []
    return "\n".join(f"> {line}".rstrip() for line in [*lines[:LINES], *more])


def _header(rollout: dict[str, Any]) -> str:
    numbers = [f"{name} {_short(rollout.get(name))}" for name in ("row", "reward", "advantage", "length")]
    flags = [name for name in FLAGS if rollout.get(name)]
    tries = [f"try {len(rollout['earlier']) + 1}"] if rollout.get("earlier") else []
    return "  ".join([visible(rollout["problem"]), rollout["verdict"], *tries, *numbers, *flags])


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
