"""The constraints of a statement: relations between quantities, facts about values, and what could not be read.

    found = read(statement)
    found.relations     1 <= nums.length <= 10^5, 0 <= ai < n: see relations.py
    found.facts         Fact("alphabet", ("s",), "abc..."), Fact("sorted", ("nums",), "ascending"), ...
    found.columns       edges[i] = [ai, bi] -> {"edges": ("ai", "bi")}
    found.unread        lines of the section of constraints, and guarantees elsewhere, that mean something unknown

LeetCode, AtCoder and others have a section of constraints; Codeforces tells them in the prose of its "Input" section,
in brackets or formulas. Lost exponents are not the business of this module: data/process restores them.

A fact that is read where there is none only makes the inputs fewer. A fact that is overlooked makes inputs that the
problem does not allow. So facts are read generously, and whoever uses them checks them against the existing tests.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .relations import Relation, normal, relations

_HEADING = re.compile(r"^[\s#*_>-]{0,8}(?:Constraints?|Limits|Note|Notes)\W{0,8}$", re.M | re.I)
_NEXT = re.compile(
    r"^[\s#*_>-]{0,8}(?:Inputs?|Outputs?|Samples?(?: Input| Output)?(?: \d+)?|Examples?(?: \d+)?|"
    r"Input Format|Output Format|Hints?|Explanation|Subtasks?|Scoring|Follow[- ]?up)\b[^\n]{0,20}$",
    re.M | re.I,
)
_SECTION = re.compile(r"^[\s#*_>-]{0,8}(?:Input|Input Format|Input Specification)\W{0,8}$", re.M | re.I)
_FORMULA = re.compile(r"\$([^$\n]{1,200})\$|\(([^()\n]{1,200}(?:\([^()\n]{0,40}\)[^()\n]{0,200})?)\)|`([^`\n]{1,200})`")
_COMPARED = re.compile(r"<=|>=|<|>|≤|≥|≠|!=|\\l(?:e|t)|\\g(?:e|t)|\\n(?:e|eq)\b|&lt;|==")
_COLUMNS = re.compile(r"\b([A-Za-z]\w*)\[\s*\w\s*\]\s*={1,2}\s*[\[(]\s*([^\[\]()\n]{1,200}?)\s*[\])](?!\s*[-+*])")
_SUBSCRIPTS = re.compile(r"\b[A-Za-z]\w*\[\s?\w\s?\]\s?=\s?\[([^\[\]\n]{1,200})\]")
_NAME = re.compile(r"[A-Za-z]\w*(?:_\w)?$")
_IDENTIFIER = re.compile(r"[A-Za-z]\w*(?:\[[^\[\]\n]{1,12}\])*(?:\.(?:length|val|size))?")


@dataclass(frozen=True, slots=True)
class Fact:
    """A property of some values. `subjects`: names that the sentence gives before it tells the property."""

    name: str
    subjects: tuple[str, ...]
    value: Any
    text: str
    told: bool = True  # as a constraint or a guarantee; elsewhere it may speak of something else than the input


@dataclass(slots=True)
class Constraints:
    """All that could be read, and what could not."""

    relations: list[Relation] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    section: bool = False  # whether there is a section of constraints


def read(statement: str) -> Constraints:
    """Read all constraints of a statement."""
    found = Constraints()
    statement = _without_subscripts(statement)
    body, lines = _parts(statement)
    found.section = bool(lines)
    for line in lines:
        _of_line(line, found)
    if not lines:
        _of_prose(statement, found)
    for sentence in _sentences(body):
        _of_sentence(sentence, found)
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
    r"you (?:must|should|need|may not|can|are not allowed)|what if|how would|"
    r"answer(?:s)? (?:is|are|to each|will|can|for|may|that|of)[^.]{0,60}(?:bit|less than|at most|unique)|"
    r"memory limit|time limit|please note|this problem|this question|solution|fits? on a|output doesn't|output array|"
    r"if so, how|can we|may contain (?:self|multiple|dup)|(?:under|for) the given constraints|so does the output",
    re.I,
)


def _of_line(line: str, found: Constraints) -> None:
    """Add what a line says, or note that nothing could be read."""
    said = 0
    if _COMPARED.search(line) or re.search(r"(?<![<>=!])=(?![=<>])", line):
        new = relations(line)
        found.relations += new
        said += len(new)
    for sentence in _sentences(line):
        facts = list(_facts(sentence))
        new = _in_words(sentence)
        found.facts += [replace(fact, told=not (said or new)) for fact in facts]
        found.relations += new
        if not (said or facts or new or _HARMLESS.search(sentence) or _declared(sentence) or sentence.endswith(":")):
            found.unread.append(sentence)


def _declared(sentence: str) -> bool:
    return bool(_COLUMNS.search(normal(sentence)))


_GUARANTEE = re.compile(
    r"guarante|generated (?:such|so|in)|\b(?:may|can) (?:always )?assume|^assume|it is (?:always|known)|"
    r"test cases? (?:are|will)|tests? (?:are|is) generated|inputs? (?:is|are|will be) (?:generated|given|such|valid)|"
    r"always (?:be )?(?:valid|possible|exist)",
    re.I,
)
_OF_INPUT = re.compile(
    r"\b(?:given|consists?|contains?|consisting|containing|there (?:is|are)|represent|sorted|distinct|unique|"
    r"permutation)\b",
    re.I,
)


def _of_sentence(sentence: str, found: Constraints) -> None:
    """Add what a sentence outside of that section says."""
    if re.match(r"(?:return|output|find|input|explanation|print|for example|example)\b", sentence, re.I):
        return
    guarantee = _GUARANTEE.search(sentence)
    if not guarantee and not _OF_INPUT.search(sentence):
        return
    facts = [replace(fact, told=bool(guarantee)) for fact in _facts(sentence) if guarantee or fact.name in _BODY]
    known = {(fact.name, fact.subjects) for fact in found.facts}
    found.facts += [fact for fact in facts if (fact.name, fact.subjects) not in known]
    new = relations(sentence) if guarantee and _COMPARED.search(sentence) else []
    found.relations += new
    if guarantee and not facts and not new and not _HARMLESS.search(sentence):
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
        found.facts += _facts(sentence)
        found.relations += _in_words(sentence)


# --- relations in words

_RANGE = re.compile(
    r"\bin the (?:inclusive )?range (?:of )?(?:from )?\[?\s*([^\[\],]{1,30}?)\s*(?:,|to|-|\.\.)\s*"
    r"([^\[\],]{1,30}?)\s*(?:\]|$|\.)"
)
_BEFORE = re.compile(
    r"([A-Za-z]\w*(?:\[\w+\])*(?:\.length|\.val)?(?:(?:,| and|, and) [A-Za-z]\w*(?:\[\w+\])*)*) "
    r"(?:is|are|will be|lies|lie)(?: an?)?(?: integers?| numbers?)?\s*$"
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


def _in_words(sentence: str) -> list[Relation]:
    """Relations that a sentence tells in words."""
    sentence = normal(sentence)
    match = _RANGE.search(sentence)
    if match and _NODES.search(sentence):
        return relations(f"{match.group(1)} <= nodes_count <= {match.group(2)}")
    subject = _BEFORE.search(sentence[: match.start()]) if match and not _COMPARED.search(sentence) else None
    if match and subject:
        named = ", ".join(_IDENTIFIER.findall(subject.group(1).replace(" and ", ", ")))
        return relations(f"{match.group(1)} <= {named} <= {match.group(2)}")
    if re.search(r"number of (?:the )?nodes in (?:the|each) (?:tree|list|linked list) is (\w+)\.?$", sentence, re.I):
        return relations(f"nodes_count == {sentence.rstrip('.').split()[-1]}")
    if match := re.search(
        r"(?:depth|height) of (?:the|each|a) \w*\s?tree (?:will not exceed|is at most|.{0,30}range \[\d+,) ?([\d^*]+)",
        sentence,
    ):
        return relations(f"nodes_depth <= {match.group(1)}")
    if match := _TOTAL.search(sentence):
        return relations(f"total_length <= {match.group(1)}")
    if match := re.search(r"\b([a-z]\w*(?:\[\w\])?) is a (positive|non-negative|negative) integer", sentence):
        low = {"positive": " >= 1", "non-negative": " >= 0", "negative": " <= -1"}[match.group(2)]
        return relations(match.group(1) + low)
    return []


# --- facts

_LETTERS = r"(?:letters?|characters?|alphabets?|chars?)"


def alphabet(text: str) -> str:
    """The characters that a description allows, sorted; "" if it describes none."""
    chars: set[str] = set()
    low = text.lower()
    lower = re.search(r"lower[- ]?cased?|small letters|lower\b", low)
    upper = re.search(r"upper[- ]?cased?|capital|upper\b", low)
    if re.search(rf"\b{_LETTERS}\b|alphanumeric|alphabetic|\blatin\b|\benglish\b", low) or lower or upper:
        if lower or not upper:
            if lower or re.search(r"\b(?:letters?|alphabets?|alphanumeric|alphabetic|latin|english)\b", low):
                chars |= set(string.ascii_lowercase)
        if upper or (not lower and re.search(r"\b(?:letters?|alphabets?|alphanumeric|alphabetic|english)\b", low)):
            chars |= set(string.ascii_uppercase)
    if re.search(r"\bvowels?\b", low) and not chars:
        chars |= set("aeiou")
    if match := re.search(
        r"(?:digits?|numbers?) (?:from |in the range |\()?\[?'?(\d)'?(?: ?(?:to|-|,) ?)'?(\d)'?", low
    ):
        chars |= {str(n) for n in range(int(match.group(1)), int(match.group(2)) + 1)}
    elif re.search(r"\bdigits?\b|alphanumeric|numeric char", low):
        chars |= set(string.digits)
    if re.search(r"\bspaces?\b|\bblank|whitespace", low):
        chars.add(" ")
    if re.search(r"printable ascii|any (?:valid )?ascii|ascii characters", low):
        chars |= {chr(n) for n in range(32, 127)}
    if re.search(r"\bparenthes[ei]s\b|\bbrackets\b", low) and not re.search(r"['\"`]", text):
        chars |= set("()")
    for quoted in re.findall(r"'([^'\n]{1,8})'|\"([^\"\n]{1,8})\"|`([^`\n]{1,8})`", text):
        chars |= set("".join(quoted))
    if not chars:
        for token in re.split(
            r"\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s+", text.strip().rstrip("." if ".," not in text else "")
        ):
            if len(token) == 1 and not token.isalpha():
                chars.add(token)
            elif len(token) == 1 and token.isupper():
                chars.add(token)
    return "".join(sorted(chars))


_LITERAL = re.compile(r"'([^'\n]{1,20})'|\"([^\"\n]{0,20})\"|(?<![\w.])(-?\d+)(?!\w|\.\d|\s*\()|\b(true|false)\b")
_CONNECTED = re.compile(
    r"\b(?:either|one|of|the|following|or|and|a|an|only|be|can|will|values?|character|chars?|characters|strings?|integers?|"
    r"numbers?|to|equal|these|from|set|digit|binary|in|consists?|contains?)\b|[,.\s{}\[\]():`]"
)


def choices(text: str) -> list[Any] | None:
    """The values of "either 0, 1 or 2", "'A' or 'B'"; None if the text says more than that."""
    found: list[Any] = []
    for single, double, number, word in _LITERAL.findall(text):
        found.append(int(number) if number else word == "true" if word else single or double)
    rest = _CONNECTED.sub("", _LITERAL.sub("", text))
    return found if len(found) >= 1 and not rest else None


def _subjects(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_IDENTIFIER.findall(normal(text))))


_X = r"(?P<x>(?:[^.;]|\.(?=\w)){0,90}?)"
_BE = r"(?:is|are|be|will be|can be|may be)"
_BODY = {"sorted", "permutation", "tree", "bst", "distinct", "connected", "acyclic", "even", "power", "binary"}
_TABLE: list[tuple[str, str, str, Any]] = [  # name, a word of which one must occur, pattern, value where it says none
    ("permutation", "permutation",
     rf"{_X}\b(?:{_BE}|represents?|as)?\s*(?:an? )?permutations?(?: of (?P<v>[^.;]{{1,60}})|\.?$)", None),
    ("anagram", "anagram permutation", r"(?P<x>[\w, ]{1,60}) are (?:anagrams|permutations) of each other", None),
    ("distinct", "unique distinct different",
     rf"\ball (?:of )?(?:the )?(?P<x>[^.;]{{0,60}}?)\b{_BE} (?:pairwise )?(?:unique|distinct|different)", None),
    ("distinct", "unique distinct different",
     rf"{_X}\b(?:{_BE}|consists?|contains?|has|have|of)\b (?:only )?(?:an? )?(?:array |list |set )?(?:of )?"
     r"(?:pairwise )?(?:unique|distinct|different)\b(?! from)", None),
    ("distinct", "unique distinct same equal",
     rf"(?:each|every|no two) (?P<x>[^.;]{{0,40}}?)\b(?:has|have|{_BE}|will have|share) (?:an? |the )?"
     r"(?:unique|distinct|same|equal)", None),
    ("distinct", "duplicate repeated", r"\bno (?:duplicated?|repeated) (?P<x>[^.;]{0,60})", None),
    ("distinct", "duplicate repeated",
     rf"{_X}\b(?:(?:does|do|will) not (?:contain|have) (?:any )?|(?:contains?|has|have) no )(?:duplicated?s?|repeated)",
     None),
    ("distinct", "distinct unique",
     r"\b(?:distinct|unique) (?P<x>(?:positive |non-negative )?(?:integer |string )?"
     r"(?:array|integers|elements|values|numbers|strings|words)[^.;]{0,40})", None),
    ("distinct", "edge graph more than one",
     r"at most one edge between|connected by more than one|"
     r"no (?:repeated|duplicate|multiple|parallel) edges|no multi-?edges|simple graph",
     "edges"),
    ("no_loops", "loop edge", r"no self[- ]?(?:loops?|edges?)|no loops|not contain (?:any )?self[- ]?loops?", None),
    ("sorted", "sorted",
     rf"{_X}\b(?:{_BE}|already|array|list|guaranteed to be)\s+(?:\w+ )?sorted\b(?P<v>[^.;]{{0,80}})", None),
    ("sorted", "creasing scending",
     rf"{_X}\b(?:is|are)\b (?:guaranteed to be )?(?:an? )?(?P<v>(?:monotonic(?:ally)?[ -])?(?:strictly[ -])?"
     r"(?:non-)?(?:increasing|decreasing|ascending|descending)\b[^.;]{0,40})", None),
    ("sorted", "sorted",
     r"\bsorted (?P<v>)(?:integer |string )?(?:array|list|matrix)s?(?: of [\w -]{1,30})?,? (?P<x>[\w ,]{1,40})", None),
    ("bst", "binary search tree bst", r"binary search tree|\bBST\b", None),
    ("complete", "complete", r"tree is (?:guaranteed to be )?complete|complete binary tree", None),
    ("perfect", "perfect full", r"perfect binary tree|full binary tree", None),
    ("tree", "tree",
     rf"{_X}\b(?:represents?|forms?|make|{_BE}|given an?)\b[^.;]{{0,40}}?\b"
     r"(?:valid |undirected |connected |rooted |n-ary )*tree\b", None),
    ("connected", "connected reach path travel",
     rf"(?:graph|nodes|cities|servers|network|grid|computers|all the \w+) {_BE}? ?(?:all |always |guaranteed to be )?"
     r"(?:strongly |directly or indirectly )?connected\b|connected (?:undirected )?graph|reach any \w+ from any|"
     r"directly or indirectly reach|reached directly or indirectly|"
     r"path between any|possible to (?:reach|travel)[^.]{0,20} (?:any|every|all)", None),
    ("acyclic", "cycl dag", r"acyclic|\bDAG\b|no cycles?|does not contain (?:any )?cycles?", None),
    ("alphabet", "consist contain is are has have made compris",
     rf"{_X}\b(?:only )?(?:consists?|contains?|consisting|containing|is|are|made up|has|have|comprises?)\b"
     r"(?: only)?(?: of)?(?: only)? (?P<v>[^;]*?(?:letters?|characters?|digits?|'.{1,8}'|\".{1,8}\"|spaces|ascii|"
     r"lowercase|uppercase|parenthes[ei]s|alphabets?|vowels).*)", None),
    ("alphabet", "string",
     rf"{_X}\bstrings? (?:of length \w+ )?(?:consisting|made up|containing) (?:only )?(?:of )?(?:only )?(?P<v>.+)",
     None),
    ("choices", "is are be consist contain",
     rf"{_X}\b(?:{_BE}|consists? (?:only )?of|contains? only|can only be|is one of)\b (?P<v>.+)", None),
    ("choices", "in the set", rf"{_X}\bin the set (?P<v>.+)", None),
    ("binary", "binary",
     r"\bbinary (?:array|matrix|grid|string)s?,? (?P<x>[\w ,]{1,30})|(?P<y>\w+) is a binary (?:array|matrix|string)",
     None),
    ("even", "even odd", rf"{_X}\b(?:{_BE}|has) (?:an? )?(?P<v>even|odd)\b(?! (?:index|or))", None),
    ("multiple", "multiple divisible %",
     r"(?P<x>[\w.\[\]]{1,30}) is (?:a multiple of|divisible by) (?P<v>[\w.\[\]]{1,30})|"
     r"(?P<y>[\w.\[\]]{1,30}) % (?P<w>\w+) == 0", None),
    ("power", "power", r"(?P<x>[\w.]{1,30}) is (?:a |an )?power of (?P<v>2|two|3|three|4|four)", None),
    ("prime", "prime", r"(?P<x>[\w.\[\]]{1,30}) is (?:a |an )?prime", None),
    ("palindrome", "palindrom", r"(?P<x>[\w.\[\]]{1,30}) is (?:a |an )?palindrom", None),
    ("no_leading_zero", "leading",
     rf"{_X}\b(?:does|do|will|has|have|without|is|are|no)\b ?(?:not )?(?:contain|have|represent\w*|generated)?"
     r"[^.;]{0,60}leading (?:zeros?|0)", None),
    ("no_outer_space", "trailing",
     r"(?P<x>[^.;]{0,60}?)\b(?:no|not|without|any)\b[^.;]{0,30}leading (?:or|and) trailing spaces?", None),
    ("single_space", "single space", r"(?:separated by|only|there is) (?:a |one )?single spaces?", None),
    ("brackets", "valid balanced well-formed",
     r"(?P<x>\w{1,30}) (?:is|represents|will be) (?:guaranteed to be )?(?:a |an )?(?:valid|balanced|well-formed) "
     r"(?:parenthes[ei]s|brackets?)", None),
    ("member", "exist appear in of",
     r"(?P<x>[A-Za-z]\w*(?:\[\w\](?:\[\d\])?)?) (?:exists?|appears|is guaranteed to (?:exist|be|appear)|"
     r"is (?:present )?|will be|(?:is|equals|equals to) an? "
     r"(?:element|value|member|integer) )\s?(?:in|of|from)(?: the array)? (?P<v>[a-zA-Z]\w*)\b(?! order| the)",
     None),
    ("time", "hh:mm", r"(?P<x>[^.;]{0,60}?)\b(?:is|are|will be|in)\b[^.;]{0,40}\"?HH:MM\"?", None),
]  # fmt: skip
_FACTS = [(name, hints.split(), re.compile(pattern, re.I), value) for name, hints, pattern, value in _TABLE]


def _facts(sentence: str) -> Iterator[Fact]:
    sentence = sentence.translate(str.maketrans("‘’“”", "''\"\""))
    seen = set()
    low = sentence.lower()
    for name, hints, pattern, value in _FACTS:
        match = pattern.search(sentence) if any(hint in low for hint in hints) else None
        if not match:
            continue
        groups = match.groupdict()
        subjects = _subjects(groups.get("x") or groups.get("y") or "")
        told: Any = (groups.get("v") or groups.get("w") or "").strip().rstrip(".") if value is None else value
        if name in ("alphabet", "choices"):
            if "choices" in seen or (name == "choices" and "alphabet" in seen):
                continue
            literal = choices(told)
            if literal is not None and not (name == "alphabet" and _letters(literal, told)):
                name, told = "choices", literal
            elif name == "alphabet":
                told = alphabet(told)
            else:
                continue
            if not told or not subjects:
                continue
        elif name == "sorted":
            told = _order(told or sentence)
        elif name == "power":
            told = {"two": 2, "three": 3, "four": 4}.get(told) or int(told)
        if name == "distinct" and name in seen and not subjects:
            continue
        seen.add(name)
        yield Fact(name, subjects, told, sentence)


def _letters(literal: list[Any], told: str) -> bool:
    """Whether quoted characters are an alphabet of strings rather than whole values."""
    return all(isinstance(one, str) for one in literal) and bool(re.search(r"character|letter", told, re.I))


def _order(text: str) -> str:
    low = text.lower()
    down = bool(re.search(r"descending|(?<!non-)(?<!non)(?<!non )decreasing|non-? ?increasing", low))
    strictly = "strict" in low or re.search(r"(?<!non-)(?<!non)increasing|(?<!non-)(?<!non)decreasing", low)
    by = re.search(r"\bby (?:their |its |the )?(\w+)", low)
    column = text[by.start(1) : by.end(1)] if by else ""
    return (
        f"{'strictly ' if strictly else ''}{'descending' if down else 'ascending'}{' by ' + column if column else ''}"
    )
