"""Filter by relevance: keep programming problems whose answers a judge can check.

The patterns are strict: they match a request ("write an SQL query"), not a subject (parsing HTML is a valid problem).
Patterns for questions in words apply only if no program is requested.

A problem with more than one right answer ("print any of them") is kept with the tag `many_answers`: its tests accept
only one of them, so training can refuse it. The tag is removed if the problem has a checker, or an unordered comparison
and only the order is free.

Reasons: `irrelevant` (what it is, and the words that say so), `malformed` (the statement is no text).
"""

from __future__ import annotations

import re

from ..record import Dropped, Record
from .forms import statement

_MAKE = r"\b(?:write|create|build|develop|make|design|implement|give|provide)\b"
_NEAR = r"[^.\n]{0,60}?"
_START = r"(?:^|[.!?:]\s|\n)[ \t]{0,20}(?:\d{1,2}[.)][ \t]{0,5})?"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


class Asked:
    """A pattern of a request, with words (w|w|w) of which every match contains one: a search for words is faster."""

    def __init__(self, words: str, pattern: str) -> None:
        self.words, self.pattern = words.split("|"), _pattern(pattern)

    def found(self, text: str, lower: str) -> re.Match[str] | None:
        return self.pattern.search(text) if any(word in lower for word in self.words) else None


NEVER = {  # irrelevant in every statement
    "SQL": Asked(
        "sql|table:",
        rf"{_MAKE}{_NEAR}\b(?:my|postgre)?sql (?:query|queries|statement|solution)|\bsql schema\b"
        r"|(?:^|\n)[ \t]{0,20}table: \w{1,40}\s{1,20}\+-{3}",
    ),
    "a shell script": Asked(
        "script|command|one-liner|pipeline",
        rf"{_MAKE}{_NEAR}\b(?:bash|shell|powershell|awk|sed) (?:script|command|one-liner|pipeline)",
    ),
    "a web page": Asked(
        "html|css|page|website|react",
        rf"{_MAKE}{_NEAR}\b(?:html|css) (?:page|code|form|document|file|table|layout|stylesheet|template)"
        r"|\b(?:create|build|develop|code) (?:an? )?(?:\w+ )?(?:web ?page|website|landing page|react component)\b",
    ),
    "a graphical interface": Asked(
        "gui|graphical|tkinter|pyqt|pygame| app",
        rf"{_MAKE}{_NEAR}\b(?:gui|graphical user interface|tkinter|pyqt5?|pygame|(?:desktop|mobile|android|ios) app)\b",
    ),
    "use of the network": Asked(
        "download|scrape|crawl|fetch|request|web s|web c|rest api|server|client|flask|django",
        r"\b(?:download|scrape|crawl|fetch)(?:s|es)?\b[^.\n]{0,60}?\b(?:from|the) (?:an? |the |\w+ )?"
        r"(?:url|web ?site|web ?page|internet|api)\b"
        r"|\b(?:send|make|issue|perform) (?:an? )?(?:http|https|api|get|post) requests?\b"
        rf"|{_MAKE}{_NEAR}\b(?:web (?:server|scraper|crawler|service)|rest api|(?:tcp|udp|chat) (?:server|client)|"
        r"flask|django)\b",
    ),
    "an essay": Asked(
        "essay|poem|story|article|blog|cover letter|haiku|limerick",
        r"\bwrite (?:me )?(?:an? )(?:short |brief |long |\d+[- ]word )?(?:\w+ )?"
        r"(?:essay|poem|short story|article|blog post|cover letter|haiku|limerick)\b",
    ),
    "a question about a program": Asked(
        "what ",
        r"\bwhat (?:is|will be|would be|does) (?:the )?(?:output|printed|result)? ?(?:of |by )?(?:the |this )?"
        r"(?:following|above|below) (?:python |c |c\+\+ |java )?(?:code|program|snippet|function)\b[^.\n]{0,80}\?",
    ),
}
NOT_STDIN = {  # irrelevant unless the problem uses stdin: a contest's story may mention these
    "use of files": Asked(
        "file|director",
        r"\b(?:read|load|open|parse|write|save)s?\b[^.\n]{0,30}?\b(?:from|to|into|in|an?|the) (?:an? |the )?(?:\w+ )?"
        r"(?:csv|json|text|txt|xml|excel|pdf|image|log) file\b"
        r"|\b(?:delete|rename|copy|create|list) (?:an? |the |all )?(?:files?|director(?:y|ies)) (?:in|from|on|named)\b",
    ),
    "output by chance": Asked(
        "random|probability|chance|likelihood",
        r"\b(?:return|print|output)s? (?:an? |one )?(?:uniformly )?random\b"
        rf"|{_MAKE}{_NEAR}\bgenerates? (?:an? )?random\b"
        r"|\b(?:same|equal) (?:probability|chance|likelihood) of being (?:chosen|picked|returned|selected)\b",
    ),
    "output by the clock": Asked(
        "current",
        r"\b(?:return|print|output|get|display)s? (?:the )?current (?:system )?(?:date|time|timestamp)\b",
    ),
}
WORDS = {  # a question to answer in words, unless a program is requested too
    "a proof": _pattern(rf"{_START}(?:prove|disprove|show|give a proof) (?:that|or disprove|the|of)\b"),
    "an explanation": _pattern(
        rf"{_START}(?:explain|discuss|describe|compare|define|summari[sz]e|outline)"
        r" (?:and contrast|why|how|what|the|in|your|with|whether|briefly|an?)\b"
        rf"|{_START}(?:what is the difference between|what are the (?:main|advantages|differences)|why (?:is|are|do))\b"
    ),
}
PROGRAM = _pattern(
    r"\b(?:write|implement|complete|create|define|design) (?:an? |the |your )?(?:\w+ ){0,3}?"
    r"(?:function|program|method|class|code|algorithm|script|solution)\b"
    r"|\b(?:return|returns|print|output|input)\b|\bdef \w+\("
)
_OPTION = re.compile(r"(?:^|\n)[ \t]{0,20}\(?([A-Da-d])[).:][ \t]+\S")
_CHOICE = _pattern(
    r"\bwhich (?:one )?of the following\b|\b(?:choose|select|pick) the (?:correct|best|right|most)\b"
    r"|\bcorrect (?:answer|option|choice) is\b"
)
MANY_ANSWERS = "many_answers"  # the tag
_SAY = r"\b(?:print|output|return|report|find|give)(?:s|ing)?\b"
_SEVERAL = r"\b(?:multiple|several|many|more than one|not unique)\b"
_KINDS = r"(?:\w+ )?(?:answers?|solutions?|permutations?|arrays?|strings?|sequences?)\b"
_ANY = _pattern(
    r"\b(?:print|output|return|report)(?:s|ing)? any\b"
    r"(?! (?:order|case|register|way|other|further|more|extra|additional|spaces?|leading|trailing|number|letter)\b)"
    rf"|{_SAY} any (?:one )?(?:of (?:them|these|the)|valid|such|possible|correct|suitable)\b|\bany suitable\b"
    r"|\bfind any [^.\n]{1,80}?,? or (?:report|print|output|say|determine|return)\b"
    rf"|{_SEVERAL}[^.\n]{{0,120}}?{_SAY}[^.\n]{{0,30}}?\b(?:any|arbitrary)\b(?! (?:order|case|register|way)\b)"
    rf"|{_SEVERAL}[^.\n]{{0,120}}?{_SAY} (?:just |only )?one of (?:them|these)\b"
    rf"|{_SEVERAL} {_KINDS}[^.\n]{{0,60}}?\byou (?:can|may) (?:pick|choose) any\b"
    r"|\b(?:print|output|return)s?\b[^.\n]{0,30}?\bcontaining any\b"
    r"|\bany (?:(?:one )?of (?:them|these)|(?:valid|correct|possible) (?:answer|solution))\b"
    r"[^.\n]{0,40}?\b(?:accepted|allowed|correct|fine)\b"
    r"|\bany (?:answer|solution)\b(?![^.\n]{0,60}\b(?:error|within|precision|differ))[^.\n]{0,80}?\baccepted\b"
)
_DENIED = re.compile(r"(?:\bnot|n't|\bnever|\bwithout)\s$", re.I)  # "do not print any debug information"
_ORDER = _pattern(r"\b(?:print|output|return)(?:s|ed)?\b[^.\n]{0,60}?\bin (?:any|arbitrary) order\b")


def relevance(record: Record) -> Record:
    text, problem = statement(record), record.problem
    lower = text.lower()
    requests = NEVER if problem.kind == "stdin" else NEVER | NOT_STDIN
    for what, asked in requests.items():
        if found := asked.found(text, lower):
            raise Dropped("irrelevant", f"{what}: {_shown(found)}")
    options = [option.upper() for option in _OPTION.findall(text)]
    if options[:3] == ["A", "B", "C"] and (found := _CHOICE.search(text)):
        raise Dropped("irrelevant", f"multiple choice: {_shown(found)}")
    if not PROGRAM.search(text):
        for what, pattern in WORDS.items():
            if found := pattern.search(text):
                raise Dropped("irrelevant", f"{what}: {_shown(found)}")
    return _mark_many_answers(record, text, lower)


def _mark_many_answers(record: Record, text: str, lower: str) -> Record:
    """Set or remove the tag `many_answers`."""
    problem = record.problem
    checked, unordered = (bool(getattr(problem.compare, name, None)) for name in ("checker", "unordered"))
    free = any_answer(text, lower) or (not unordered and any_order(text, lower))
    others = [tag for tag in problem.tags if tag != MANY_ANSWERS]
    problem.tags = [*others, MANY_ANSWERS] if free and not checked else others
    return record


def any_answer(text: str, lower: str) -> str:
    """Return the words of a statement that allow any of several answers; "" if there are none."""
    places = _ANY.finditer(text) if "any" in lower or "one of" in lower else ()
    return next(
        (found[0] for found in places if not _DENIED.search(text[max(0, found.start() - 8) : found.start()])), ""
    )


def any_order(text: str, lower: str) -> str:
    """Return the words of a statement that leave the order of the answer free; "" if there are none."""
    found = _ORDER.search(text) if " order" in lower else None
    return found[0] if found else ""


def _shown(match: re.Match[str]) -> str:
    return repr(" ".join(match[0].split())[:80])
