"""Boilerplate taken out of the statement: contest headers, buttons, navigation, credits, footers. Whole lines only."""

from __future__ import annotations

import re

from ..record import Record
from .facts import bare
from .samples import on_prose

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
_TEMPLATE = re.compile(  # what an editor's buttons put into a text, as in MBPP
    r"(?:\[link text\]\(https?:// ?)+\){0,9}|(?:(?:^|[ \t])(?:\*|\d\.|>) (?:list item|indented block)\b)+", re.M
)
_LINK = re.compile(r"\[([^\]\n]{0,80})\]\([^)\n]{0,300}\)")
_BETWEEN = re.compile(r" ?[|»·•/] ?")


def remove(record: Record) -> Record:
    """Lines of the statement that say nothing of the problem."""
    problem = record.problem
    statement = on_prose(_without_footer(problem.statement), _without_noise)
    if statement != problem.statement:
        problem.statement = statement
        record.did("process: boilerplate removed")
    return record


def _without_footer(text: str) -> str:
    """Without a last paragraph of mere noise, which may stand below a sample: several lines, or several words."""
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
    """Home | Problems | Submit: three words at least, most of them such as lead elsewhere."""
    words = [word.lower() for word in _BETWEEN.split(line)]
    path = line.count(" » ") > 1  # Contests » Round 3 » Problem B
    return path or (len(words) > 2 and sum(word in _NAVIGATION for word in words) > len(words) / 2)
