"""`microcoder ls`: what comes with the package and can be named."""

from __future__ import annotations

import json

import click

from .completion import SUITES
from .shown import echo


@click.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def command(as_json: bool) -> None:
    """List the configurations, algorithms, models, problems and suites that have a name."""
    from ..config import ABOUT, about, shipped
    from ..models import known

    found = {
        "configurations": {name: about(path) for name, path in shipped().items()},
        "algorithms": ABOUT,
        "models": {
            model.name: f"{model.parameters / 1e6:.1f} M parameters; {model.description}; {model.where}"
            for model in known()
        },
        "problems": {"starter": "small problems of one to six steps, made from a seed; data.difficulty chooses depths"},
        "suites": SUITES,
    }
    if as_json:
        echo(json.dumps(found, indent=2))
        return
    uses = {
        "configurations": "microcoder train NAME",
        "algorithms": "grpo.preset=NAME",
        "models": "model.name=NAME",
        "problems": "data.train=NAME",
        "suites": "microcoder eval MODEL --suite NAME",
    }
    width = max(len(name) for part in found.values() for name in part)
    for kind, part in found.items():
        echo(f"{kind}, as in {uses[kind]}")
        for name, text in part.items():
            echo(f"  {name:<{width}}  {text}")
    echo("\nto change a configuration: microcoder cp demo my.toml")
