"""MicroCoder: reinforcement learning that makes coding models better."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"
__all__ = [
    "Compare",
    "Judge",
    "Problem",
    "Solution",
    "Test",
    "Verdict",
    "build_dataset",
    "calibrate",
    "evaluate",
    "forge",
    "load_problems",
    "train",
]

if TYPE_CHECKING:
    from .api import build_dataset, calibrate, evaluate, forge, load_problems, train
    from .judge import Judge
    from .schema import Compare, Problem, Solution, Test, Verdict

_SCHEMA = {"Compare", "Problem", "Solution", "Test", "Verdict"}


def __getattr__(name: str) -> Any:
    """Load what is asked for when it is asked for, so that `import microcoder` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'microcoder' has no attribute {name!r}")
    module = "schema" if name in _SCHEMA else "judge" if name == "Judge" else "api"
    return getattr(import_module(f".{module}", __name__), name)


def __dir__() -> list[str]:
    """Name what can be asked for, so that notebooks complete it."""
    return [*__all__, "__version__"]
