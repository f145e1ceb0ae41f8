"""Faults of the statement for which nothing but dropping helps."""

from __future__ import annotations

import re

from benchmarks.faults.bank import INTERACTIVE, IRRELEVANT, NEEDS_IMAGE, NO_STATEMENT, SPAM
from benchmarks.faults.repair import anything, plain_spaces, typographic
from benchmarks.faults.run import Draw, Kind, solved
from benchmarks.faults.words import LANGUAGES, translated
from microcoder.data.process.samples import blocks
from microcoder.schema import Problem

LICENCES = ("MIT", "mit license", "Apache 2.0", "apache-2.0", "CC BY 4.0", "cc-by-4.0")
CLOSED = ("CC BY-NC 4.0", "CC-BY-NC-SA-4.0", "GPL-3.0", "proprietary", "All rights reserved", "CC BY-SA 4.0")
_WORD = re.compile(r"[A-Za-z]+")


def long(problem: Problem) -> bool:
    return len(problem.statement.split()) >= 40


def lost_characters(problem: Problem, draw: Draw) -> bool:
    """What was not ASCII is gone, as a decoder leaves it that does not know better."""
    sign = draw.choice(["\ufffd", "ï¿½", "锟斤拷"])
    problem.statement = re.sub(r"[^\x00-\x7f]", sign, problem.statement)
    return problem.statement.count(sign) > 5


def truncated(problem: Problem, draw: Draw) -> bool:
    """Cut off within a sentence of prose that is not the first, somewhere in the later two thirds."""
    text, at, places = problem.statement, 0, []
    first = re.search(r"[a-z][.!?]\s", text)
    for part in blocks(text):
        if part.kind == "prose":
            places += [at + match.end() for match in re.finditer(r"[a-z]{2,}[,;]?(?= [a-z]{2})", part.text)]
        at += len(part.text)
    places = [place for place in places if first and place > max(len(text) / 3, first.end())]
    if places:
        cut = draw.choice(places)
        problem.statement = text[: cut + draw.choice([0, 0, 2])]  # between words, or within one
    return bool(places)


def image(problem: Problem, draw: Draw) -> bool:
    beginning = re.split(r"(?<=[.!?])\s", problem.statement.strip())[0]
    problem.statement = draw.line(NEEDS_IMAGE).format(beginning, draw.randrange(10**6))
    if problem.kind == "stdin":
        problem.statement += "\n\nInput\nThe first line contains the data.\n\nOutput\nPrint the result."
    return True


def interactive(problem: Problem, draw: Draw) -> bool:
    text, said = problem.statement.rstrip(), draw.line(INTERACTIVE)
    problem.statement = f"{text}\n\n{said}" if "##" in said or draw.random() < 0.5 else f"{said} {text}"
    return True


def nothing(problem: Problem, draw: Draw) -> bool:
    line = draw.line(NO_STATEMENT)
    problem.statement = line.format(_name(problem).replace(" ", "-") if "http" in line else _name(problem))
    return True


def foreign(problem: Problem, draw: Draw) -> bool:
    problem.statement = translated(problem.statement, draw, draw.choice(sorted(LANGUAGES)))
    return True


def answer(problem: Problem, draw: Draw) -> bool:
    """The reference stands below the task."""
    code = problem.solutions[0]["code"].strip()
    form = draw.choice([
        "{0}\n\nSolution:\n\n```python\n{1}\n```",
        "{0}\n\n## Solution\n\n{1}",
        "{0}\n\nHere is one way to do it:\n\n{1}\n\nIt runs in time.",
        "```python\n{1}\n```\n\n{0}",
        "{0}\n\n### Editorial\n\nWe can do as follows.\n\n```\n{1}\n```\n\nThis is fast enough.",
    ])  # fmt: skip
    problem.statement = form.replace("{0}", problem.statement.strip()).replace("{1}", code)
    return True


def spam(problem: Problem, draw: Draw) -> bool:
    first = problem.statement.strip().split("\n")[0]
    said = draw.choice(["", "\n"]).join([draw.choice([draw.line(SPAM), f"{first} "])] * draw.randint(40, 80))
    lines = problem.statement.split("\n")
    lines.insert(draw.randrange(len(lines)), said)
    problem.statement = "\n".join(lines)
    return True


def gibberish(problem: Problem, draw: Draw) -> bool:
    """Every word in a cipher, or as random letters."""
    letters = list("abcdefghijklmnopqrstuvwxyz")
    cipher = str.maketrans("".join(letters), "".join(draw.sample(letters, 26)))
    if draw.random() < 0.5:
        problem.statement = problem.statement.lower().translate(cipher)
    else:
        problem.statement = _WORD.sub(lambda m: "".join(draw.choices(letters, k=len(m.group()))), problem.statement)
    return True


def irrelevant(problem: Problem, draw: Draw) -> bool:
    problem.statement = draw.line(IRRELEVANT).format(_name(problem))
    return True


def recent(problem: Problem, draw: Draw) -> bool:
    problem.date = f"{draw.randint(2023, 2026)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
    return True


def outdated(problem: Problem, draw: Draw) -> bool:
    problem.date = draw.choice([f"{draw.randint(2005, 2022)}-{draw.randint(1, 12):02}-17", "2022/12/31", "2019"])
    return True


def allowed(problem: Problem, draw: Draw) -> bool:
    problem.licence = draw.choice(LICENCES)
    return True


def closed(problem: Problem, draw: Draw) -> bool:
    problem.licence = draw.choice(CLOSED)
    return True


def _name(problem: Problem) -> str:
    return (problem.title or problem.entry_point or "the list of primes").replace("_", " ").lower()


_UNREADABLE = ("low_quality", "needs_translation", "missing_io")
_NOTHING = ("missing_statement", "low_quality", "missing_io")
_FILTER = {"upto": "filter"}
KINDS = [
    Kind("lost characters", lost_characters, ("broken_text",), control=typographic, among=anything),
    Kind("truncated", truncated, ("truncated_statement", "missing_io"), control=plain_spaces, among=long),
    Kind("image needed", image, ("needs_image",), among=anything),
    Kind("interactive", interactive, ("interactive",), among=anything),
    Kind("no statement", nothing, _NOTHING, among=anything, **_FILTER),
    Kind("not translated", foreign, ("needs_translation",), among=anything),
    Kind("answer given away", answer, ("gives_answer",), among=solved),
    Kind("spam", spam, ("low_quality",), among=anything, **_FILTER),
    Kind("gibberish", gibberish, _UNREADABLE, among=anything, **_FILTER),
    Kind("no programming problem", irrelevant, ("irrelevant",), among=solved, **_FILTER),
    Kind("out of date", outdated, ("outside_dates",), control=recent, among=anything, **_FILTER,
         settings={"filter": {"after": "2023-01-01"}}),
    Kind("licence", closed, ("licence",), control=allowed, among=anything, **_FILTER,
         settings={"filter": {"licences": ["MIT", "Apache-2.0", "CC-BY-4.0"]}}),
]  # fmt: skip
