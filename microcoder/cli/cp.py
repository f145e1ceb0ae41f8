"""`microcoder cp`: a configuration of the package as a file of one's own."""

from __future__ import annotations

import click

from . import Refused
from .completion import complete_recipe
from .shown import echo


@click.command("cp")
@click.argument("name", shell_complete=complete_recipe)
@click.argument("file", type=click.Path())
def command(name: str, file: str) -> None:
    """Copy the configuration NAME (see `microcoder ls`) to FILE, to change it and train with it."""
    from ..config import shipped
    from ..schema import nearest

    if name not in shipped():
        raise Refused(f"there is no configuration {name!r}{nearest(name, shipped()) or '; `microcoder ls` lists them'}")
    try:
        with open(file, "x", encoding="utf-8") as copy:
            copy.write(shipped()[name].read_text(encoding="utf-8"))
    except FileExistsError:
        raise Refused(f"{file} exists already and is left as it is; name another file") from None
    except OSError as error:
        raise Refused(f"cannot write {file}: {error.strerror}") from None
    echo(f"{file}: change what you like, then `microcoder train {file}`")
