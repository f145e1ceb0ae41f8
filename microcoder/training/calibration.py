"""T(D): sample probe problems over a grid of temperatures, run short pilots, choose.

1. D* comes from a pilot at one temperature, since D settles on about the same value whatever the temperature (the
   paper's insight 11): at `REFERENCE`, or the nearest one at which the model earns rewards to learn from.
   `grpo.diversity_target` replaces it.
2. A pilot is a real training of a few steps in a folder of its own that is thrown away.
3. Candidates get a pilot in turn, from the lowest temperature with D above D* upwards, until one stays steady.
4. What was measured is kept in the cache, under a digest of everything it depends on.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..collect import Responding, load_sampler
from ..config import Config, to_toml
from ..grpo import Choice, TemperatureProbe, choose_temperature, diversity, plateau, steady, viable
from ..judge.remote import open_judge
from ..models import ModelSource, cache, resolve
from ..models.weights import load_tokenizer
from ..runs import Run, read_metrics
from ..sampling import Sampling
from .launch import train
from .problems import load_problems, with_prompts
from .ranks import Silent, devices, first, gathered, open_run, rank, shared
from .recorder import TrainingObserver
from .step import weights_of

GRID = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8)
REFERENCE = 1.0
PROBLEMS, PILOT_STEPS, PILOTS = 32, 12, 4


@dataclass(frozen=True)
class TemperatureCalibration:
    probes: tuple[TemperatureProbe, ...]
    target: float  # D*
    origin: str  # of D*
    choice: Choice

    @property
    def temperature(self) -> float:
        """The temperature to train with."""
        return self.choice.temperature


def choose(config: Config, run: Run, observer: TrainingObserver) -> float:
    """The temperature for a run whose setting is auto; the run remembers why, and D*."""
    found = calibrate(config, observer)
    observer.note(found.choice.reason)
    run.update(diversity_target=found.target, calibration=as_record(found))
    return found.choice.temperature


def calibrate(
    config: Config,
    observer: TrainingObserver,
    grid: Sequence[float] = GRID,
    count: int = PROBLEMS,
    pilot_steps: int = PILOT_STEPS,
) -> TemperatureCalibration:
    """Probes at every temperature, D*, and the choice. Without pilot steps D* must be given."""
    if not pilot_steps and not config.grpo.diversity_target:
        raise ValueError("without pilot steps D* is unknown; set grpo.diversity_target=..., such as 0.2")
    source = resolve(config.model.name, progress=observer.note)
    notes = Notes(config, source, count)
    known = shared(notes.read())
    missing = [temperature for temperature in grid if f"{temperature:g}" not in known["probes"]]
    if missing:
        mine = missing[rank() :: devices()]  # each of several processes has some of the temperatures
        for found in gathered(_probe(config, source, mine, count, observer) if mine else {}):
            known["probes"] |= found
        notes.write(known)
    probes = [TemperatureProbe(t, *known["probes"][f"{t:g}"]) for t in sorted(grid)]

    def pilot(temperature: float) -> tuple[float, ...]:
        key = f"{temperature:g} {pilot_steps}"
        if key not in known["pilots"]:
            observer.note(f"pilot: {pilot_steps} steps at temperature {temperature:g}")
            known["pilots"][key] = _pilot(config, temperature, pilot_steps)
            notes.write(known)
        return tuple(known["pilots"][key])

    target, origin = config.grpo.diversity_target, "grpo.diversity_target"
    if not target:
        reference = _reference(probes)
        target, origin = plateau(pilot(reference)), f"a pilot of {pilot_steps} steps at temperature {reference:g}"
    observer.note(f"D* = {target:.3f}, from {origin}")
    if pilot_steps:
        probes = _with_pilots(probes, target, pilot)
    return TemperatureCalibration(tuple(probes), target, origin, choose_temperature(probes, target))


def _with_pilots(probes: list[TemperatureProbe], target: float, pilot: Any) -> list[TemperatureProbe]:
    """Pilots for the candidates, upwards, until one is steady; those above it stay without."""
    done = list(probes)
    able = viable(probes)
    candidates = [n for n, probe in enumerate(probes) if probe.diversity > target and probe in able]
    for n in candidates[:PILOTS]:
        done[n] = replace(probes[n], pilot=pilot(probes[n].temperature))
        if steady(done[n].pilot, target):
            break
    return done


def _reference(probes: Sequence[TemperatureProbe]) -> float:
    """Return the temperature at which D* is measured: REFERENCE, or the nearest viable one."""
    return min((probe.temperature for probe in viable(probes)), key=lambda t: (abs(t - REFERENCE), t))


def _probe(
    config: Config, source: ModelSource, grid: Sequence[float], count: int, observer: TrainingObserver
) -> dict[str, tuple[float, float]]:
    """{temperature: (D, accuracy)} of the untrained model on the first training problems."""
    problems = load_problems(config.data, "train")
    loaded, prompts = with_prompts(problems, load_tokenizer(source, config.model.chat), config)
    samples, limit, rollout = config.grpo.samples, config.train.max_response_tokens, config.rollout
    engine = "auto" if rollout.engine == "vllm" else rollout.engine
    model = load_sampler(source, engine, rollout.batch, rollout.memory, note=observer.note, **weights_of(config))
    found = {}
    numbers = list(range(min(count, len(loaded.problems))))
    with open_judge({**config.judge.options(), "queue": 2 * count * samples}) as judge:
        for temperature in grid:
            observer.phase(f"sampling at temperature {temperature:g}")
            sampling = Sampling(temperature, limit, samples, rollout.top_p, rollout.top_k, config.train.seed)
            responses, _ = Responding(
                numbers,
                loaded.problems,
                prompts,
                partial(model.sampler, sampling=sampling),
                model.text,
                judge,
            ).all()
            judged = [row.accepted for row in responses if not row.faulty]
            value = diversity([row.ids for row in responses], samples)
            found[f"{temperature:g}"] = (value, sum(judged) / max(len(judged), 1))
            observer.note(f"temperature {temperature:g}: D {value:.3f}, accuracy {found[f'{temperature:g}'][1]:.3f}")
    return found


def _pilot(config: Config, temperature: float, steps: int) -> list[float]:
    """D over a few steps of training."""
    short = config.model_copy(
        update={
            "grpo": config.grpo.model_copy(update={"temperature": temperature}),
            "data": config.data.model_copy(update={"test": "none"}),
            "train": config.train.model_copy(
                update={"steps": steps, "stages": [], "save_every": steps, "trackers": [], "keep_checkpoints": 1}
            ),
        }
    )
    with tempfile.TemporaryDirectory(prefix="microcoder-pilot-") as folder:
        path = Path(shared(folder)) / "pilot"
        with open_run(lambda: Run.create(path, to_toml(short), {}), path) as run:
            train(short, run, Silent())
        found = [line["diversity"] for line in read_metrics(path) if line.get("diversity") is not None]
        return shared(found)  # which the folder outlives


class Notes:
    """What was measured before, for these very settings."""

    def __init__(self, config: Config, source: ModelSource, count: int) -> None:
        relevant = config.model_dump()
        for name in (
            "name",
            "folder",
            "steps",
            "stages",
            "eval_every",
            "eval_tries",
            "eval_temperature",
            "eval_top_p",
            "eval_top_k",
            "trackers",
        ):
            del relevant["train"][name]
        for name in ("temperature", "diversity_target"):
            del relevant["grpo"][name]
        for name in ("workers", "queue", "on"):
            del relevant["judge"][name]
        folders = [Path(folder) for folder in (source.path, source.adapter) if folder]
        weights = sorted(file for folder in folders for file in folder.glob("*.safetensors"))
        stamps = [_stamp(path) for path in (Path(config.data.train), *weights) if path.is_file()]
        text = json.dumps([relevant, count, stamps], sort_keys=True)
        self.path = cache() / "calibrations" / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"

    def read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            return {"probes": found["probes"], "pilots": found["pilots"]}
        except (OSError, ValueError, KeyError):  # none yet, or a torn one: measure again
            return {"probes": {}, "pilots": {}}

    def write(self, known: dict[str, Any]) -> None:
        if not first():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(known, indent=2), encoding="utf-8")
        part.replace(self.path)


def _stamp(path: Path) -> tuple[str, int, int]:
    """What changes when a file does: a run that was trained further is another model under the same name."""
    return str(path), path.stat().st_size, path.stat().st_mtime_ns


def as_record(found: TemperatureCalibration) -> dict[str, Any]:
    return {
        "temperature": found.choice.temperature,
        "rule": found.choice.rule,
        "reason": found.choice.reason,
        "diversity_target": found.target,
        "target_from": found.origin,
        "probes": [asdict(probe) for probe in found.probes],
    }
