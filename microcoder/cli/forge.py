"""`microcoder forge`: problems with weak tests in, problems with stronger tests out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from . import Refused
from .shown import echo

if TYPE_CHECKING:
    from ..data.forge.whole import ForgeSummary

SHOWN = 5  # lines of each kind that are named one by one


class WithForgeSettings(click.Command):
    """A command whose help ends with the settings of the forge."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from ..config import expected, toml_value
        from ..data.settings import ForgeConfig

        with formatter.section("Settings, as forge.key=value or under [forge] in a TOML file"):
            formatter.write_dl(
                [
                    (f"forge.{name}={toml_value(f.default)}", f"{f.description} [{expected(f.annotation, f.metadata)}]")
                    for name, f in ForgeConfig.model_fields.items()
                    if name != "enabled"
                ],
                col_max=30,
            )


@click.command("forge", cls=WithForgeSettings)
@click.argument("problems", type=click.Path())
@click.argument("overrides", nargs=-1, metavar="[section.key=value ...]")
@click.option("-o", "--output", type=click.Path(), required=True, help="The file to write: .parquet or .jsonl.")
@click.option("--adversaries", type=click.Path(), multiple=True,
    help="A file or folder of programs for the problems, many of them wrong: a run's rollouts, solutions.jsonl, "
    "samples.jsonl of `microcoder eval`. Can be given several times.")  # fmt: skip
@click.option("--config", "config_file", type=click.Path(), help="A TOML file with [forge] and [judge].")
@click.option("--fresh", is_flag=True, help="Begin anew instead of going on where an earlier run was stopped.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def command(
    problems: str,
    overrides: tuple[str, ...],
    output: str,
    adversaries: tuple[str, ...],
    config_file: str | None,
    fresh: bool,
    as_json: bool,
) -> int:
    """Add tests to the PROBLEMS that wrong programs fail. Typed again after a stop, it goes on.

    Inputs are made from the constraints in the statement and from the tests there are, kept for the wrong programs that
    they kill, and labelled by the reference solutions. A problem for which that cannot be done stays as it is.
    """
    from ..api import forge
    from ..config import ConfigError
    from ..data.record import DataError
    from ..files import FileError, count_records
    from ..judge import JudgeError
    from .terminal import Progress

    try:
        with Progress(count_records(problems), "problems") as progress:
            summary = forge(
                problems, output, *overrides, adversaries=adversaries, config=config_file, fresh=fresh,
                progress=lambda before: progress.step(judged=not before),
            )  # fmt: skip
    except (ConfigError, DataError, FileError, JudgeError) as error:
        raise Refused(str(error)) from None
    except KeyboardInterrupt:
        echo("\nstopped; what is done is kept, and the same command goes on from there", err=True)
        return 130
    if as_json:
        echo(json.dumps(summary.to_dict(), indent=2))
    else:
        show(summary, output)
    return 1 if summary.bad_lines else 0


def show(summary: ForgeSummary, output: str) -> None:
    from rich.table import Table

    from .terminal import Terminal

    console, before, after = Terminal(), summary.before, summary.after
    resumed = f", {summary.resumed:,} of them done before" if summary.resumed else ""
    speed = (summary.problems - summary.resumed) / max(summary.seconds, 1e-9)
    echo(f"{summary.forged:,} of {summary.problems:,} problems have stronger tests{resumed}; {speed:.2f} problems/s")
    if summary.forged:
        table = Table("", "before", "after", box=None)
        table.add_row("tests a problem", *(f"{c['tests'] / summary.forged:.1f}" for c in (before, after)))
        table.add_row("mutants alive", *(_alive(c, "alive", "mutants") for c in (before, after)))
        if before["adversaries"]:
            table.add_row(
                "adversaries alive", *(_alive(c, "adversaries_alive", "adversaries") for c in (before, after))
            )
        console.print(table)
    _listed("stay as they are", summary.reasons)
    _listed("inputs left out", summary.left_out)
    _listed("the language model's generators", summary.llm)
    if summary.adversaries:
        silent = f"; {before['silent']:,} of those tried are no Python" if before["silent"] else ""
        echo(f"adversaries: {summary.adversaries}{silent}")
    _named("the reference contradicts the statement", summary.contradictions)
    _named("could not be read", summary.unreadable, summary.bad_lines)
    echo(f"written: {output}")


def _alive(counts: dict[str, int], alive: str, of: str) -> str:
    return f"{counts[alive]:,} of {counts[of]:,} ({counts[alive] / max(1, counts[of]):.1%})"


def _listed(what: str, counts: Any) -> None:
    if +counts:
        echo(f"{what}: " + ", ".join(f"{name} {count:,}" for name, count in counts.most_common() if count))


def _named(what: str, lines: list[str], count: int = 0) -> None:
    count = count or len(lines)
    for line in lines[:SHOWN]:
        echo(f"{what}: {line}", err=True)
    if count > SHOWN:
        echo(f"{what}: {count - SHOWN:,} more", err=True)
