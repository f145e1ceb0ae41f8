"""The library's functions: `import microcoder as mc`, then `mc.load_problems(...)`, `mc.train(...)` and so on.

Each function takes plain values and paths, and prints nothing. It imports what it needs when it is called, so that
`import microcoder` loads neither torch nor any other package outside the core.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import files
from .schema import Problem, nearest

EVALUATION_OPTIONS = (
    "data", "release", "start", "end", "platforms", "difficulties", "first", "unchecked", "server", "key_env",
    "concurrency", "missing", "style", "note", "watch",
)  # fmt: skip

if TYPE_CHECKING:
    from .data.dataset import Dataset
    from .data.forge.whole import ForgeSummary
    from .data.pipeline import StepProgress
    from .evaluation.folder import Scores
    from .runs import Run
    from .training.calibration import TemperatureCalibration
    from .training.recorder import TrainingObserver


def load_problems(path: str | os.PathLike[str]) -> list[Problem]:
    """Read all problems of a file.

    Args:
        path: A .jsonl, .json (each also .gz) or .parquet file, such as `microcoder data run` writes.

    Returns:
        The problems, in the order of the file.

    Raises:
        FileError: A record is broken, or the file cannot be read; the message says where and why.
    """
    return files.load_problems(path)


def build_dataset(
    config: str | os.PathLike[str],
    *changes: str,
    only: str = "verify",
    limit: int = 0,
    ray: str = "",
    progress: StepProgress | None = None,
    **settings: Any,
) -> Dataset:
    """Build a training set from a data file: collect, process, filter, verify. A second call resumes a stopped one.

    ```python
    dataset = mc.build_dataset("data.toml", **{"verify.mutants": 0})
    dataset.problems     # the problems that were kept: a list of Problem
    dataset.dropped      # the others: (problem, reason, detail, step) of each
    dataset.report       # a row for each step: seen, kept, dropped by reason, seconds
    dataset.paths        # problems.parquet, trl.parquet, verl.parquet, a card, and the report as a page
    ```

    Args:
        config: A TOML file; `microcoder data config` prints all settings with their meaning.
        *changes: Settings as on the command line, such as `"verify.mutants=0"`.
        only: The last stage to run: `collect`, `process`, `filter` or `verify`.
        limit: At most so many problems of each source, to try things in a folder apart; 0 for all.
        ray: The address of a Ray cluster to work on; `"auto"` for the one this machine belongs to.
        progress: Is called with each step (`microcoder.data.pipeline.StepProgress`).
        **settings: Settings as names and values, such as `**{"verify.mutants": 0}`.

    Returns:
        The training set, with the dropped problems and the reasons.

    Raises:
        DataError: The data cannot be read or written as asked; the message says what to change.
        ConfigError: A setting cannot work; the message says what to change.
    """
    from .data.dataset import build

    return build(config, [*changes, *_words(settings)], only=only, limit=limit, ray=ray, progress=progress)


def forge(
    problems: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *changes: str,
    adversaries: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    config: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    progress: Callable[[bool], None] | None = None,
    **settings: Any,
) -> ForgeSummary:
    """Add tests that wrong programs fail to the problems of a file. Called again after a stop, it goes on.

        summary = mc.forge("problems.parquet", "stronger.parquet", adversaries="runs/demo/rollouts")
        summary.before, summary.after     # tests, mutants and how many of them live, adversaries likewise
        summary.reasons                   # why problems stay as they are

    problems      a file of problems with at least one Python solution each
    output        the file to write; `Problem.extra["forge"]` says where each new test comes from
    changes       settings as on the command line, such as "forge.tests=20"
    adversaries   files or folders with programs for the problems, many of them wrong
    config        a TOML file with [forge] and [judge]
    fresh         begin anew instead of going on
    progress      called after each problem: whether it was done before
    settings      the same as changes, as names and values

    Raise DataError, ConfigError, FileError or JudgeError where it cannot be done; the message says what to change.
    """
    from .config import load_as, toml_value
    from .data.forge.whole import forge_file
    from .data.settings import Pipeline

    paths = [adversaries] if isinstance(adversaries, (str, os.PathLike)) else list(adversaries)
    named = _words(settings)
    if paths:
        named.append(f"forge.adversaries={toml_value([os.fspath(path) for path in paths])}")
    found = load_as(Pipeline, None if config is None else os.fspath(config), [*changes, *named])
    return forge_file(os.fspath(problems), os.fspath(output), found, fresh=fresh, progress=progress or _ignored)


def _ignored(before: bool) -> None:
    """Nobody follows the progress."""


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
    """Score a model, or a file of completions, on a suite, as `microcoder eval` does. A second call resumes.

    ```python
    scores = mc.evaluate("runs/demo", suite="starter", samples=4)
    scores.accuracy         # the mean over problems
    scores.interval         # its 95% interval over problems
    scores.by_difficulty    # {label or band: accuracy, low, high, problems}
    scores.samples          # a row for each completion, with its verdict
    print(scores)           # all tables
    ```

    Args:
        model: nano, a hub id, a folder, a run such as `runs/demo`, or a GGUF file.
        suite: livecodebench, humaneval, mbpp, humanevalplus, mbppplus, starter, or a file of problems.
        *changes: Settings of judge and rollout, and model.chat, as on the command line, such as `"rollout.batch=64"`.
        samples: Completions for each problem; if not given, the suite's own number, mostly 4.
        temperature: Sampling temperature; if not given, the suite's own, mostly 0.2.
        limit: Tokens in a response; several limits cost as much as the largest.
        seed: Seed of sampling.
        judge: Settings of the judge as names and values, such as `{"workers": 4, "time_limit_s": 2}`.
        completions: Score this file instead of a model.
        output: The folder; if not given, `runs/demo/bench/SUITE` for a run, `bench/MODEL/SUITE` for others.
        fresh: Delete what the folder holds and start over, instead of resuming.
        **options: As in the command: data, release, start, end, platforms, difficulties, first, unchecked; server,
            key_env, concurrency; missing; style ("code" or "reason"; if not given, that of the suite or of the run);
            `note`, a function that is called with each message; and settings as names and values, such as
            `**{"rollout.batch": 64}`.

    Returns:
        The scores. They are also in the folder, with every sample and verdict.

    Raises:
        EvaluationError: The evaluation cannot be done as asked; the message says what to change.
        ConfigError: A setting cannot work; the message says what to change.
        JudgeError: No judge can be started as asked.
    """
    from .evaluation.harness import evaluate

    if unknown := [name for name in options if "." not in name and name not in EVALUATION_OPTIONS]:
        known = ", ".join(EVALUATION_OPTIONS)
        hint = nearest(unknown[0], [*EVALUATION_OPTIONS, "samples", "temperature", "limit", "output", "completions"])
        raise TypeError(f"evaluate() has no option {unknown[0]!r}{hint}; further options are {known}")
    named = {f"judge.{name}": value for name, value in (judge or {}).items()}
    named |= {name: options.pop(name) for name in list(options) if "." in name}
    limits = sorted({limit} if isinstance(limit, int) else set(limit))
    options |= {"samples": samples, "temperature": temperature, "limits": limits, "seed": seed}
    options |= {"settings": [*_words(named), *changes], "completions": os.fspath(completions)}
    return evaluate(os.fspath(model), suite, output=output, fresh=fresh, **options)


def train(
    config: str | os.PathLike[str] = "demo",
    *changes: str,
    resume: bool = False,
    observer: TrainingObserver | None = None,
    **settings: Any,
) -> Run:
    """Train a model, as `microcoder train` does.

    ```python
    run = mc.train("demo", **{"train.steps": 4})
    run.metrics        # a row for each step
    run.rollouts(4)    # the completions of step 4, each with verdict, reward and advantage
    run.summary        # accuracy before and after, overall and by difficulty
    run.checkpoint     # the folder of the trained model
    ```

    Args:
        config: A TOML file, a configuration of the package (demo, paper, ...), or a run directory.
        *changes: Settings as on the command line, such as `"train.steps=4"`.
        resume: Resume the run from its last checkpoint.
        observer: Receives steps, phases, notes and warnings; if not given, nothing is shown.
        **settings: Settings as names and values, such as `**{"train.steps": 4}`.

    Returns:
        The run, finished and closed.

    Raises:
        ConfigError: A setting cannot work; the message says what to change.
        ValueError: The run cannot be done as asked, for example because its folder holds a run already (RunError);
            the message says what to change.
    """
    from .config import configuration
    from .training.launch import launch

    found, folder = configuration([os.fspath(config), *changes, *_words(settings)])
    return launch(found, folder, resume=resume, observer=observer)


def calibrate(
    config: str | os.PathLike[str] = "demo",
    *changes: str,
    grid: Sequence[float] = (),
    problems: int = 0,
    observer: TrainingObserver | None = None,
    **settings: Any,
) -> TemperatureCalibration:
    """Choose the sampling temperature, T(D), as `microcoder calibrate` does: by samples, without training.

    ```python
    found = mc.calibrate("demo")
    found.temperature      # the temperature to train with
    found.choice.reason    # why
    found.probes           # diversity, and right responses by problem, at each temperature
    ```

    Args:
        config: A TOML file, a configuration of the package (demo, paper, ...), or a run directory.
        *changes: Settings as on the command line, such as `"grpo.samples=4"`.
        grid: Temperatures to sample at; if not given, 0.2 to 1.8 in steps of 0.2.
        problems: How many training problems are sampled at each temperature; 0: as many as a tenth of the run's
            responses pay for, from 16 to 64.
        observer: Receives phases and notes; if not given, nothing is shown.
        **settings: Settings as names and values, such as `**{"grpo.samples": 4}`.

    Returns:
        The temperature, with the reason and all measurements.

    Raises:
        ConfigError: A setting cannot work; the message says what to change.
        ValueError: The temperature cannot be chosen as asked; the message says what to change.
    """
    from .config import configuration
    from .training.calibration import calibrate as measure
    from .training.plan import GRID
    from .training.ranks import Silent

    found, _ = configuration([os.fspath(config), *changes, *_words(settings)])
    return measure(found, observer or Silent(), grid or GRID, problems)


def _words(settings: Mapping[str, Any]) -> list[str]:
    """Write settings as on the command line: section.key=value, with values as TOML, NumPy's numbers included."""
    from .config import toml_value

    return [f"{name}={toml_value(value)}" for name, value in settings.items()]
