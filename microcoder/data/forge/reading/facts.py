"""Facts that a sentence of a statement tells about values: an alphabet, an order, that all are different, a tree.

list(facts("s consists of lowercase English letters."))   # [StatedFact("alphabet", ("s",), "abc...", ...)]
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .relations import normal

IDENTIFIER = re.compile(r"[A-Za-z]\w*(?:\[[^\[\]\n]{1,12}\])*(?:\.(?:length|val|size))?")


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A property of some values. `subjects`: names that the sentence gives before it tells the property."""

    name: str
    subjects: tuple[str, ...]
    value: Any
    text: str
    told: bool = True  # as a constraint or a guarantee; elsewhere it may speak of something else than the input


_NUMBERS = {"one": 1, "two": 2, "twice": 2, "three": 3, "four": 4}
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
    if re.search(r"\bdigits?\b", text) and not any(str(one).isdigit() for one in found):
        return None  # "a digit or '*'"
    rest = _CONNECTED.sub("", _LITERAL.sub("", text))
    return found if len(found) >= 1 and not rest else None


def _subjects(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(IDENTIFIER.findall(normal(text))))


_X = r"(?P<x>(?:[^.;]|\.(?=\w)){0,90}?)"
_BE = r"(?:is|are|be|will be|can be|may be)"
IN_PROSE = {"sorted", "permutation", "tree", "bst", "distinct", "connected", "acyclic", "even", "power", "binary"}
IN_PROSE |= {"no_overlap"}
_TABLE: list[tuple[str, str, str, Any]] = [  # name, a word of which one must occur, pattern, value where it says none
    ("permutation", "permutation",
     rf"{_X}\b(?:{_BE}|represents?|as)?\s*(?:an? )?permutations?(?: of (?P<v>[^.;]{{1,60}})|\.?$)", None),
    ("permutation", "anagram", r"(?P<x>\w{1,30}) is an anagram of (?P<v>\w{1,30})\.?$", None),
    ("anagram", "anagram permutation", r"(?P<x>[\w, ]{1,60}) are (?:anagrams|permutations) of each other", None),
    ("distinct", "unique distinct different",
     rf"\ball (?:of )?(?:the )?(?P<x>[^.;]{{0,60}}?)\b{_BE} (?:pairwise )?(?:unique|distinct|different)", None),
    ("distinct", "unique distinct different",
     rf"{_X}\b(?:{_BE}|consists?|contains?|has|have|of)\b (?:only )?(?:an? )?(?:array |list |set )?(?:of )?"
     r"(?:pairwise )?(?:unique|distinct|different)\b(?! from)", None),
    ("distinct", "unique distinct same equal",
     rf"(?:each|every|no two) (?P<x>[^.;]{{0,40}}?)\b(?:has|have|{_BE}|will have|share) (?:an? |the )?"
     r"(?:unique|distinct|same|equal)", None),
    ("distinct", "same", r"\bno two (?P<x>\w{1,30}) are (?:at|on|in) the same [\w ]{1,30}\.?$", None),
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
     r"(?:valid |undirected |connected |rooted |n-ary )*trees?\b", None),
    ("connected", "connected reach path travel",
     rf"(?:graph|nodes|cities|servers|network|grid|computers|all the \w+) {_BE}? ?(?:all |always |guaranteed to be )?"
     r"(?:strongly |directly or indirectly )?connected\b|connected (?:undirected )?graph|reach any \w+ from any|"
     r"directly or indirectly reach|reached directly or indirectly|"
     r"path between any|possible to (?:reach|travel)[^.]{0,20} (?:any|every|all)", None),
    ("acyclic", "cycl dag", r"acyclic|\bDAG\b|no cycles?|does not contain (?:any )?cycles?", None),
    ("alphabet", "consist contain is are has have made compos compris",
     rf"{_X}\b(?:only )?(?:consists?|contains?|consisting|containing|is|are|made up|composed|has|have|comprises?)\b"
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
    ("single_space", "space",
     r"(?:(?P<x>[^.;]{0,60}?) (?:are|is|will be) )?(?:separated by|only|there is) (?:a |one )?single spaces?|"
     r"in (?P<y>\w{1,30}) will be separated by exactly one space|only one space between (?:2|two) words|"
     r"(?P<z>\w{1,30}(?:\[\w\])?) contains no two consecutive spaces", None),
    ("brackets", "valid balanced well-formed vps",
     r"(?P<x>\w{1,30}) (?:is|represents|will be) (?:guaranteed to be )?(?:a |an )?(?:valid|balanced|well-formed) "
     r"(?:parenthes[ei]s|brackets?)|(?P<y>\w{1,30}) is a VPS\b|all (?:the )?parentheses are balanced\.?$", None),
    ("member", "exist appear in of",
     r"(?P<x>[A-Za-z]\w*(?:\[\w\](?:\[\d\])?)?) (?:exists?|appears|is guaranteed to (?:exist|be|appear)|"
     r"is (?:present )?|will be|(?:is|equals|equals to) an? "
     r"(?:element|value|member|integer) )\s?(?:in|of|from)(?: the array)? (?P<v>[a-zA-Z]\w*)\b(?! order| the)",
     None),
    ("member", "are in",
     r"(?P<x>[A-Za-z]\w*(?:(?:,|,? and) [A-Za-z]\w*)+) are in (?:the (?:list|array) )?(?P<v>[A-Za-z]\w*)\.?$", None),
    ("member", "at least once", r"(?P<x>[A-Za-z]\w*) (?:occurs|appears) at least once in (?P<v>[A-Za-z]\w*)\.?$", None),
    ("member", "node with", r"node with (?:a|the) value (?:of )?(?P<x>\w+) exists in the (?P<v>tree)\.?$", None),
    ("not_member", "not be in is not",
     r"(?P<x>[A-Za-z]\w*) (?:will not be|is not|is never) (?:present )?in (?:the (?:list|array) )?"
     r"(?P<v>[A-Za-z]\w*)\.?$", None),
    ("exists", "least",
     r"at least one (?:element|index|integer|number|value|cell)? ?\w? ?(?:where|such that|with|in|of|is)? ?"
     r"(?P<v>(?P<x>[A-Za-z]\w*\[\w\]) ?(?:==|!=|<=|>=|<|>) ?-?\d+)", None),
    ("same_digits", "digits",
     r"(?P<x>[\w, ]{1,40}) (?:consists?|have|has|contains?) (?:of )?the same number of digits", None),
    ("no_overlap", "overlap disjoint",
     r"(?:no two|none of the) (?P<x>[^.;]{1,40}?) (?:will )?(?:overlap|intersect)|"
     r"(?P<y>[^.;]{1,60}?) (?:is|are|be)?\s*(?:pairwise |all )?"
     r"(?:non-? ?overlapping|disjoint|(?:do|will) not overlap)", None),
    ("no_overlap", "overlap disjoint",
     r"(?:array|list|set|collection) of (?:sorted |pairwise )?(?:non-? ?overlapping|disjoint) \w{1,20} (?P<x>\w{1,30})",
     None),
    ("few_letters", "unique distinct different",
     r"(?P<x>[^.;]{1,60}?)\b(?:no more than|at most) (?P<v>\d+) (?:unique|distinct|different) [\w ]{0,30}"
     r"(?:letters|characters)", None),
    ("repeats", "repeated duplicate",
     r"(?P<x>[^.;]{1,60}?)\bexactly (?P<v>one|two|three|\d+) (?:repeated|duplicated?) "
     r"(?:elements?|numbers?|integers?|values?)", None),
    ("times", "appear",
     r"^(?:each|every) (?:element|integer|number|value|letter|character)s?(?: (?:in|of) (?:the )?(?P<x>\w+))?"
     r"(?: will)? appears?(?: in (?P<y>\w+))?(?: exactly)? (?P<v>twice|(?:two|three|four) times)"
     r"(?:,? (?:except for|only) (?P<w>one|two) (?:elements?|integers?)(?: which| that)?(?: will)? "
     r"appears? (?:only |exactly )?once)?\.?$", None),
    ("majority", "majority dominant",
     r"majority element always exists in the array\.?$|^(?P<x>\w+) has exactly one dominant element\.?$", None),
    ("frequency", "frequency",
     r"frequency of each (?:element|integer|number) (?:in (?P<x>\w+) )?is in the range \[1, (?P<v>\d+)\]\.?$", None),
    ("at_least", "at least",
     r"^(?:there (?:is|are|will be) )?at least (?P<v>one|two|\d) (?!word|token|path|pair|valid|answer|solution)"
     r"[\w' ]{1,30}?(?: in (?:the )?(?P<x>\w+)| is (?:empty|occupied))\.?$|"
     r"^the (?P<y>\w+) contains at least (?P<w>one|two|\d) [\w ]{1,20}\.?$", None),
    ("some_word", "at least",
     r"^there (?:is|will be) at least (?:one|1) (?:word|token)(?: in (?P<x>\w+))?\.?$|"
     r"^(?P<y>\w+) contains at least one word\.?$", None),
    ("same_length", "length",
     r"^all (?:of )?(?:the )?(?P<x>[\w\[\] ]{1,60}?) (?:are|have) (?:of )?the same length\.?$|"
     r"^all (?P<y>\w+\[\w\])\.length are (?:equal|the same)\.?$", None),
    ("different_letters", "more than once",
     r"^no (?:letter|character|digit) (?:occurs|appears) more than once in (?:any (?:string|word) (?:of|in) )?"
     r"(?P<x>[\w\[\] ]{1,60})\.?$", None),
    ("mirrored", "palindrome",
     r"(?P<x>\w+) can (?:always )?be (?:converted|rearranged|transformed) (?:in)?to a palindrome"
     r"(?: using a finite number of moves)?\.?$", None),
    ("no_runs", "consecutive repeating",
     r"no consecutive repeating characters in (?:the given string|(?P<x>\w+))(?: except for '(?P<v>.)')?\.?$", None),
    ("mountain", "mountain", r"^(?P<x>\w+) is (?:guaranteed to be )?a mountain array\.?$", None),
    ("rotated", "rotated",
     r"^(?P<x>\w+) is (?:an ascending array that is possibly rotated|guaranteed to be rotated at some pivot|"
     r"sorted and rotated between 1 and n times)\.?$", None),
    ("rectangle", "rectangle",
     r"^(?P<x>[\w, ]{1,40}?) represents? (?:a )?valid rectangles?(?: with a non-zero area)?\.?$", None),
    ("no_pair", "two", r"(?:there are )?no two (?P<x>\w+) such that (?P<v>.*)", None),
    ("date", "date", r"(?P<x>[^.;]{0,80})\b(?:represents?|is|are|be|in)\b[^.;]{0,40}"
     r"(?:valid (?:gregorian )?(?:calendar )?dates?|calendar date|YYYY-MM-DD)(?P<v>[^;]{0,90})", None),
    ("time", "hh:mm", r"(?P<x>[^.;]{0,60}?)\b(?:is|are|will be|in)\b[^.;]{0,40}\"?HH:MM\"?", None),
]  # fmt: skip
_FACTS = [(name, hints.split(), re.compile(pattern, re.I), value) for name, hints, pattern, value in _TABLE]


def facts(sentence: str) -> Iterator[StatedFact]:
    sentence = sentence.translate(str.maketrans("‘’“”", "''\"\""))
    seen = set()
    low = sentence.lower()
    for name, hints, pattern, value in _FACTS:
        match = pattern.search(sentence) if any(hint in low for hint in hints) else None
        if not match:
            continue
        groups = match.groupdict()
        subjects = _subjects(groups.get("x") or groups.get("y") or groups.get("z") or "")
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
        elif name in ("few_letters", "repeats", "at_least", "frequency"):
            told = _NUMBERS.get(told) or int(told)
        elif name == "times":
            told = (_NUMBERS[told.split()[0]], _NUMBERS.get(groups["w"] or "", 0))
        elif name == "power":
            told = {"two": 2, "three": 3, "four": 4}.get(told) or int(told)
        if name == "distinct" and name in seen and not subjects:
            continue
        seen.add(name)
        yield StatedFact(name, subjects, told, sentence)


def _letters(literal: list[Any], told: str) -> bool:
    """Whether quoted characters are an alphabet of strings rather than whole values."""
    return all(isinstance(one, str) for one in literal) and bool(re.search(r"character|letter", told, re.I))


def _order(text: str) -> str:
    low = text.lower()
    down = bool(re.search(r"descending|(?<!non-)(?<!non)(?<!non )decreasing|non-? ?increasing", low))
    strictly = "strict" in low or re.search(r"(?<!non-)(?<!non)increasing|(?<!non-)(?<!non)decreasing", low)
    by = re.search(r"\b(?:by|order of) (?:their |its |the )?(\w+)", low)
    column = text[by.start(1) : by.end(1)] if by else ""
    return (
        f"{'strictly ' if strictly else ''}{'descending' if down else 'ascending'}{' by ' + column if column else ''}"
    )
