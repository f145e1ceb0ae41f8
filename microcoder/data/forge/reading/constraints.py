"""The constraints of a statement: relations between quantities, facts about values, and what could not be read.

    found = read(statement)
    found.relations     1 <= nums.length <= 10^5, 0 <= ai < n: see relations.py
    found.facts         StatedFact("alphabet", ("s",), "abc..."), StatedFact("sorted", ("nums",), "ascending"), ...
    found.columns       edges[i] = [ai, bi] -> {"edges": ("ai", "bi")}
    found.unread        lines of the section of constraints, and guarantees elsewhere, that mean something unknown

LeetCode, AtCoder and others have a section of constraints; Codeforces tells them in the prose of its "Input" section,
in brackets or formulas. Lost exponents are not the business of this module: data/process restores them.

A fact that is read where there is none only makes the inputs fewer. A fact that is overlooked makes inputs that the
problem does not allow. So facts are read generously, and whoever uses them checks them against the existing tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .facts import IDENTIFIER, IN_PROSE, StatedFact, facts
from .relations import Relation, expression, normal, relations, value

_HEADING = re.compile(r"^[\s#*_>-]{0,8}(?:Constraints?|Limits|Note|Notes)\W{0,8}$", re.M | re.I)
_NEXT = re.compile(
    r"^[\s#*_>-]{0,8}(?:Inputs?|Outputs?|Samples?(?: Input| Output)?(?: \d+)?|Examples?(?: \d+)?|"
    r"Input Format|Output Format|Hints?|Explanation|Subtasks?|Scoring|Follow[- ]?up)\b[^\n]{0,20}$",
    re.M | re.I,
)
_SECTION = re.compile(r"^[\s#*_>-]{0,8}(?:Input|Input Format|Input Specification)\W{0,8}$", re.M | re.I)
_FORMULA = re.compile(r"\$([^$\n]{1,200})\$|\(([^()\n]{1,200}(?:\([^()\n]{0,40}\)[^()\n]{0,200})?)\)|`([^`\n]{1,200})`")
_COMPARED = re.compile(
    r"<=|>=|<|>|≤|≥|≠|!=|\\l(?:e|t)|\\g(?:e|t)|\\n(?:e|eq)\b|&lt;|==|not exceed|"
    r"(?:smaller|less) than or equal|(?:is|are) at most \d"
)
_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad]")
_SOME = re.compile(
    r"\b(?:there (?:is|are|exists?) (?:at least|at most|exactly|no)|no two|at least one|exactly one|never)\b",
    re.I,
)
_UNEQUAL = re.compile(r"^([A-Za-z]\w*)\[(\w)\]$")
_COLUMNS = re.compile(r"\b([A-Za-z]\w*)\[\s*\w\s*\]\s*={1,2}\s*[\[(]\s*([^\[\]()\n]{1,200}?)\s*[\])](?!\s*[-+*])")
_SUBSCRIPTS = re.compile(r"\b[A-Za-z]\w*\[\s?\w\s?\]\s?=\s?\[([^\[\]\n]{1,200})\]")
_FLAT = re.compile(r"\b([A-Za-z]\w*)\s?=\s?\[\s?([A-Za-z]\w*(?:\s?,\s?[A-Za-z]\w*){1,5})\s?\]")
_NAME = re.compile(r"[A-Za-z]\w*(?:_\w)?$")
_EXAMPLE = re.compile(r"^[\s#*_>-]{0,8}Example 1\W{0,6}$", re.M | re.I)
_AFTER = re.compile(r"^[\s#*_>-]{0,8}(?:Note|Notes|Follow[- ]?up)\b", re.M | re.I)


@dataclass(slots=True)
class Constraints:
    """All that could be read, and what could not."""

    relations: list[Relation] = field(default_factory=list)
    facts: list[StatedFact] = field(default_factory=list)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    flat: dict[str, tuple[str, ...]] = field(default_factory=dict)  # start = [row, col] -> {"start": ("row", "col")}
    unread: list[str] = field(default_factory=list)
    section: bool = False  # whether there is a section of constraints


def read(statement: str) -> Constraints:
    """Read all constraints of a statement."""
    found = Constraints()
    statement = _without_subscripts(_INVISIBLE.sub("", statement).replace("\xa0", " "))
    body, lines = _parts(statement)
    found.section = bool(lines)
    for line in lines:
        _of_line(line, found)
    if not lines:
        _of_prose(statement, found)
    for sentence in _sentences(_without_examples(body)):
        _of_sentence(sentence, found)
    for name, parts in _FLAT.findall(statement):
        found.flat.setdefault(name, tuple(part.strip() for part in parts.split(",")))
    for match in _COLUMNS.finditer(normal(statement)):
        parts = [part.strip() for part in match.group(2).split(",")]
        if all(map(_NAME.match, parts)) and (len(parts) > 1 or match.group(1) not in found.columns):
            found.columns.setdefault(match.group(1), tuple(parts))
    return found


def _without_subscripts(statement: str) -> str:
    """Write the columns of `queries[i] = [l_i, r_i]` as li and ri, wherever they stand: l_i alone would be l[i]."""
    parts = [match.group(1) for match in _SUBSCRIPTS.finditer(statement)]
    for name, index in {found for part in parts for found in re.findall(r"([A-Za-z]\w*?)_\{?(\w)\b\}?", part)}:
        statement = re.sub(rf"(?<!\w){name}_(?:{index}(?!\w)|\{{{index}\}})", name + index, statement)
    return statement


def _parts(statement: str) -> tuple[str, list[str]]:
    """(all but the constraints, the lines of the section of constraints)"""
    headings = [match for match in _HEADING.finditer(statement) if match.group().strip(" #*_>-:\n").lower()[:1] != "n"]
    if not headings:
        return statement, []
    at = headings[-1]
    after = _NEXT.search(statement, at.end())
    end = after.start() if after else len(statement)
    lines = [re.sub(r"^[-*•]\s+", "", line.strip()).strip() for line in statement[at.end() : end].split("\n")]
    return statement[: at.start()] + "\n" + statement[end:], [line for line in lines if line]


def _without_examples(body: str) -> str:
    """The text without the examples at its end: what they explain is true of themselves only."""
    first = _EXAMPLE.search(body)
    if first is None:
        return body
    after = _AFTER.search(body, first.end())
    return body[: first.start()] + "\n" + (body[after.start() :] if after else "")


def _sentences(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from (part.strip() for part in re.split(r"(?<=[.!?;])\s+", line) if part.strip())


# --- a line of the section of constraints

_HARMLESS = re.compile(
    r"follow[- ]?up|fits? in(?:to|side)? (?:a|an) |fit (?:a|within a) (?:signed )?\d\d-bit|could you|can you|"
    r"in the range of a 32|not exceed 2\^31|answers? (?:is|are|will be|being)? ?(?:within|accepted|considered)|"
    r"within 10|environment does not allow|infinite|takes? no time|do not count|not guaranteed|guarantee a win|"
    r"surrounded by water|^(?:note|explanation)\W*$|"
    r"all (?:input values|values|inputs?|numbers?)(?: in (?:the )?input)? are integers|"
    r"(?:is|are) (?:all )?(?:an )?integers?\.?$|0-indexed|1-indexed|only one (?:valid|correct) (?:answer|output)|"
    r"(?<!that )you (?:must|should|need|may not|can|are not allowed)|what if|how would|"
    r"answer(?:s)? (?:is|are|to each|will|can|for|may|that|of)[^.]{0,60}(?:bit|less than|at most|unique)|"
    r"memory limit|time limit|please note|this problem|this question|solution|fits? on a|output doesn't|output array|"
    r"if so, how|can we|may contain (?:self|multiple|dup)|(?:under|for) the given constraints|so does the output|"
    r"implicit stack|extra space|it can be (?:shown|proven)|^\(?assume (?:you are|an? (?:player|person)|changing)|"
    r"(?:may|might|can) (?:not )?(?:be|have|contain) (?:connected|multiple|repeated|duplicate)|"
    r"fits? in \d\d-bit|\w is valid for the given \w\b|"
    r"\?$|https?:|outputs? (?:is|are|will be) (?:at most|less)|\boutput <=|is unknown",
    re.I,
)


def harmless(sentence: str) -> bool:
    """Whether a sentence says nothing about the inputs."""
    return bool(_HARMLESS.search(sentence))


def total(sentence: str) -> float | None:
    """The most that a total in a sentence may be ("the total area of all squares <= 10^12"); None if it tells none."""
    match = re.search(r"\b(?:total|sum|product)\b[^<>]{1,80}<= ([\d*^ ]+)\.?$", normal(sentence).strip())
    source = expression(match[1]) if match else None
    return float(value(source, {})) if source is not None else None


def _of_line(line: str, found: Constraints) -> None:
    """Add what a line says, or note that nothing could be read."""
    said = 0
    line = _EITHER.sub(r"\1 is \2 or \3", line)
    if (
        not _COUNTED.search(line)
        and (_COMPARED.search(line) or re.search(r"(?<![<>=!])=(?![=<>])", line))
        and not _some(line)
        and not _declared(line)
    ):
        new = relations(line)
        found.facts += [fact for one in new if (fact := _all_different(one))]
        found.relations += [one for one in new if not _all_different(one)]
        said += len(new)
    for sentence in _sentences(line):
        aside = "http" in sentence or sentence.endswith("?") or sentence.lower().startswith("follow")
        told = [] if aside else list(facts(sentence))
        new = _in_words(sentence)
        found.facts += [replace(fact, told=not (said or new)) for fact in told]
        found.relations += new
        if not (said or told or new or _HARMLESS.search(sentence) or _declared(sentence) or sentence.endswith(":")):
            found.unread.append(sentence)


# `grid[i][j] == 0 or 1`; "the depth of the tree <= 9": in words, though it compares
_EITHER = re.compile(r"^(\S+) == (\S+) or (\S+?)\.?$")
_COUNTED = re.compile(r"\b(?:depth|height) of (?:the|each|a) \w*\s?tree\b", re.I)


def _declared(sentence: str) -> bool:
    return bool(_COLUMNS.search(normal(sentence)))


def _some(sentence: str) -> bool:
    """Whether what it compares does not hold for all values: "there is at least one i where nums[i] == 0"."""
    return bool(_SOME.search(sentence))


def _all_different(relation: Relation) -> StatedFact | None:
    """`x[i] != x[j]` as a fact."""
    left, right = _UNEQUAL.match(relation.left), _UNEQUAL.match(relation.right)
    if relation.op != "!=" or not left or not right or left[1] != right[1] or left[2] == right[2]:
        return None
    return StatedFact("distinct", (left[1],), "", relation.text)


_GUARANTEE = re.compile(
    r"guarante|generated (?:such|so|in)|\b(?:may|can) (?:always )?assume|^assume|it is (?:always|known|assumed)|"
    r"test cases? (?:are|will)|tests? (?:are|is) generated|inputs? (?:is|are|will be) (?:generated|given|such|valid)|"
    r"always (?:be )?(?:valid|possible|exist)",
    re.I,
)
_OF_INPUT = re.compile(
    r"\b(?:given|consists?|contains?|consisting|containing|there (?:is|are)|represent|sorted|distinct|unique|"
    r"permutation)\b",
    re.I,
)


_BESIDES = re.compile(r"\b(?:prime|composite|palindrom\w*|co-?prime|power of|divisible|multiple of)\b", re.I)


def _of_sentence(sentence: str, found: Constraints) -> None:
    """Add what a sentence outside of that section says."""
    if re.match(r"(?:return|output|find|input|explanation|print|for example|example)\b", sentence, re.I):
        return
    guarantee = _GUARANTEE.search(sentence)
    if not guarantee and not _OF_INPUT.search(sentence):
        return
    told = [replace(fact, told=bool(guarantee)) for fact in facts(sentence) if guarantee or fact.name in IN_PROSE]
    known = {(fact.name, fact.subjects) for fact in found.facts}
    found.facts += [fact for fact in told if (fact.name, fact.subjects) not in known]
    new = relations(sentence) if guarantee and _COMPARED.search(sentence) and not _some(sentence) else []
    found.relations += new
    if guarantee and not told and (not new or _BESIDES.search(sentence)) and not _HARMLESS.search(sentence):
        if not any(sentence.strip(". ") in line or line.strip(". ") in sentence for line in found.unread):
            found.unread.append(sentence)


def _of_prose(statement: str, found: Constraints) -> None:
    """Add relations in brackets and formulas: the "Input" section first, else everything."""
    start = _SECTION.search(statement)
    text = statement[start.end() :] if start else statement
    after = (
        re.search(r"^[\s#*_>-]{0,8}(?:Outputs?|Samples?|Examples?)\b[^\n]{0,20}$", text, re.M | re.I) if start else None
    )
    text = text[: after.start()] if after else text
    for match in _FORMULA.finditer(text):
        inner = next(filter(None, match.groups()))
        if _COMPARED.search(inner):
            found.relations += relations(inner)
    for sentence in _sentences(text):
        guarantee = bool(_GUARANTEE.search(sentence))  # else it may be the task itself: "check if a list is sorted"
        found.facts += [replace(fact, told=guarantee) for fact in facts(sentence)]
        found.relations += _in_words(sentence)


# --- relations in words

_RANGE = re.compile(
    r"\b(?:(?:in|is) the (?:inclusive )?range (?:of )?(?:from )?\[?|between)\s*([^\[\],]{1,30}?)\s*"
    r"(?:,|to|and|-|\.\.)\s*([^\[\],]{1,30}?)\s*(?:\]|$|\.)"
)
_BEFORE = re.compile(
    r"([A-Za-z]\w*(?:\[\w+\])*(?:\.length|\.val)?(?:(?:,| and|, and) [A-Za-z]\w*(?:\[\w+\])*)*) "
    r"(?:is|are|will be|lies|lie|represents)(?: an?)?(?: even| odd| positive| valid)?(?: integers?| numbers?)?\s*$"
)
_NODES = re.compile(
    r"number of (?:the )?nodes|number of elements in the (?:linked )?list|nodes in the (?:tree|list)|"
    r"size of the (?:tree|list)",
    re.I,
)
_TOTAL = re.compile(
    r"\bsum of (?:the )?(?:lengths?|length of (?:all )?(?:the )?(?:strings|words)).*?"
    r"(?:not exceed|at most|exceed|<=|up to)\s+([\d*^ ]+)"
)


_DEPTH = re.compile(r"(?:depth|height) of (?:the|each|a) \w*\s?tree (?:<=|is at most|.{0,30}range \[\d+,) ?([\d^*]+)")
_AMOUNT = re.compile(r"\b(number|frequency|count|length|sum|amount)s? of (?:\w+ ){0,5}$", re.I)


def _in_words(sentence: str) -> list[Relation]:
    """Relations that a sentence tells in words."""
    sentence = normal(sentence)
    match = _RANGE.search(sentence)
    if match and _NODES.search(sentence):
        return relations(f"{match.group(1)} <= nodes_count <= {match.group(2)}")
    if match := _DEPTH.search(sentence):
        return relations(f"nodes_depth <= {match.group(1)}")
    match = _RANGE.search(sentence)
    subject = _BEFORE.search(sentence[: match.start()]) if match and not _COMPARED.search(sentence) else None
    if match and subject and (told := _AMOUNT.search(sentence[: subject.start()])):  # of something that has a name
        if told[1].lower() != "length" or "," in subject[1] or " and " in subject[1]:
            return []
        return relations(f"{match.group(1)} <= {subject.group(1)}.length <= {match.group(2)}")
    if match and subject:
        named = ", ".join(IDENTIFIER.findall(subject.group(1).replace(" and ", ", ")))
        return relations(f"{match.group(1)} <= {named} <= {match.group(2)}")
    if re.search(r"number of (?:the )?nodes in (?:the|each) (?:tree|list|linked list) is (\w+)\.?$", sentence, re.I):
        return relations(f"nodes_count == {sentence.rstrip('.').split()[-1]}")
    if match := _TOTAL.search(sentence):
        return relations(f"total_length <= {match.group(1)}")
    if match := re.search(r"\b([a-z]\w*(?:\[\w\])?) is a (positive|non-negative|negative) integer", sentence):
        low = {"positive": " >= 1", "non-negative": " >= 0", "negative": " <= -1"}[match.group(2)]
        return relations(match.group(1) + low)
    return []
