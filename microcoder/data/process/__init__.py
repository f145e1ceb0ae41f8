"""Process: a problem cleaned, its format settled, found complete; or dropped with the reason.

    record = process(record, most=15, endpoint=None)       # or raises Dropped

The steps run until they change nothing more: what was escaped twice, or came back from translation, is cleaned too, and
to process a processed record changes nothing. Each option belongs to the step that has a keyword of that name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..record import Dropped, Record
from . import (
    answer,
    completeness,
    encoding,
    exponents,
    facts,
    format,
    images,
    interactive,
    language,
    latex,
    markup,
    noise,
    shape,
    tests,
    translate,
    whitespace,
)

__all__ = ["OPTIONS", "STEPS", "process"]

STEPS: list[Callable[..., Record]] = [
    shape.check,
    encoding.repair,
    markup.convert,
    facts.lift,
    noise.remove,
    latex.normalise,
    images.remove,
    whitespace.normalise,
    exponents.restore,
    interactive.refuse,
    answer.refuse,
    format.settle,
    tests.choose,
    completeness.parts,
    language.identify,
    translate.translate,
    completeness.statement,
]
OPTIONS = {step: [name for name in inspect.signature(step).parameters if name != "record"] for step in STEPS}
ROUNDS = 8


def process(record: Record, **options: Any) -> Record:
    """The record through all steps. A step that changes something says so in the lineage, by which it is known here."""
    known = {name for names in OPTIONS.values() for name in names}
    if unknown := options.keys() - known:
        raise TypeError(f"no step has the option {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    shape.check(record)
    before = list(record.problem.lineage)
    for _ in range(ROUNDS):
        length = len(record.problem.lineage)
        for step, names in OPTIONS.items():
            step(record, **{name: options[name] for name in names if name in options})
        if len(record.problem.lineage) == length:
            said = dict.fromkeys(record.problem.lineage[len(before) :])
            record.problem.lineage = before + [what for what in said if what not in before]
            return record
    raise Dropped("broken_text", f"still changing after {ROUNDS} rounds: {record.problem.lineage[-1]}")
