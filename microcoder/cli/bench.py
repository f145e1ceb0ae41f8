"""`microcoder bench`: a model or a file of completions in, scores with intervals out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import Refused
from .bench_asking import (
    Told,
    asked,
    config_of,
    default_folder,
    judge_options,
    local_model,
    model_and_settings,
    suite_of,
    suite_options,
)
from .bench_compare import compare
from .bench_temperatures import temperatures
from .completion import complete_model
from .shown import echo

if TYPE_CHECKING:
    from ..evaluation.asking import Ask
    from ..evaluation.records import Sample, Suite
    from ..evaluation.running import Make

FORMATS = ("text", "markdown", "latex", "json")


class BenchGroup(click.Group):
    """`bench MODEL ...` runs one; the other commands are named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args and args[0] in self.commands else ["run", *args])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return "" if name == "run" else name, command, rest


class RunCommand(click.Command):
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Further commands, each with --help"):
            formatter.write_dl(
                [
                    ("bench compare A B", "Whether the difference of two benches is more than chance."),
                    ("bench show FOLDER", "The scores of a bench again, as text, Markdown, LaTeX or JSON."),
                    ("bench temperatures", "Accuracy and diversity over temperatures, for a list of checkpoints."),
                ]
            )


@click.group("bench", cls=BenchGroup)
def command() -> None:
    """Scores of models on suites of problems."""


@command.command("run", cls=RunCommand, hidden=True)
@click.argument("words", nargs=-1, metavar="[MODEL] [section.key=value ...]", shell_complete=complete_model)
@suite_options
@click.option("-n", "--tries", type=click.IntRange(min=1), help="Tries at each problem; 4 if not given.")
@click.option("--temperature", type=click.FloatRange(min=0), help="Of sampling; 0.2 if not given.")
@click.option("--limit", "limits", metavar="N[,N...]", help="Tokens in a response; several cost as the largest.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of sampling.")
@click.option("--completions", type=click.Path(), help="Score this file instead of a model.")
@click.option("--missing", type=click.Choice(("refuse", "wrong", "skip")), default="refuse", show_default=True,
              help="What problems without a completion are.")  # fmt: skip
@click.option("--server", metavar="URL", help="Ask MODEL there: any OpenAI-compatible address, mostly ending in /v1.")
@click.option("--key-env", default="", help="The environment variable with the server's key.")
@click.option("--concurrency", type=click.IntRange(min=1), default=32, show_default=True, help="Questions at a time.")
@click.option("-o", "--output", type=click.Path(), help="The folder; else runs/a/bench/SUITE or bench/MODEL/SUITE.")
@click.option("--fresh", is_flag=True, help="Start the folder over instead of going on with it.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="To print.")
def run(words: tuple[str, ...], suite: str, form: str, **options: Any) -> int:
    """Score MODEL on a suite: nano, a hub id, a folder, a run such as runs/a; or a file of completions.

    Samples are kept as they come: after a kill the same command goes on, and ends as if it had never been stopped. Each
    is judged under LiveCodeBench's rule (exact) and ours (robust) at once.
    """
    from ..evaluation.records import BenchError
    from ..judge import JudgeError
    from ..runs import RunError

    model, settings = model_and_settings(words)
    try:
        return _run(model, settings, suite, form, options)
    except (BenchError, JudgeError, RunError, OSError) as error:
        raise Refused(str(error)) from None
    except KeyboardInterrupt:
        echo("\nstopped; what was written is kept, and the same command goes on from there", err=True)
        return 130


def _run(model: str, settings: list[str], suite_name: str, form: str, options: dict[str, Any]) -> int:
    from ..evaluation.folder import Folder
    from ..evaluation.running import run as run_bench

    completions, server = options["completions"], options["server"]
    if bool(model) == bool(completions):
        raise click.UsageError("name a model to ask, or a file to score with --completions; one of the two")
    if server and completions:
        raise click.UsageError("--server is for a model, --completions for a file; leave one of them out")
    config = config_of(settings)
    suite = suite_of(suite_name, options)
    judge = judge_options(config, suite)
    common = asked(suite, config, judge, options)
    if completions:
        ask, make, total = _of_file(completions, suite, options["missing"], common)
    elif server:
        ask, make, total = _of_server(model, suite, options, common)
    else:
        local = local_model(model, config)
        ask = local.ask(common)
        make, total = partial(local.samples, ask, suite.problems), len(suite.problems) * ask.tries
    folder = Path(options["output"] or default_folder(model or Path(completions).stem, suite))
    with Folder(folder, ask, options["fresh"]) as kept, Told(total * len(ask.limits)) as told:
        if 0 < len(kept.samples) < total:
            told.say(f"{folder} holds {len(kept.samples)} of {total} samples; the others are made now")
        result = run_bench(suite, kept, make, judge, told)
    return show_result(result, folder, form)


def _of_file(path: str, suite: Suite, missing: str, common: dict[str, Any]) -> tuple[Ask, Make, int]:
    from ..evaluation.asking import Ask, fingerprint
    from ..evaluation.completions import read_completions

    samples = read_completions(path, suite, missing=missing)
    tries = max(sample.number + 1 for sample in samples)
    given = {"tries": tries, "temperature": None, "top_p": 1.0, "top_k": 0, "limits": (0,), "seed": None}
    ask = Ask(model=path, weights=fingerprint(path), source="file", chunk=0, **{**common, **given})

    def make(known: Sequence[str]) -> Iterator[Sample]:
        there = set(known)
        return (sample for sample in samples if sample.id not in there)

    return ask, make, len(samples)


def _of_server(model: str, suite: Suite, options: dict[str, Any], common: dict[str, Any]) -> tuple[Ask, Make, int]:
    from ..data.endpoint import Endpoint
    from ..evaluation.asking import Ask
    from ..evaluation.server import Server

    if common["top_k"]:
        raise Refused("rollout.top_k is no word of the servers' protocol; set it where the server is started")
    url, concurrency = options["server"], options["concurrency"]
    ask = Ask(model=model, weights=url, source="server", chunk=0, **common).check()
    server = Server(Endpoint(url, model, options["key_env"], timeout_s=3600.0, concurrency=concurrency), concurrency)
    every = [(n, k) for n in range(len(suite.problems)) for k in range(ask.tries)]

    def make(known: Sequence[str]) -> Iterator[Sample]:
        there = set(known)
        work = [(n, k) for n, k in every if f"{suite.problems[n].id}#{k}" not in there]
        return server.samples(
            work,
            suite.problems,
            ask.style,
            temperature=common["temperature"],
            limits=ask.limits,
            top_p=ask.top_p,
            seed=ask.seed,
        )

    return ask, make, len(every)


def show_result(result: dict[str, Any], folder: Path, form: str) -> int:
    from ..evaluation import tables

    if form == "json":
        echo(json.dumps(result, indent=1))
    else:
        echo({"text": tables.text, "markdown": tables.markdown, "latex": tables.latex}[form](result))
    if form == "text":
        echo(f"in {folder}: samples.jsonl and verdicts.jsonl to read, scores.json, report.md, table.tex")
    return 1 if any(limit["internal_errors"] for limit in result["scores"].values()) else 0


@command.command("show")
@click.argument("folder", type=click.Path())
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
def show(folder: str, form: str) -> int:
    """Print the scores of a bench again."""
    from ..evaluation.reading import read_bench, read_json
    from ..evaluation.records import BenchError

    try:
        read_bench(folder)
        result = read_json(Path(folder) / "scores.json")
    except BenchError as error:
        raise Refused(str(error)) from None
    return show_result(result or {}, Path(folder), form)


command.add_command(compare)
command.add_command(temperatures)
