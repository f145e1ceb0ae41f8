"""What commands and notebooks call: `import microcoder as mc`, then `mc.load_problems(...)`, `mc.train(...)` and so on.

Each function takes plain values and paths, prints nothing, and imports what it needs when it is called, so that
`import microcoder` loads neither torch nor anything else that is not in the core.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .files import read_problems
from .schema import Problem

if TYPE_CHECKING:
    from .data.dataset import Dataset
    from .data.pipeline import Progress


def load_problems(path: str | os.PathLike[str]) -> list[Problem]:
    """Read all problems of a .jsonl, .json or .parquet file. Raise FileError where one of them is broken."""
    return list(read_problems(path))


def build_dataset(
    config: str | os.PathLike[str],
    *changes: str,
    only: str = "verify",
    limit: int = 0,
    ray: str = "",
    progress: Progress | None = None,
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
    progress    is told of each step (`microcoder.data.pipeline.Progress`)

    Raise DataError or ConfigError where the settings cannot work; the message says what to change.
    """
    from .config import toml_value
    from .data.dataset import build

    named = [f"{name}={toml_value(value)}" for name, value in settings.items()]
    return build(config, [*changes, *named], only=only, limit=limit, ray=ray, progress=progress)
