"""Remove lines of a statement that are not part of the task.

Facts (limits, tags, code to complete) move into the problem's fields, unless a field is filled already. Noise (contest
headers, buttons, navigation, credits, footers) is removed, whole lines only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import pairwise

from ..record import Record
from .samples import Part, blocks, on_prose

_LIMIT = re.compile(r"(?:cpu )?(time|memory) ?limit(?: per test(?: ?case)?)? ?[:*_]{0,4} ?(.{0,40})")
_BETWEEN = re.compile(r" ?[/|,;][ *_]{0,4}(?=(?:time|memory) ?limit)")  # "Time limit: 2 sec / Memory limit: 256 MB"
_AMOUNT = re.compile(r"(\d{1,12}(?:\.\d{1,9})?) ?([a-z]{1,12})\.?", re.I)
_NANOS = re.compile(r"\{'seconds': (\d{1,9}), 'nanos': (\d{1,9})\}")
_SECONDS = {"ms": 1e-3, "msec": 1e-3, "millisecond": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0}
_MEGABYTES = {
    "b": 2**-20, "byte": 2**-20, "kb": 2**-10, "kib": 2**-10, "kilobyte": 2**-10,
    "mb": 1, "mib": 1, "megabyte": 1, "gb": 2**10, "gib": 2**10, "gigabyte": 2**10,
}  # fmt: skip
_COMPLETE = re.compile(r"(?:please )?complete the following (?:python )?code(?: precisely)?", re.I)
_FENCED = re.compile(r"\s*(?:`{3,}|~{3,})[^\n]*\n(.*?)\n?[ ]*(?:`{3,}|~{3,})\s*", re.S)


def lift_facts(record: Record) -> Record:
    """Move limits, tags and starter code from the statement into their fields."""
    problem = record.problem
    parts = _without_starter(record, blocks(problem.statement))
    statement = "".join(_without_limits(record, part.text) if part.kind == "prose" else part.text for part in parts)
    if statement != problem.statement:
        problem.statement = statement
        record.did("process: limits, tags or starter code taken out of the text")
    return record


def bare(line: str) -> str:
    """Return a line without the marks of headings, emphasis and lists."""
    return line.strip(" \t#*_>|-•:")


def _without_starter(record: Record, parts: Sequence[Part]) -> Sequence[Part]:
    """Move the code after "Please complete the following python code" into the starter code; return the other parts."""
    problem = record.problem
    for n, (asked, code) in enumerate(pairwise(parts)):
        *before, last = asked.text.rstrip().rsplit("\n", 1)
        fenced = _FENCED.fullmatch(code.text)
        if code.kind == "code" and fenced and _COMPLETE.fullmatch(bare(last)):
            if problem.starter_code.split() not in ([], fenced[1].split()):
                break
            problem.starter_code = problem.starter_code or fenced[1]
            return [*parts[:n], Part(asked.kind, "".join(line + "\n" for line in before)), *parts[n + 2 :]]
    return parts


def _without_limits(record: Record, text: str) -> str:
    lines = text.split("\n")
    kept: list[str] = []
    n = 0
    while n < len(lines):
        line = bare(lines[n]).lower()
        limit = _LIMIT.fullmatch(line[:100])
        several = [_LIMIT.fullmatch(bare(part)) for part in _BETWEEN.split(line[:200])] if "limit" in line else [None]
        if all(each and _set_limit(record, each[1], each[2]) for each in several):
            n += 1
            continue
        if line == "tags" or (limit and not limit[2]):  # the values are on the next line
            following = next((m for m in range(n + 1, len(lines)) if lines[m].strip()), n)
            value = lines[following]
            if _set_limit(record, limit[1], bare(value)) if limit else _set_tags(record, value):
                n = following + 1
                continue
        kept.append(lines[n])
        n += 1
    return "\n".join(kept)


def _set_limit(record: Record, what: str, amount: str) -> bool:
    """Set a limit if it is empty; return False if the amount cannot be read."""
    problem, value = record.problem, _amount(amount, _SECONDS if what == "time" else _MEGABYTES)
    if not value:
        return False
    if what == "time" and problem.time_limit_s is None:
        problem.time_limit_s = value
    elif what == "memory" and problem.memory_mb is None:
        problem.memory_mb = max(1, round(value))
    return True


def _amount(text: str, units: dict[str, float]) -> float:
    if nanos := _NANOS.fullmatch(text):
        return int(nanos[1]) + int(nanos[2]) / 1e9
    match = _AMOUNT.fullmatch(text)
    if not match:
        return 0.0
    unit = match[2].lower()
    return round(float(match[1]) * units.get(unit, units.get(unit.removesuffix("s"), 0.0)), 6)


def _set_tags(record: Record, line: str) -> bool:
    """Set the tags from a Python list if they are empty; return False if the line is no list."""
    try:
        tags = ast.literal_eval(line.strip()) if len(line) < 2_000 else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return False
    record.problem.tags = record.problem.tags or tags
    return True


# --- noise

_NOISE = re.compile(
    r"problem ?(?:code|id) ?[:#] ?\S{1,30}"
    r"|submit(?: (?:a |your )?(?:solution|code|answer))?|(?:(?:my|all|view|recent) ){0,2}submissions"
    r"|all submissions for this .{1,60}|tutorial|editorial|discuss(?:ion)?|add to (?:list|favou?rites)|bookmark"
    r"|(?:problem )?(?:author|setter|tester|editorialist|translator|problem-?setter|prepared by)s? ?: ?\S.{0,80}"
    r"|source ?: ?.{0,60}(?:contest|cup|olympiad|round|icpc|acm|codeforces|atcoder|https?:).{0,60}"
    r"|read (?:the )?problems? statements? in .{1,80}|print(?:able)? version|report an? (?:issue|bug)"
    r"|(?:max(?:imum)? )?(?:score|points?) ?: ?\d+(?: ?(?:points?|pts))?|(?:success|pass) rate ?:? ?[\d.]+ ?%"
    r"|(?:sign up for|subscribe to|join) (?:our|us)\b.{0,80}"
    r"|(?:(?:this|our) (?:web ?)?site uses|we use) cookies\b.{0,80}"
    r"|seen this (?:question|problem) in .{0,20}\binterview\b.{0,20}"
    r"|tweet|share(?: (?:this|on|via) .{1,40})?|like|follow us.{0,40}|facebook|twitter|reddit|copy link"
    r"|(?:log ?in|sign ?(?:in|up)|register)(?: (?:to|or) .{1,40})?"
    r"|(?:copyright|©|\(c\)) ?(?:©|\(c\))? ?(?:19|20)\d\d.{0,80}|all rights reserved\.?|powered by .{1,60}"
    r"|privacy policy|terms of (?:use|service)|(?:previous|next) problem|back to (?:problems?|the list|top).{0,20}"
    r"|(?:educational )?codeforces (?:beta |global |educational )?round #?\d+.{0,40}"
    r"|(?:atcoder|leetcode) (?:\w+ )?contest \d+.{0,40}"
    r"|companies|related topics|similar questions|acceptance(?: rate)? ?:? ?[\d.]+ ?%|accepted ?:? ?[\d.,]+ ?[km]?"
    r"|difficulty ?: ?(?:easy|medium|hard)|(?:input|output)(?: file)? ?:? ?(?:standard (?:input|output)|stdin|stdout)",
    re.I,
)
_PAIRS = {"input": ("standard input", "stdin"), "output": ("standard output", "stdout")}  # Codeforces, over two lines
_NAVIGATION = frozenset(
    "home problems problemset contest contests submit status standings ranklist ranking login register help faq about"
    " forum discuss blog profile groups rating gym calendar logout submissions dashboard settings explore statement"
    " tutorial editorial contact cookies imprint sitemap".split()
) | {"privacy policy", "terms of service", "terms of use", "contact us", "about us", "cookie policy"}  # fmt: skip
_TEMPLATE = re.compile(  # template texts of an editor's buttons, as in MBPP
    r"(?:\[link text\]\(https?:// ?)+\){0,9}|(?:(?:^|[ \t])(?:\*|\d\.|>) (?:list item|indented block)\b)+", re.M
)
_LINK = re.compile(r"\[([^\]\n]{0,80})\]\([^)\n]{0,300}\)")
_SEPARATOR = re.compile(r" ?[|»·•/] ?")


def remove_noise(record: Record) -> Record:
    """Remove lines of the statement that are not about the problem."""
    problem = record.problem
    statement = on_prose(_without_footer(problem.statement), _without_noise)
    if statement != problem.statement:
        problem.statement = statement
        record.did("process: boilerplate removed")
    return record


def _without_footer(text: str) -> str:
    """Remove a last paragraph of three words or more that is only noise; it may stand below a sample."""
    while True:
        before, _, last = text.rstrip().rpartition("\n\n")
        lines = last.split("\n")
        if not before or len(last) > 1_000 or not all(map(_is_noise, lines)) or len(last.split()) < 3:
            return text
        text = before


def _without_noise(text: str) -> str:
    kept: list[str] = []
    for line in _TEMPLATE.sub("", text).split("\n"):
        if kept and bare(line).lower() in _PAIRS.get(bare(kept[-1]).lower(), ()):
            kept.pop()
        elif not _is_noise(line):
            kept.append(line)
    return "\n".join(kept)


def _is_noise(line: str) -> bool:
    if len(line) > 400:
        return False
    words = _LINK.sub(r"\1", bare(line))
    return len(words) < 150 and (bool(_NOISE.fullmatch(words)) or _is_navigation(words))


def _is_navigation(line: str) -> bool:
    """Whether a line is navigation (Home | Problems | Submit): three words at least, most of them links."""
    words = [word.lower() for word in _SEPARATOR.split(line)]
    path = line.count(" » ") > 1  # Contests » Round 3 » Problem B
    return path or (len(words) > 2 and sum(word in _NAVIGATION for word in words) > len(words) / 2)
