"""T(D): sample problems over a grid of temperatures, without training, and choose (`grpo/temperature.py` has the rule).

1. The same problems are sampled at every temperature, as training samples them; each temperature draws for itself.
2. There are so many problems that sampling is at most a tenth of the run's responses, but at least 16 (`plan.py`).
3. D is that of responses up to the end of their last fenced block: text after the program does not change the reward,
   and its variety says nothing about the programs'.
4. Of several processes each samples a part of the problems; all choose from what all have found.
5. What was measured is kept in the cache, under a digest of everything it depends on.

A run chooses once, before its first step. Its stages keep to the settings: whether measuring again during a run helps
is not known, and `microcoder calibrate my.toml model.name=runs/a` measures a trained policy at any time.
"""

from __future__ import annotations

import bisect
import gc
import hashlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..collect import Responding, Response, load_sampler
from ..config import Config
from ..grpo import Choice, TemperatureProbe, choose_temperature, group_diversity
from ..judge.remote import open_judge
from ..models import ModelSource, cache, resolve
from ..models.weights import load_tokenizer
from ..sampling import Sampling
from .plan import GRID, probe_words, probed
from .problems import load_problems, with_prompts
from .ranks import devices, gathered, rank, share, shared, together
from .recorder import TrainingObserver
from .step import drawn, weights_of

FENCE = "```"
Row = tuple[int, int, int, float]  # a problem's place, its right and its judged responses, their D


@dataclass(frozen=True)
class TemperatureCalibration:
    probes: tuple[TemperatureProbe, ...]  # by temperature
    choice: Choice

    @property
    def temperature(self) -> float:
        """The temperature to train with."""
        return self.choice.temperature

    def record(self) -> dict[str, Any]:
        """What run.json and --json keep."""
        probes = [
            {**asdict(probe), "accuracy": probe.accuracy, "signal": signal}
            for probe, signal in zip(self.probes, self.choice.signals, strict=True)
        ]
        return {"temperature": self.temperature, "reason": self.choice.reason, "probes": probes}


def calibrate(
    config: Config, observer: TrainingObserver, grid: Sequence[float] = GRID, count: int = 0
) -> TemperatureCalibration:
    """Sample at every temperature, and choose. `count`: problems; 0: as many as the run can afford."""
    together()
    grid, count = sorted(grid), count or probed(config, grid)
    source = resolve(config.model.name, progress=observer.note)
    notes = Notes(config, source, count)
    known = shared(notes.read() if rank() == 0 else None)
    missing = [temperature for temperature in grid if f"{temperature:g}" not in known]
    if missing:
        observer.note(f"T(D): {probe_words(config, missing, count)}")
        known |= _probe(config, source, missing, count, observer)
        if rank() == 0:
            notes.write(known)
    probes = tuple(TemperatureProbe(temperature, *known[f"{temperature:g}"]) for temperature in grid)
    return TemperatureCalibration(probes, choose_temperature(probes))


def _probe(
    config: Config, source: ModelSource, grid: Sequence[float], count: int, observer: TrainingObserver
) -> dict[str, list[Any]]:
    """{temperature: [D, right responses by problem, judged responses by problem]}, the same in all processes."""
    problems = load_problems(config.data, "train", config.judge.sandbox)
    loaded, prompts = with_prompts(problems, load_tokenizer(source, config.model.chat), config)
    seed, samples, rollout = config.train.seed, config.grpo.samples, config.rollout
    drawn_problems = random.Random(seed).sample(range(len(prompts)), min(count, len(prompts)))
    mine = list(range(rank(), len(drawn_problems), devices()))
    engine = "auto" if rollout.engine in ("vllm", "sglang") else rollout.engine
    model = load_sampler(source, engine, rollout.batch, rollout.memory, note=observer.note, **weights_of(config))
    options = {**config.judge.options(), "queue": 2 * count * samples}
    if config.judge.workers == "auto" and config.judge.on == "here":
        options["workers"] = share(options["workers"])
    found = {}
    with open_judge(options) as judge:
        for temperature in grid:
            observer.phase(f"sampling at temperature {temperature:g}")
            own = drawn(seed, rank(), round(1000 * temperature))
            limit = config.train.max_response_tokens
            sampling = Sampling(temperature, limit, samples, rollout.top_p, rollout.top_k, own)
            sample = partial(model.sampler, sampling=sampling)
            numbers = [drawn_problems[place] for place in mine]
            responses, _ = Responding(numbers, loaded.problems, prompts, sample, model.text, judge).all()
            groups = [responses[at : at + samples] for at in range(0, len(responses), samples)]
            rows = [_row(place, group, model.text) for place, group in zip(mine, groups, strict=True)]
            _, right, judged, diverse = zip(*sorted(gathered(rows)), strict=True)
            probe = TemperatureProbe(temperature, sum(diverse) / len(diverse), right, judged)
            found[f"{temperature:g}"] = [probe.diversity, probe.right, probe.judged]
            observer.note(f"temperature {temperature:g}: D {probe.diversity:.3f}, accuracy {probe.accuracy:.3f}")
    del model, sample
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # its memory is the training's, which may be another allocator's (vLLM)
    return found


def _row(place: int, group: Sequence[Response], decode: Callable[[list[int]], str]) -> Row:
    judged = [row.accepted for row in group if not row.faulty]
    return place, sum(judged), len(judged), group_diversity([until_program(row.ids, decode) for row in group])


def until_program(ids: list[int], decode: Callable[[list[int]], str]) -> list[int]:
    """The tokens of a response up to the end of its last fenced block; all of them where none is complete."""
    text = decode(ids)
    if not text.count(FENCE) or text.count(FENCE) % 2:
        return ids
    end = text.rindex(FENCE) + len(FENCE)
    return ids[: bisect.bisect_left(range(len(ids)), end, key=lambda count: len(decode(ids[:count])))]


class Notes:
    """What was measured before, for these very settings."""

    def __init__(self, config: Config, source: ModelSource, count: int) -> None:
        relevant: list[Any] = [
            config.model.model_dump(),
            config.data.model_dump(),
            config.judge.model_dump(exclude={"workers", "queue", "on"}),
            [config.rollout.top_p, config.rollout.top_k, config.grpo.samples],
            [config.train.max_response_tokens, config.train.seed, count, devices()],
        ]
        folders = [Path(folder) for folder in (source.path, source.adapter, config.data.tried) if folder]
        files = sorted(file for folder in folders if folder.is_dir() for file in folder.iterdir())
        stamps = [_stamp(path) for path in (Path(config.data.train), *files) if path.is_file()]
        text = json.dumps([relevant, stamps], sort_keys=True)
        self.path = cache() / "calibrations" / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"

    def read(self) -> dict[str, list[Any]]:
        try:
            found: dict[str, list[Any]] = json.loads(self.path.read_text(encoding="utf-8"))["sampled"]
            return found
        except (OSError, ValueError, KeyError):  # none yet, or a torn one: measure again
            return {}

    def write(self, known: dict[str, list[Any]]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"sampled": known}, indent=2), encoding="utf-8")
        part.replace(self.path)


def _stamp(path: Path) -> tuple[str, int, int]:
    """What changes when a file does: a run that was trained further is another model under the same name."""
    return str(path), path.stat().st_size, path.stat().st_mtime_ns
