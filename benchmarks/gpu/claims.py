"""A folder of `arms` as a scale of `microcoder study report`: which of its runs are arms of the paper's studies.

    DIR/plan.json            study/arm/seed -> run, as `microcoder study run` writes it
    DIR/studies/NAME.toml    the studies' files

A run is an arm of a study if it has that arm's settings: those that all runs here share, then those that the arm
changes. Names do not count. Arms that nothing here is are left out of the plan, so that their claims are "not run".
The scale has the name of DIR, which should be `qwen` (a link will do): that is the scale whose values the studies know.
"""

from __future__ import annotations

import json
from operator import attrgetter
from pathlib import Path

from microcoder.config import Config, ConfigError, load, settings, toml_value
from microcoder.config.presets import PRESETS
from microcoder.runs.disk import write_whole
from microcoder.study.launch import identify
from microcoder.study.plan import ORDER, TAKEN, Study, find_scale, find_study, load_study

SCALE = "qwen"
REWARDS = Path(__file__).parent / "rewards.toml"
PLAIN = "grpo_plus"  # the preset of a study's arm that names none
SEED = "train.seed"


def write_plan(out: Path) -> list[str]:
    """Write plan.json and the studies; return lines on what is there for which study."""
    configs = {}
    for path in sorted(out.glob("runs/*/config.toml")):
        try:
            configs[path.parent.name] = load(path)
        except ConfigError as error:
            return [f"no claims: {error}"]
    if not configs:
        return ["no claims: there are no runs"]
    plan: dict[str, str] = {}
    said, shared = [], _shared(configs)
    (out / "studies").mkdir(exist_ok=True)
    for name in (*ORDER, REWARDS.stem):
        text = (REWARDS if name == REWARDS.stem else find_study(name)).read_text(encoding="utf-8")
        file = out / "studies" / f"{name}.toml"
        write_whole(file, text.replace("{data}", str(Path(_plain(configs).data.train).parent)).encode())
        study = load_study(file, find_scale(SCALE), shared)
        found = _runs(study, configs)
        if not _useful(study, set(found)):
            file.unlink()
            continue
        plan |= {f"{name}/{arm}/{seed}": run for arm, seeds in found.items() for seed, run in seeds.items()}
        said.append(f"{name}: {', '.join(f'{arm} ({len(seeds)})' for arm, seeds in found.items())}")
    write_whole(out / "plan.json", json.dumps(plan, indent=1, sort_keys=True).encode() + b"\n")
    return said


def _plain(configs: dict[str, Config]) -> Config:
    """A run that no algorithm but GRPO+ has changed, else any: its other settings are those that all share."""
    alike = [each for each in configs.values() if each.grpo.preset == PLAIN and each.grpo.temperature != "auto"]
    forged = [each for each in alike if "forged" in Path(each.data.train).name]
    return [*forged, *alike, *configs.values()][0]


def _shared(configs: dict[str, Config]) -> list[str]:
    """The settings of all arms as words, but for those that a preset stands for."""
    config, by_preset = _plain(configs), {f"grpo.{key}" for key in PRESETS[PLAIN]}
    keys = [key for key, _ in settings() if key not in by_preset and key not in TAKEN]
    words = [f"{key}={toml_value(attrgetter(key)(config))}" for key in keys if key != "grpo.preset"]
    return [f"grpo.preset={PLAIN}", *words]


def _runs(study: Study, configs: dict[str, Config]) -> dict[str, dict[int, str]]:
    """{arm: {seed: run}} of the runs that have an arm's settings."""
    found: dict[str, dict[int, str]] = {}
    there = {name: {**identify(config), SEED: ""} for name, config in configs.items()}
    for arm in study.arms:
        wanted = {**identify(load(None, list(arm.settings))), SEED: ""}
        for name, identity in there.items():
            if identity == wanted and not arm.after:
                found.setdefault(arm.name, {})[configs[name].train.seed] = name
    return found


def _useful(study: Study, arms: set[str]) -> bool:
    """Whether two arms of a study can be compared, or one of its claims can be decided by fewer."""
    return len(arms) > 1 or any(
        arms.issuperset(arm for test in claim.tests for arm in test.arms) for claim in study.claims
    )
