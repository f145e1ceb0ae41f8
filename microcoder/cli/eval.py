"""`microcoder eval`: a model or a file of completions in, scores with intervals out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import Refused
from .completion import complete_model, complete_suite
from .shown import echo

if TYPE_CHECKING:
    from ..evaluation.folder import Scores

FORMATS = ("text", "markdown", "latex", "json")


class EvalGroup(click.Group):
    """The group `eval`: `eval MODEL ...` runs an evaluation; sub-commands have names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args and args[0] in self.commands else ["run", *args])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return "" if name == "run" else name, command, rest


class EvalContext(click.Context):
    @property
    def command_path(self) -> str:
        return super().command_path.rstrip()  # the name of this command is empty


class EvalRun(click.Command):
    context_class = EvalContext

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Further commands, each with --help"):
            formatter.write_dl(
                [
                    ("eval compare A B", "Tell whether two evaluations (or groups) differ by more than chance."),
                    ("eval show FOLDER", "Print the scores again, as text, Markdown, LaTeX or JSON."),
                    ("eval temperatures", "Accuracy and diversity over temperatures, for a list of checkpoints."),
                ]
            )


def suite_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select a suite and its problems."""
    options = [
        click.option("--suite", required=True, shell_complete=complete_suite,
                     help="livecodebench, humaneval, mbpp, humanevalplus, mbppplus, starter, or a problem file."),
        click.option("--data", type=click.Path(), help="The suite's file or folder; else it comes from the hub."),
        click.option("--release", default="", help="Of livecodebench: v6 is what is new in v6, release_v6 is all."),
        click.option("--from", "start", default="", metavar="DATE", help="Only problems of this day or later."),
        click.option("--to", "end", default="", metavar="DATE", help="Only problems of this day or earlier."),
        click.option("--platform", "platforms", multiple=True, help="Only this platform; may be given again."),
        click.option("--difficulty", "difficulties", multiple=True,
                     help="Only this difficulty: a label, a band such as 0.4-0.6, or a score in it; again for more."),
        click.option("--first", type=click.IntRange(min=1), help="Only the first so many problems, to try things."),
        click.option("--style", type=click.Choice(("code", "reason")),
                     help="Prompts of ours: for the program, or for the approach in words first; else the suite's own, "
                     "or those that a run was trained with."),
        click.option("--unchecked", is_flag=True, help="Take a suite's files whatever the number of their problems."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors of the package into usage errors."""
    from ..config import ConfigError
    from ..evaluation.suite import EvaluationError
    from ..judge import JudgeError
    from ..runs import RunError

    try:
        yield
    except (ConfigError, EvaluationError, JudgeError, RunError, OSError) as error:
        raise Refused(str(error)) from None


@click.group("eval", cls=EvalGroup)
def command() -> None:
    """Scores of models on suites of problems."""


@command.command("run", cls=EvalRun, hidden=True)
@click.argument("words", nargs=-1, metavar="[MODEL] [section.key=value ...]", shell_complete=complete_model)
@suite_options
@click.option("-n", "--samples", "--tries", "samples", type=click.IntRange(min=1),
              help="Samples for each problem; 4 if not given.")  # fmt: skip
@click.option("--temperature", type=click.FloatRange(min=0), help="Sampling temperature; 0.2 if not given.")
@click.option("--limit", "limits", metavar="N[,N...]", help="Most tokens in a completion; several cost as the largest.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of sampling.")
@click.option("--completions", type=click.Path(), default="", help="Score this file of completions instead of a model.")
@click.option("--missing", type=click.Choice(("refuse", "wrong", "skip")), default="refuse", show_default=True,
              help="What to do with problems that have no completion.")  # fmt: skip
@click.option("--server", metavar="URL", default="",
              help="Sample from MODEL at this OpenAI-compatible address, which mostly ends in /v1.")  # fmt: skip
@click.option("--key-env", default="", help="The environment variable with the server's key.")
@click.option("--concurrency", type=click.IntRange(min=1), default=32, show_default=True, help="Requests at a time.")
@click.option("-o", "--output", type=click.Path(), help="Output folder; else runs/a/bench/SUITE or bench/MODEL/SUITE.")
@click.option("--fresh", is_flag=True, help="Start the folder over instead of continuing it.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Print as this.")
def run(words: tuple[str, ...], suite: str, form: str, limits: str | None, **options: Any) -> int:
    """Score MODEL on a suite: nano, a hub id, a folder, a run such as runs/a, a GGUF file; or a file of completions.

    Completions are written as they come: after a kill the same command continues, with the same result. Each program is
    judged under LiveCodeBench's rule (exact) and ours (robust) at once.
    """
    from ..api import evaluate

    models, settings = divided(words)
    if len(models) > 1:
        raise click.UsageError(f"one model at a time; here are {', '.join(models)}")
    try:
        with refusals():
            limit = limits_of(limits)
            scores = evaluate("".join(models), suite, *settings, limit=limit, note=say, watch=watched, **options)
    except KeyboardInterrupt:
        return stopped()
    return show_scores(scores, form)


@command.command("show")
@click.argument("folder", type=click.Path())
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
def show(folder: str, form: str) -> int:
    """Print the scores of an evaluation again."""
    from ..evaluation.folder import read_scores

    with refusals():
        scores = read_scores(folder)
    return show_scores(scores, form)


@command.command("compare")
@click.argument("folders", nargs=-1, type=click.Path(), metavar="BEFORE... [with] AFTER...")
@click.option("--limit", type=click.IntRange(min=0), help="Under this limit; else the largest that all have.")
@click.option("--policy", type=click.Choice(("exact", "robust")), default="robust", show_default=True)
@click.option("--tests", type=click.Choice(("all", "base")), default="all", show_default=True,
              help="Of EvalPlus: base and plus tests, or the base tests alone.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
def compare(folders: tuple[str, ...], limit: int | None, policy: str, tests: str, form: str) -> int:
    """Tell whether two evaluations differ by more than chance would give, problem by problem.

    A side may be several evaluations, such as those of three training seeds, and `with` stands between the sides:

    \b
      microcoder eval compare bench/a-s* with bench/b-s*
    """
    from ..evaluation import tables
    from ..evaluation.folder import compare_scores, read_scores

    sides = two_sides(folders)
    with refusals():
        groups = [[read_scores(folder) for folder in side] for side in sides]
        found, notes = compare_scores(groups[0], groups[1], limit, policy, tests)
    for note in notes:
        say(f"note: {note}")
    names = (short_name(sides[0]), short_name(sides[1]))
    if form == "json":
        echo(json.dumps({"names": names, **found}, indent=1))
    else:
        forms = {
            "text": tables.comparison_text,
            "markdown": tables.comparison_markdown,
            "latex": tables.comparison_latex,
        }
        echo(forms[form](found, names))
    return 0


@command.command("temperatures")
@click.argument("words", nargs=-1, required=True, metavar="MODEL... [section.key=value ...]")
@suite_options
@click.option("--grid", default="0.2,0.6,1.0,1.4,1.8", show_default=True, help="Temperatures.")
@click.option("-n", "--samples", "--tries", "samples", type=click.IntRange(min=2), default=4, show_default=True,
              help="Samples for each problem.")  # fmt: skip
@click.option("--limit", "limits", metavar="N", help="Tokens in a response.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("-o", "--output", type=click.Path(), required=True, help="A folder for the evaluations and the figure.")
@click.option("--fresh", is_flag=True, help="Start its evaluations over instead of continuing them.")
def temperatures(
    words: tuple[str, ...], grid: str, limits: str | None, output: str, fresh: bool, **options: Any
) -> int:
    """Accuracy and diversity of checkpoints over a grid of temperatures, as a table and a figure."""
    models, settings = divided(words)
    if not models:
        raise click.UsageError("name at least one model, or a checkpoint such as runs/a")
    try:
        with refusals():
            from ..evaluation.harness import prepare
            from ..evaluation.temperatures import sweep

            exam = prepare(settings=settings, limits=limits_of(limits), note=say, **options)
            table = sweep(models, numbers_of(grid), Path(output), exam, say, watched, fresh)
    except KeyboardInterrupt:
        return stopped()
    echo(table)
    echo(f"the figure: {Path(output) / 'temperatures.png'}")
    return 0


def show_scores(scores: Scores, form: str) -> int:
    from ..evaluation import tables

    result = scores.result
    if form == "json":
        echo(json.dumps(result, indent=1))
    else:
        echo({"text": tables.text, "markdown": tables.markdown, "latex": tables.latex}[form](result))
    if form == "text":
        echo(f"in {scores.folder}: samples.jsonl and verdicts.jsonl to read, scores.json, report.md, table.tex")
    return 1 if any(limit["internal_errors"] for limit in result["scores"].values()) else 0


def divided(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Divide words into (models, settings)."""
    from ..config import SETTING

    settings = [word for word in words if SETTING.fullmatch(word)]
    return [word for word in words if word not in settings], settings


def two_sides(folders: tuple[str, ...]) -> list[list[str]]:
    """Divide folders into the two sides of a comparison: at the word `with`; two folders need none."""
    words = [folders[0], "with", folders[1]] if len(folders) == 2 else list(folders)
    at = words.index("with") if "with" in words else len(words)
    sides = [words[:at], words[at + 1 :]]
    if not all(sides) or "with" in sides[1]:
        given = " ".join(folders) or "nothing"
        raise Refused(f"{given}: not two sides; name two folders, or put `with` between: a-s0 a-s1 with b-s0 b-s1")
    for side in sides:
        if len(set(side)) < len(side):
            raise Refused(f"{max(side, key=side.count)} is named twice on one side; name each evaluation once")
    return sides


def short_name(folders: list[str]) -> str:
    """Name a side: its folder, or the first of several and how many more."""
    return folders[0] if len(folders) == 1 else f"{folders[0]} and {len(folders) - 1} more"


def limits_of(text: str | None) -> tuple[int, ...]:
    """Read 4096,8192 or 4k,8k."""
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
    if not found or not all(0 <= temperature < float("inf") for temperature in found):
        raise Refused(f"--grid {text}: write temperatures such as 0.2,0.6,1.0")
    return found


def say(text: str) -> None:
    echo(text, err=True)


def stopped() -> int:
    say("\nstopped; what was written is kept, and the same command goes on from there")
    return 130


class VerdictProgress:
    """Show progress on the terminal: verdicts so far, and time left."""

    def __init__(self, total: int) -> None:
        from .terminal import Progress

        self.progress = Progress(total, "verdicts")

    def judged(self, before: bool) -> None:
        self.progress.step(judged=not before)

    def say(self, text: str) -> None:
        self.progress.say(text)


@contextmanager
def watched(total: int, title: str) -> Iterator[VerdictProgress]:
    watcher = VerdictProgress(total)
    if title:
        watcher.say(title)
    with watcher.progress:
        yield watcher
