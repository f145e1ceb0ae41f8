"""Interactive problems are dropped: they talk to a judge that answers, and tests of inputs and outputs cannot.

Said outright ("this is an interactive problem", a section "Interaction", an interactor, the tag), by asking for a
flush of the output, or by a protocol of "? x" for questions and "! x" for the answer.

Drops: interactive.
"""

from __future__ import annotations

import re

from ..record import Dropped, Record

_HINT = re.compile(r"[Ii]nterac|INTERAC|flush|judg|grader|jury|[?] ")  # what every pattern below has: a quick look
_SAID = re.compile(
    r"\binteractive (?:problem|task|version)s?\b|\b(?:problem|task) is interactive\b|\binteractors?\b"
    r"|^[\s#*_]{0,8}interaction(?: protocol)?[\s*_:]{0,8}$"
    r"|\binteract(?:s|ing)? with (?:the |our |a )?(?:judge|grader|jury|checker|testing system|judging program)"
    r"|\b(?:query|ask|queries to|questions to) the (?:judge|grader|jury|judging program)\b"
    r"|\bflush(?:ing)? (?:the |your )?(?:standard )?(?:output|stdout|stream)\b|\bfflush ?\(|\bstdout\.flush\b"
    r"|\bflush (?:after (?:each|every|printing)|\(?stdout)|\bforget to flush\b|\bcout\.flush\b",
    re.I | re.M,
)
_DENIED = re.compile(r"(?:\bnot\b|n't\b|no longer|unlike|\bnon-?|no need|without|avoid|instead of)[^.\n]{0,25}$", re.I)
_QUESTION = re.compile(r"""["'“`$(]\s?\?\s[\w$\\]""")
_ANSWER = re.compile(r"""["'“`$(]\s?!\s[\w$\\]""")
_ASKS = re.compile(r"\b(?:ask|asked|make|perform|print)\b[^.\n]{0,80}\b(?:quer(?:y|ies)|questions?)\b", re.I)


def refuse(record: Record) -> Record:
    problem = record.problem
    if any(tag.lower() in ("interactive", "*interactive") for tag in problem.tags):
        raise Dropped("interactive", "it is tagged so")
    if not _HINT.search(problem.statement):
        return record
    for match in _SAID.finditer(problem.statement):
        before = problem.statement[max(0, match.start() - 40) : match.start()]
        if not _DENIED.search(before) or "forget" in match.group().lower():
            raise Dropped("interactive", f"it says {' '.join(match.group().split())!r}")
    if all(pattern.search(problem.statement) for pattern in (_QUESTION, _ANSWER, _ASKS)):
        raise Dropped("interactive", 'questions begin with "?" and the answer with "!"')
    return record
