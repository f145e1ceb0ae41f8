"""MicroCoder: reinforcement learning that makes coding models better."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Compare", "Judge", "Problem", "Solution", "Test", "Verdict"]

if TYPE_CHECKING:
    from .judge import Judge
    from .schema import Compare, Problem, Solution, Test, Verdict


def __getattr__(name: str) -> Any:
    """Load what is asked for when it is asked for, so that `import microcoder` costs nothing."""
    if name == "Judge":
        from .judge import Judge

        return Judge
    if name in __all__:
        from . import schema

        return getattr(schema, name)
    raise AttributeError(f"module 'microcoder' has no attribute {name!r}")
