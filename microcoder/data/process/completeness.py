"""Drop incomplete problems: without tests, expected outputs, a method's starter code, or a whole statement.

Drops: missing_tests, missing_outputs, missing_starter_code (`parts`, before the costly steps); missing_statement,
missing_io, truncated_statement (`statement`, on the final text); wrong_format (both, if the schema refuses the
problem).
"""

from __future__ import annotations

import re

from ..record import Dropped, Record, references
from .boilerplate import bare
from .samples import blocks, inline, prose

_SECTION = re.compile(r"(?:the )?(input|output)s?(?: (?:format|description|specification|data|file))?", re.I)
_OTHER = re.compile(
    r"(?:sample|example|note|explanation|constraint|hint|limit|scoring|subtask|task|problem|statement|description)s?\b.{0,30}",
    re.I,
)
_INPUT = re.compile(
    r"\binputs?\b|\bstdin\b|\blines? (?:\S{1,20} ){0,3}(?:contains?|consists?|has|have|describes?|gives?|will)\b"
    r"|\b(?:first|second|next|only|single|each|following|last) (?:\S{1,20} )?lines?\b|\breads?\b", re.I,
)  # fmt: skip
_OUTPUT = re.compile(r"\boutputs?\b|\bstdout\b|\bprint(?:s|ed|ing)?\b|\bdisplay(?:s|ed)?\b", re.I)
_ELSEWHERE = re.compile(
    r"\b(?:see|refer to|available|visit|download|statement)\b[^.\n]{0,40}(?:\bpdf|\blink|\bpage|https?://)", re.I
)
_URL = re.compile(r"(?:https?://|www\.)[^\s)\]>]{1,400}")
_SENTENCE_END = re.compile(r"[a-z0-9)\]'\"`$][.?!:](?=\s|$)")
_ITEM = re.compile(r"\s*(?:[-*•]|\w{1,2}[.)])\s")
_EXAMPLE = re.compile(r"(?:==|!=|=>|->|➞)\s*\S{1,20}$")
_ORDINARY = re.compile(r"[(\"'“$]?[A-Za-z0-9][\w'’-]*[.,;:!?)\"'”$]{0,3}")  # a word or number of a sentence
_DOTS = re.compile(r"(?<![,.\s])(?<!so on)(?<!etc) ?(?:\.\.\.|…)$")
_OPEN_FORMULA = re.compile(r"(?<!\\)\$[^$]{0,300}(?:\\[A-Za-z]|[_^]\{?\w)[^$]{0,300}$")
_SAMPLE_INPUT = re.compile(r"^[\s*_#]{0,8}(?:(?:sample|example) )?input(?: \d{1,2})?[*_]{0,3} ?(?::|$)", re.I | re.M)
_SAMPLE_OUTPUT = re.compile(r"^[\s*_#]{0,8}(?:(?:sample|example) )?output", re.I | re.M)
_HEADINGS = ("input", "output", "example", "explanation", "constraints")
_LISTS = ("constraints", "limits", "hints")  # lines below these headings need no full stop
_GOES_ON = frozenset(
    "a an the of to in on at by for with from and or but as is are was were be been that which who whose if when where"
    " than into between each every any such this these those its their your has have can may must should will because"
    " while whether".split()
)  # fmt: skip
_MAY_END = (["so", "on"], ["in", "between"])


def parts(record: Record) -> Record:
    """Drop a problem without tests, expected outputs, or the starter code of a method."""
    problem = record.problem
    if problem.kind == "assert":
        if not any("assert" in text for text in problem.asserts):
            raise Dropped("missing_tests", f"{len(problem.asserts)} statements, and no assert among them")
    elif not problem.tests:
        raise Dropped("missing_tests", f"kind is {problem.kind}, and there is no test")
    elif not any(test.output.strip() for test in problem.tests) and len(references(problem)) < 2:
        # two solutions that agree can give the expected output
        raise Dropped("missing_outputs", f"none of {len(problem.tests)} tests has an expected output")
    if "." in problem.entry_point and not problem.starter_code.strip():
        raise Dropped("missing_starter_code", f"{problem.entry_point} is a method, and nothing shows its class")
    try:
        problem.check()
    except ValueError as error:  # SchemaError is one
        raise Dropped("wrong_format", str(error)) from None
    return record


def statement(record: Record, *, least_words: int = 4) -> Record:
    """Drop a problem whose text is missing, does not say what is read and printed, or is cut off."""
    problem = record.problem
    text = problem.statement
    spoken = _URL.sub("", prose(text)).split()
    words = len(spoken) or len(_URL.sub("", text).split())  # if all of it is code (a docstring), all words
    if words < least_words:
        raise Dropped("missing_statement", f"{words} words: {text!r:.60}")
    if words < 25 and _letters(text) in (_letters(problem.title), _letters(problem.entry_point.rpartition(".")[2])):
        raise Dropped("missing_statement", f"nothing but its name: {text!r:.60}")
    if words < 25 and _ELSEWHERE.search(text):
        raise Dropped("missing_statement", f"it is somewhere else: {text!r:.60}")
    if problem.kind == "stdin":
        missing = [name for name, told in zip(("input", "output"), _described(text), strict=True) if not told]
        if missing:
            raise Dropped("missing_io", f"nothing is said of the {' and the '.join(missing)}")
    if end := _cut_off(text):
        raise Dropped("truncated_statement", end)
    return record


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def _described(text: str) -> tuple[bool, bool]:
    """Whether the text describes input and output; a heading with nothing below it does not count."""
    told = {"input": False, "output": False}
    section = ""
    for part in blocks(text):
        for line in part.text.split("\n") if part.kind == "prose" else ():
            words = bare(line)
            if heading := _SECTION.fullmatch(words):
                section = heading[1].lower()
            elif _OTHER.fullmatch(words):
                section = ""
            elif words:
                told["input"] |= section == "input" or bool(_INPUT.search(words))
                told["output"] |= section == "output" or bool(_OUTPUT.search(words))
        section = section if part.kind == "prose" else ""
    return told["input"], told["output"]


def _cut_off(text: str) -> str:
    """Return the sign that the text is cut off; "" if it is whole."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    end = lines[-1]
    ends_with = f"it ends with {end[-40:]!r}"
    if sum(line.startswith("```") for line in lines) % 2:
        return "there is code that does not end"
    inputs = list(_SAMPLE_INPUT.finditer(text))
    if inputs and not _SAMPLE_OUTPUT.search(text, inputs[-1].end()):
        return "there is an example without its output"
    heading = bare(end).rstrip(" 0123456789").lower()
    if len(heading) > 1 and any(word.startswith(heading) for word in _HEADINGS) and len(lines) > 1:
        return f"it ends with the heading {end!r}"
    if blocks(text)[-1].kind != "prose":
        return ""
    if _DOTS.search(end) or (end[-1] in ",([{" and " " in end) or _goes_on(end):
        return ends_with
    if not any(bare(line).lower() in _LISTS for line in lines) and _within_sentence(text):
        return ends_with
    left = "".join(piece.text for piece in inline(end) if piece.kind == "prose")
    return ends_with if _OPEN_FORMULA.search(left) else ""


def _goes_on(line: str) -> bool:
    """Whether the last word, such as `the`, needs another after it."""
    words = line.lower().split()
    return words[-1] in _GOES_ON and words[-2:] not in _MAY_END


def _within_sentence(text: str) -> bool:
    """Whether the last paragraph ends in the middle of a sentence, in a text that ends others with a full stop."""
    paragraph = text.rstrip().rpartition("\n\n")[2]
    plain = [bool(_ORDINARY.fullmatch(word)) for word in paragraph.split()[-10:]]
    *before, last = paragraph.split("\n")
    if not paragraph[-1].isalpha() or len(plain) < 2 or _EXAMPLE.search(last):
        return False
    if _ITEM.match(last) and not any(_ITEM.match(line) and line.rstrip()[-1] in ".;" for line in before):
        return False  # a list whose other items have no full stop either
    return all(plain[-2:]) and sum(plain) >= len(plain) / 2 and bool(_SENTENCE_END.search(text))
