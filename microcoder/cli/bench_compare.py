"""`microcoder bench compare`: two benches, problem by problem."""

from __future__ import annotations

import json

import click

from . import Refused
from .shown import echo


@click.command("compare")
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option("--limit", type=click.IntRange(min=0), help="Under this limit; else the largest that both have.")
@click.option("--policy", type=click.Choice(("exact", "robust")), default="robust", show_default=True)
@click.option("--format", "form", type=click.Choice(("text", "markdown", "json")), default="text", show_default=True)
def compare(before: str, after: str, limit: int | None, policy: str, form: str) -> int:
    """Whether the difference of two benches is more than chance would give, problem by problem."""
    from ..evaluation.compare import compare as compare_tries
    from ..evaluation.compare import comparison_markdown, comparison_text
    from ..evaluation.reading import read_bench
    from ..evaluation.records import BenchError

    try:
        pair = [read_bench(path) for path in (before, after)]
        shared = sorted(set(pair[0].ask["limits"]) & set(pair[1].ask["limits"]))
        if limit is None and not shared:
            raise BenchError(f"they have no limit in common: {pair[0].ask['limits']} and {pair[1].ask['limits']}")
        at = shared[-1] if limit is None else limit
        for bench in pair:
            if at not in bench.ask["limits"]:
                raise BenchError(f"{bench.path} has limits {bench.ask['limits']}, not {at}")
        found = compare_tries(*(bench.tries(at, policy) for bench in pair))
    except BenchError as error:
        raise Refused(str(error)) from None
    for name in ("digest", "temperature", "tries"):
        if (values := [bench.ask[name] for bench in pair])[0] != values[1]:
            what = f"{name}: {values[0]} and {values[1]}"
            echo(f"note: {'their problems are not all the same' if name == 'digest' else what}", err=True)
    names = (before, after)
    if form == "json":
        echo(json.dumps({"names": names, "limit": at, "policy": policy, **found}, indent=1))
    else:
        echo((comparison_text if form == "text" else comparison_markdown)(found, names))
    return 0
