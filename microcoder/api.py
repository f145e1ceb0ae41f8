"""What commands and notebooks call: `import microcoder as mc`, then `mc.load_problems(...)`, `mc.train(...)` and so on.

Each function takes plain values and paths, prints nothing, and imports what it needs when it is called, so that
`import microcoder` loads neither torch nor anything else that is not in the core.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .files import BadLine, FileError, read_problems
from .schema import Problem

if TYPE_CHECKING:
    from .data.dataset import Dataset
    from .data.pipeline import StepProgress
    from .evaluation.folder import Scores
    from .runs import Run
    from .training.calibration import TemperatureCalibration
    from .training.recorder import TrainingObserver


def load_problems(path: str | os.PathLike[str]) -> list[Problem]:
    """Read all problems of a .jsonl, .json (each also .gz) or .parquet file. Raise FileError if a record is broken."""
    found: list[Problem] = []
    for one in read_problems(os.fspath(path)):
        if isinstance(one, BadLine):
            raise FileError(f"{one}; `microcoder judge` passes over such records, and names each")
        found.append(one)
    return found


def build_dataset(
    config: str | os.PathLike[str],
    *changes: str,
    only: str = "verify",
    limit: int = 0,
    ray: str = "",
    progress: StepProgress | None = None,
    **settings: Any,
) -> Dataset:
    """Make a training set as a data file says: collect, process, filter, verify. Called again, it goes on where it was.

        dataset = mc.build_dataset("data.toml", **{"verify.mutants": 0})
        dataset.problems     # what is kept: a list of Problem
        dataset.dropped      # what is not: (problem, reason, detail, step) of each
        dataset.report       # a row for each step: seen, kept, dropped by reason, seconds
        dataset.paths        # problems.parquet, trl.parquet, verl.parquet, a card, and the report as a page

    config      a TOML file; `microcoder data config` prints all settings with their meaning
    changes     settings as on the command line, such as "verify.mutants=0"
    settings    the same as names and values
    only        go no further than this stage
    limit       at most so many problems of each source, to try things in a folder apart
    ray         the address of a Ray cluster to work on; "auto": the one this machine belongs to
    progress    is told of each step (`microcoder.data.pipeline.StepProgress`)

    Raise DataError or ConfigError where the settings cannot work; the message says what to change.
    """
    from .config import toml_value
    from .data.dataset import build

    named = [f"{name}={toml_value(value)}" for name, value in settings.items()]
    return build(config, [*changes, *named], only=only, limit=limit, ray=ray, progress=progress)


def evaluate(
    model: str | os.PathLike[str] = "",
    suite: str = "starter",
    *changes: str,
    samples: int | None = None,
    temperature: float | None = None,
    limit: int | Sequence[int] = (),
    seed: int = 0,
    judge: Mapping[str, Any] | None = None,
    completions: str | os.PathLike[str] = "",
    output: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    **options: Any,
) -> Scores:
    """Score a model, or a file of completions, on a suite, as `microcoder eval` does. Called again, it goes on.

        scores = mc.evaluate("runs/demo", suite="starter", samples=4)
        scores.accuracy         # the mean over problems
        scores.interval         # its 95% interval over problems
        scores.by_difficulty    # {label or band: accuracy, low, high, problems}
        scores.samples          # a row for each completion, with its verdict
        print(scores)           # all tables

    model         nano, a hub id, a folder, or a run such as runs/demo
    suite         livecodebench, humaneval, mbpp, starter, or a file of problems
    changes       settings of judge and rollout as on the command line, such as "rollout.batch=64"
    samples       completions for each problem; what is not given is the suite's own, mostly 4
    limit         tokens in a response; several limits cost as much as the largest
    judge         settings of the judge as names and values, such as {"workers": 4, "time_limit_s": 2}
    completions   score this file instead of a model
    output        the folder; else runs/demo/bench/SUITE for a run, bench/MODEL/SUITE for others
    fresh         start the folder over instead of going on with it
    options       as in the command: data, release, start, end, platforms, difficulties, first, unchecked; server,
                  key_env, concurrency; missing; and `note`, a function that is told what is going on

    Raise EvaluationError, ConfigError or JudgeError where it cannot be done as asked; the message says what to change.
    """
    from .config import toml_value
    from .evaluation.harness import evaluate

    model, completions = os.fspath(model), os.fspath(completions)
    settings = [*(f"judge.{name}={toml_value(value)}" for name, value in (judge or {}).items()), *changes]
    limits = sorted({limit} if isinstance(limit, int) else set(limit))
    options |= {"samples": samples, "temperature": temperature, "limits": limits, "seed": seed, "settings": settings}
    return evaluate(model, suite, completions=completions, output=output, fresh=fresh, **options)


def train(
    config: str | os.PathLike[str] = "demo",
    *,
    resume: bool = False,
    observer: TrainingObserver | None = None,
    **settings: Any,
) -> Run:
    """Train a model: `train("demo", **{"train.steps": 4})`. Return the run, with its metrics, rollouts and summary.

    config     a TOML file, a configuration of the package (demo, paper, ...), or a run directory
    resume     go on with the run from its last checkpoint
    observer   told of steps, phases, notes and warnings; none: nothing is shown
    settings   section.key=value, as on the command line
    """
    from .config import configuration
    from .training.launch import launch

    found, folder = configuration(_words(config, settings))
    return launch(found, folder, resume=resume, observer=observer)


def calibrate(
    config: str | os.PathLike[str] = "demo",
    *,
    grid: Sequence[float] = (),
    problems: int = 32,
    pilot_steps: int = 12,
    observer: TrainingObserver | None = None,
    **settings: Any,
) -> TemperatureCalibration:
    """Choose the sampling temperature by diversity, T(D): `calibrate("demo").temperature`.

    grid          temperatures to sample at; none: 0.2 to 1.8 in steps of 0.2
    problems      how many training problems are sampled
    pilot_steps   steps of each pilot run; 0: none, and grpo.diversity_target must be given
    """
    from .config import configuration
    from .training.calibration import GRID
    from .training.calibration import calibrate as measure
    from .training.ranks import Silent

    found, _ = configuration(_words(config, settings))
    return measure(found, observer or Silent(), grid or GRID, problems, pilot_steps)


def _words(config: str | os.PathLike[str], settings: dict[str, Any]) -> list[str]:
    """What one would type: the configuration, then section.key=value, the values as TOML."""
    from .config import toml_value

    values = {name: toml_value(value) if "." in name else value for name, value in settings.items()}
    return [os.fspath(config), *(f"{name}={value}" for name, value in values.items())]
