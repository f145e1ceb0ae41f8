"""`microcoder completion`: the script that makes the shell complete our commands and settings."""

from __future__ import annotations

import click

from .shown import echo


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for your shell. To install it, once:

    \b
    bash:  echo 'eval "$(microcoder completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(microcoder completion zsh)"' >> ~/.zshrc
    fish:  microcoder completion fish > ~/.config/fish/completions/microcoder.fish
    """
    from click.shell_completion import get_completion_class

    from . import cli

    maker = get_completion_class(shell)
    assert maker is not None  # the choice above holds exactly the shells that click knows
    echo(maker(cli, {}, "microcoder", "_MICROCODER_COMPLETE").source())
