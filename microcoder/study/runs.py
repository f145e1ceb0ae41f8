"""Arms with seeds -> runs. Arms with the same settings share a run, whichever studies they are in.

A run is named after the first of its arms: `truncation.none.0`. One that lies there already is known by its settings
and not by its name: what another study has made is not made again, and what was made with other settings never counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from ..config import Config, load, settings, toml_value
from .formats import PLACE
from .plan import Study
from .strict import StudyError

Identity = Mapping[str, str]  # setting -> its value as text
Place = tuple[str, str, int]  # study, arm, seed
FREE = {  # settings that change nothing in what a run finds out
    "train.folder",
    "train.name",
    "train.trackers",
    "train.save_every",
    "train.keep_checkpoints",
    "train.micro_batch_size",  # of the same gradient
    "rollout.memory",
    "grpo.preset",  # a name for other settings, which are all compared
    "judge.on",
    "judge.workers",
    "judge.queue",
}
PATHS = ("model.name", "data.train")  # settings that may lead into the folder of the scale


@dataclass
class Planned:
    """One run; it may serve several arms."""

    name: str
    settings: tuple[str, ...]  # with gaps, see `filled`
    after: str = ""  # the name of the run whose last weights it begins with
    measurements: set[str] = field(default_factory=set)


def plan(
    studies: Sequence[Study], seeds: Sequence[int], there: Mapping[str, Identity] | None = None
) -> tuple[list[Planned], dict[Place, str]]:
    """(the runs, in rounds of one seed; the name of the run of each arm and seed). `there`: the runs that exist."""
    there = there or {}
    named = {_key(identity): name for name, identity in sorted(there.items(), reverse=True)}
    if len({study.name for study in studies}) < len(studies):
        raise StudyError("two of the studies have the same name; rename a file, or leave one out")
    runs: dict[str, Planned] = {}
    where: dict[Place, str] = {}
    for seed in seeds:
        for study in studies:
            for arm in study.arms:
                own = f"{study.name}.{arm.name}.{seed}"
                after = where[study.name, arm.after, seed] if arm.after else ""
                chosen = [*arm.settings, *([f"model.name={{runs}}/{after}"] if after else []), f"train.seed={seed}"]
                identity = identify(load(None, filled(chosen, "{out}", own)))
                name = named.setdefault(_key(identity), own)
                if there.get(own) == identity:
                    name = own
                elif name == own and own in there:
                    raise StudyError(_other(own, there[own], identity))
                run = runs.setdefault(name, Planned(name, tuple(chosen), after))
                run.measurements |= set(study.measurements)
                where[study.name, arm.name, seed] = name
    return list(runs.values()), where


def filled(settings: Sequence[str], out: str | Path, name: str) -> list[str]:
    """The settings of a run as `microcoder train` takes them; `out` is the folder of the scale."""
    paths = {PLACE: f"{out}/varied.jsonl", "{runs}": f"{out}/runs"}
    for gap, path in paths.items():
        settings = [setting.replace(gap, path) for setting in settings]
    return [*settings, f"train.folder={out}/runs", f"train.name={name}"]


def identify(config: Config) -> Identity:
    """What makes a run what it is, wherever its folder lies."""
    found = {key: toml_value(attrgetter(key)(config)) for key, _ in settings() if key not in FREE}
    home = f'"{Path(config.train.folder).parent}/'
    return found | {key: found[key].replace(home, '"{out}/') for key in PATHS}


def shared(where: Mapping[Place, str]) -> list[str]:
    """Which arms have their runs in common, in words."""
    served: dict[str, list[str]] = {}
    for (study, arm, _), name in where.items():
        served.setdefault(name, []).append(f"{study}/{arm}")
    alike = dict.fromkeys(", ".join(arms) for arms in served.values() if len(arms) > 1)
    return [f"{arms}: the same settings, so that one run serves them all" for arms in alike]


def _key(identity: Identity) -> str:
    return "\n".join(identity.values())


def _other(name: str, was: Identity, now: Identity) -> str:
    changed = [f"{key} was {was[key]}, now {now[key]}" for key in now if was[key] != now[key]]
    return (
        f"the run {name} is there, made with other settings: {'; '.join(changed)}; "
        "name another folder with --out, or remove that run"
    )
