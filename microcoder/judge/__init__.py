"""MicroCoder-Evaluator: a sandboxed, parallel judge.

with Judge() as judge:
    verdict = judge.check(problem, completion)
"""

from typing import TYPE_CHECKING, Any

__all__ = ["Judge", "JudgeError"]

if TYPE_CHECKING:
    from .pool import Judge, JudgeError


def __getattr__(name: str) -> Any:
    """Import names on first use: a zygote imports this package too, and does not need the pool."""
    if name in __all__:
        from . import pool

        return getattr(pool, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
