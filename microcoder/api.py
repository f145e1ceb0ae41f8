"""What commands and notebooks call: `import microcoder as mc`, then `mc.load_problems(...)`, `mc.train(...)` and so on.

Each function takes plain values and paths, prints nothing, and imports what it needs when it is called, so that
`import microcoder` loads neither torch nor anything else that is not in the core.
"""

from __future__ import annotations

import os

from .files import read_problems
from .schema import Problem


def load_problems(path: str | os.PathLike[str]) -> list[Problem]:
    """Read all problems of a .jsonl, .json or .parquet file. Raise FileError where one of them is broken."""
    return list(read_problems(path))
