"""Problem -> prompt: the one place that does it, for training, evaluation and data alike.

The prompt says what the judge will do with the answer: which function it calls, or that it feeds standard input; and
that the code is taken from a fenced block.
"""

from __future__ import annotations

from .schema import Problem

ANSWER = "Put the answer in one ```python block."


def prompt(problem: Problem) -> str:
    """The user's message."""
    return f"{problem.statement.strip()}\n\n{_contract(problem)} {ANSWER}"


def messages(problem: Problem) -> list[dict[str, str]]:
    """The same as a conversation, for a chat template."""
    return [{"role": "user", "content": prompt(problem)}]


def _contract(problem: Problem) -> str:
    if problem.starter_code.strip():
        return f"Complete this Python code:\n```python\n{problem.starter_code.strip()}\n```\n"
    if problem.kind == "stdin":
        return "Write a Python program that reads standard input and prints to standard output."
    name = problem.entry_point.rpartition(".")
    if name[0]:
        return f"Write the Python class `{name[0]}` with the method `{name[2]}`."
    if name[2]:
        return f"Write the Python function `{name[2]}`."
    # asserts without a name for what they call: one of them has to be shown, or nobody could know it
    return f"Write Python code that makes this hold:\n```python\n{problem.asserts[0].strip()}\n```\n"
