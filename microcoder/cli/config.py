"""`microcoder config`: the settings as they would be used, as a file that every command accepts back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from . import Refused
from .completion import complete_config
from .shown import echo


@click.command("config")
@click.argument("words", nargs=-1, metavar="[CONFIG] [section.key=value ...]", shell_complete=complete_config)
@click.option("--comments/--no-comments", default=True, help="With or without what each setting means.")
def command(words: tuple[str, ...], comments: bool) -> None:
    """Print the settings as TOML: the defaults, then CONFIG, then each section.key=value.

    CONFIG is a TOML file, a configuration that came with the package (`microcoder ls`), or a run such as runs/a.

    To begin a file of your own: microcoder config > settings.toml
    """
    from ..config import find, load

    show(lambda path, changes: load(path and find(path), changes), words, comments)


def show(load: Callable[[str | None, tuple[str, ...]], Any], words: tuple[str, ...], comments: bool) -> None:
    """Print the settings that result from a file and changes, by `load`."""
    from ..config import SETTING, ConfigError, to_toml

    has_file = bool(words) and SETTING.fullmatch(words[0]) is None
    try:
        config = load(words[0] if has_file else None, words[1:] if has_file else words)
    except ConfigError as error:
        raise Refused(str(error)) from None
    echo(to_toml(config, comments), nl=False)
