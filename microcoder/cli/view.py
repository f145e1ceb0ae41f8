"""`microcoder view`: the runs of a folder in the browser, or in one file to send."""

from __future__ import annotations

import secrets
import webbrowser
from pathlib import Path
from urllib.parse import quote

import click

from ..web import LOOPBACK
from . import Refused
from .serve import check_tokens, listen
from .shown import echo


@click.command("view")
@click.argument("path", type=click.Path(path_type=Path), default=Path("runs"))
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at; 0.0.0.0: all of them.")
@click.option("--port", type=click.IntRange(0, 65535), default=8421, show_default=True, help="Port; 0: any free one.")
@click.option("--token", metavar="T", help="Token that a browser must give; a random one if --host is not local.")
@click.option("--open/--no-open", "opens", default=False, help="Open the browser too.")
@click.option("--export", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write one HTML file.")
@click.option("--export-mb", type=click.FloatRange(0), default=20.0, show_default=True, help="MB of rollouts in it.")
def command(
    path: Path, host: str, port: int, token: str | None, opens: bool, target: Path | None, export_mb: float
) -> None:
    """Show runs in the browser: live curves, completions, comparisons, evaluations and studies.

    PATH is a run, or a folder of them; runs where not given. Nothing is written to it.
    """
    check_tokens([] if token is None else [token])
    try:
        next(path.iterdir(), None)
    except (FileNotFoundError, NotADirectoryError):
        begin = "begin a run with `microcoder train demo`, or name where runs are"
        raise Refused(f"there is no folder {path}; {begin}") from None
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None
    try:
        from ..view import app, export, serve
    except ImportError as error:
        raise Refused(f"{error.name} is needed to look at runs: pip install 'microcoder[view]'") from None
    if target is not None:
        try:
            echo(export(path, target, export_mb))
        except OSError as error:
            raise Refused(f"cannot write {target}: {error.strerror}") from None
        echo(f"{target}: {target.stat().st_size / 1e6:.1f} MB")
        return
    if token is None and host not in LOOPBACK:
        token = secrets.token_urlsafe(24)
    server = app(path, token, host)
    listener, address = listen(host, port)
    address += f"/?token={quote(token, safe='')}" if token else "/"
    echo(f"{path}: {address}  (Ctrl-C ends it)")
    if opens:
        webbrowser.open(address)
    serve(server, listener)
