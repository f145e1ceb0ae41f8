"""The `microcoder` command. Each sub-command is a module that is imported only when it is used.

The table below holds what `microcoder --help` prints, so that the first touch loads nothing but click.
"""

from __future__ import annotations

import atexit
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from .. import __version__
from .shown import visible

COMMANDS = {  # name: (module, the line in --help)
    "train": ("train", "Train a model with reinforcement learning."),
    "calibrate": ("calibrate", "Choose a sampling temperature: T(D)."),
    "judge": ("judge", "Judge programs against the tests of their problems."),
    "serve": ("serve", "Judge programs for others, over HTTP."),
    "eval": ("eval", "Score models on LiveCodeBench, HumanEval, MBPP or any problems."),
    "data": ("data", "Make a training set: collect, process, filter, verify."),
    "forge": ("forge", "Make weak tests stronger: inputs that wrong programs fail."),
    "study": ("study", "Run the paper's claims as controlled studies."),
    "view": ("view", "Look at runs in the browser: curves, rollouts, comparisons."),
    "advise": ("advise", "Say what is going wrong in a run, and what to change."),
    "rollouts": ("rollouts", "Read the programs a run has sampled, with their verdicts."),
    "export": ("export", "Write a run's model for use elsewhere: whole, bfloat16, a card."),
    "ls": ("ls", "List the configurations, algorithms, models and problems."),
    "cp": ("cp", "Copy a configuration, to change it."),
    "doctor": ("doctor", "Say what works on this machine, and what to do about the rest."),
    "config": ("config", "Print the settings as a TOML file."),
    "completion": ("completion", "Print the script that completes commands in your shell."),
}
OLD_NAMES = {"bench": "eval"}  # they go on working, and are not listed

EXTRAS = {  # a package that is not part of the core: the extra that brings it
    **dict.fromkeys(("accelerate", "jinja2", "matplotlib", "peft", "PIL", "torch", "transformers", "trl"), "train"),
    **dict.fromkeys(("ftfy", "markdownify", "openai", "py3langid", "selectolax", "sklearn", "yaml"), "data"),
    **dict.fromkeys(("fastapi", "httptools", "starlette", "uvicorn", "uvloop"), "serve"),
    "datasets": "data", "plotly": "view", "ray": "ray", "safetensors": "train", "tokenizers": "train", "verl": "verl",
}  # fmt: skip
# of a command, whichever package it misses first
OWN_EXTRA = {"data": "data", "forge": "data", "serve": "serve", "view": "view"}


class Lazy(click.Group):
    """A click group that imports a command when it is first used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = OLD_NAMES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"{__name__}.{COMMANDS[cmd_name][0]}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in {**COMMANDS, **OLD_NAMES} and not args[0].startswith("-") and not ctx.resilient_parsing:
            from ..schema import nearest

            hint = nearest(args[0], COMMANDS) or "; `microcoder --help` lists them"
            raise click.UsageError(f"there is no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.command(
    cls=Lazy,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`microcoder COMMAND --help` explains a command.",
)
@click.version_option(__version__, prog_name="microcoder")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Reinforcement learning that makes coding models better."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


class Refused(click.ClickException):
    """A usage error; the message says what to type instead."""

    exit_code = 2


def _show(error: click.ClickException) -> None:
    """Print an error of click with control characters made visible: it may quote a file."""
    said = io.StringIO()
    error.show(said)
    click.echo(visible(said.getvalue()), err=True, nl=False)


def main(argv: Sequence[str] | None = None) -> None:
    """Run and exit: 0 done, 1 done with faults that were named, 2 asked for in a wrong way, 130 Ctrl-C, 143 SIGTERM."""
    if "_MICROCODER_COMPLETE" in os.environ:
        from . import completion  # noqa: F401  (its scripts take the place of click's)
    try:
        result: Any = cli.main(argv, prog_name="microcoder", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except click.ClickException as error:
        _show(error)
        code = error.exit_code
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in EXTRAS:
            raise
        words = sys.argv[1:] if argv is None else argv
        command = next((word for word in words if not word.startswith("-")), "")
        extra = "verl" if "run.engine=verl" in words else OWN_EXTRA.get(command, EXTRAS[name])
        _show(Refused(f"`microcoder {command}` needs the package {name}: pip install 'microcoder[{extra}]'"))
        code = Refused.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    if argv is None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> None:
    """End one of several training processes, whose open connections make the interpreter's own end abort at times."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
