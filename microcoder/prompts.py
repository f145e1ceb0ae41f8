"""Problem -> prompt: the one place that does it, for training, evaluation and data alike.

The prompt says what the judge will do with the answer: which function it calls, or that it feeds standard input; and
that the code is taken from a fenced block.
"""

from __future__ import annotations

from .schema import Problem

ANSWER = "Put the answer in one ```python block."


def prompt(problem: Problem) -> str:
    """The user's message."""
    contract, code = _contract(problem)
    asked = f"{contract}\n```python\n{code}\n```\n{ANSWER}" if code else f"{contract} {ANSWER}"
    return f"{problem.statement.strip()}\n\n{asked}"


def messages(problem: Problem) -> list[dict[str, str]]:
    """The same as a conversation, for a chat template."""
    return [{"role": "user", "content": prompt(problem)}]


def _contract(problem: Problem) -> tuple[str, str]:
    """(what to write, the code to show with it or nothing)."""
    starter = problem.starter_code.strip()
    owner, _, name = problem.entry_point.rpartition(".")
    if problem.kind == "stdin":
        contract = "Write a Python program that reads standard input and prints to standard output."
    elif owner:
        contract = f"Write the Python class `{owner}` with the method `{name}`."
    elif name:
        contract = f"Write the Python function `{name}`."
    elif starter:
        contract = "Write Python code."
    else:  # asserts without a name for what they call: one of them has to be shown, or nobody could know it
        return "Write Python code that makes this hold:", problem.asserts[0].strip()
    return (f"{contract} Complete this:", starter) if starter else (contract, "")
