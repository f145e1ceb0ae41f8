"""`microcoder serve`: the judge over HTTP, for any trainer."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable

import click

from ..web import LOOPBACK
from . import Refused
from .completion import complete_setting
from .settings import Setting, WithSettings
from .shown import echo


def check_tokens(tokens: Iterable[str], variable: str | None = None) -> None:
    """Refuse an empty token, which would let everybody in."""
    empty = "--token is empty" if not all(token.strip() for token in tokens) else ""
    if variable and not tokens and variable in os.environ and not os.environ[variable].strip():
        empty = f"{variable} is empty"
    if empty:
        raise click.UsageError(f"{empty}, which would let anybody in; give a long random one, or leave it away")


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """Open a listening socket; return it and the address to tell clients."""
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise Refused(
            f"cannot listen at {host}, port {port}: {error.strerror}; the same command may be running already: "
            "choose another with --port, or any that is free with --port 0"
        ) from None
    # Or 40 ms pass between head and body of an answer: asyncio sets it only for listeners of its own.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    name = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return listener, f"http://{name}:{listener.getsockname()[1]}"


TOKEN = "MICROCODER_TOKEN"


@click.command("serve", cls=WithSettings)
@click.argument("overrides", nargs=-1, metavar="[section.key=value ...]", shell_complete=complete_setting)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at; 0.0.0.0: all of them.")
@click.option("--port", type=click.IntRange(0, 65535), default=8422, show_default=True, help="Port; 0: any free one.")
@click.option(
    "--token", "tokens", metavar="T", multiple=True, envvar=TOKEN, show_envvar=True,
    help="Token that a client must give; may be given several times, one for each client. A random one is made if "
    "--host is not local.",
)  # fmt: skip
@click.option("--config", "config_file", type=click.Path(), help="A TOML file with settings.")
@click.option("--workers", cls=Setting, setting="judge.workers")
@click.option("--queue", type=click.IntRange(1), default=1024, show_default=True, help="Programs that may wait.")
@click.option("--per-client", type=click.IntRange(1), help="Waiting programs of one client; else half of --queue.")
@click.option("--queue-mb", type=click.IntRange(16), default=2048, show_default=True,
    help="Memory for requests and unread answers; one client may use half.")  # fmt: skip
@click.option("--connections", type=click.IntRange(8), default=1024, show_default=True,
    help="Most connections at a time; one address may use half.")  # fmt: skip
@click.option("--max-mb", type=click.IntRange(1), default=128, show_default=True, help="Largest request in MB.")
@click.option("--max-seconds", type=click.IntRange(1), default=600, show_default=True, help="Highest time limit.")
@click.option("--max-memory-mb", type=click.IntRange(16), default=16384, show_default=True, help="Most memory.")
@click.option("--max-output-mb", type=click.IntRange(1), default=256, show_default=True, help="Highest output_mb.")
@click.option("--max-tests", type=click.IntRange(1), default=10_000, show_default=True, help="Most tests of a problem.")
def command(
    overrides: tuple[str, ...],
    host: str,
    port: int,
    tokens: tuple[str, ...],
    config_file: str | None,
    workers: str | None,
    queue: int,
    per_client: int | None,
    queue_mb: int,
    connections: int,
    max_mb: int,
    max_seconds: int,
    max_memory_mb: int,
    max_output_mb: int,
    max_tests: int,
) -> int:
    """Serve the judge over HTTP, until Ctrl-C or SIGTERM. Accepted programs are judged before it ends.

    A training run elsewhere uses it with judge.on=http://HOST:8422. It also answers POST /run_code and /submit as
    SandboxFusion does. The routes are described at /openapi.json.
    """
    check_tokens(tokens, TOKEN)
    from ..config import ConfigError, load
    from ..judge import Judge, JudgeError
    from ..judge.examine import Settings
    from ..serve import Most, app, serve

    try:
        config = load(config_file, [*overrides, *([f"judge.workers={workers}"] if workers else [])]).judge
        options = config.options()
        if options.pop("on") != "here":
            raise Refused(f"judge.on is {config.on!r}; a service judges here: leave it away")
        if options.pop("remember"):
            raise Refused("judge.remember is for those who ask a service: leave it away")
        if not tokens and host not in LOOPBACK:
            tokens = (secrets.token_urlsafe(24),)
        listener, address = listen(host, port)
        # the queue is the desk's, where clients take turns: the judge's own must never hold up the event loop
        judge = Judge(**{**options, "queue": 1 << 30})
    except (ConfigError, JudgeError) as error:
        raise Refused(str(error)) from None
    options = {name: value for name, value in options.items() if name not in ("workers", "queue", "sandbox")}
    try:
        own = Settings(**options, layer=judge.sandbox)
        most = Most(max_seconds, max_memory_mb, max_output_mb, max_tests)
        rooms = (queue, per_client or max(1, queue // 2), queue_mb, connections, max_mb)
        server = app(judge, own, tokens, host, *rooms, most)
        echo(f"judge.on={address}  ({judge.workers} workers, {judge.sandbox} sandbox; Ctrl-C ends it)")
        for token in tokens:
            echo(f"{TOKEN}={token}")
        return serve(server, listener)
    finally:
        judge.close(cancel=True)
