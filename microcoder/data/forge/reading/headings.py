"""The parts of a statement that speak of the input, in plain notation: no LaTeX, one sign for each comparison.

plain       LaTeX and typographic signs as plain text: `1 ≤ n ≤ 2*10^5`, `a_1, a_2, ..., a_n`
sections    the section of the input and the section of the constraints
sentences   prose in sentences, list items included
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_REWRITE: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    # every repetition is bounded, for statements can be hostile
    (re.compile(r"`{2,3}(\S{1,3}?)`?'{1,2}"), r"'\1'"),  # a letter in the quotes of LaTeX
    (re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}"), lambda found: "^" + found[0].translate(_SUPERSCRIPTS)),
    (re.compile(r"\\(?:displaystyle|left|right|big|Big|bigl|bigr|quad|qquad|limits)(?![a-zA-Z])"
r"|\$|[\u200b\u2060]"), ""),
    (re.compile(r"\\(?:d|t)?binom *\{([^{}]{1,20})\} *\{([^{}]{1,20})\}"), r"comb(\1, \2)"),
    (re.compile(r"\\(?:d|t)?frac *\{([^{}]{1,60})\} *\{([^{}]{1,60})\}"), r"((\1)/(\2))"),
    (re.compile(r"\\(?:text|mathrm|mathit|texttt|textrm|operatorname|mathbf|mathsf|mathtt"
r"|rm|tt|textbf|textit|t)\{([^{}]{0,80})\}"), r"\1"),
    (re.compile(r"\\(?:text)?color ?\{\w{1,20}\} ?\{([^{}]{0,200})\}"), r"\1"),
    (re.compile(r"\\(?:lbrace|\{)(?![a-z])"), "{"),
    (re.compile(r"\\(?:rbrace|\})(?![a-z])"), "}"),
    (re.compile(r"\^ ?\{([^{}]{1,40})\}"), lambda found: f"^{found[1]}" if found[1].isalnum() else f"^({found[1]})"),
    (re.compile(r"(?<=\w) ?_ ?(?=[\w{])"), "_"),
    (re.compile(r"_\{ ?(\w|\d{1,9}) ?\}"), r"_\1"),
    (re.compile(r"\\le(?:q|qslant|qq)?(?![a-z])|≤|⩽|≦|&le;|<=|=<"), " ≤ "),
    (re.compile(r"\\ge(?:q|qslant|qq)?(?![a-z])|≥|⩾|≧|&ge;|>="), " ≥ "),
    (re.compile(r"\\lt(?![a-z])|&lt;"), " < "),
    (re.compile(r"\\gt(?![a-z])|&gt;"), " > "),
    (re.compile(r"\\(?:ne|neq)(?![a-z])|≠|!="), " ≠ "),
    (re.compile(r"\\(?:vdots)(?![a-z])|[⋮︙]"), ":"),
    (re.compile(r"\\(?:ldots|dots|cdots|dotsc|dotsm|dotsb|hdots)(?![a-z])|…|⋯|\. \. \.|\.{3,6}"), " ... "),
    (re.compile(r" ?(?:\\(?:cdot|times|ast)(?![a-z])|[⋅·×∙∗]) ?"), "*"),
    (re.compile(r"\\in(?![a-z])"), " ∈ "),
    (re.compile(r"\\(?:lvert|rvert|vert|mid|\|)"), "|"),
    (re.compile(r"\\(?:,|;|!|:| )|[~\u00a0\u2009\u202f]"), " "),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\([{}_#%&$])"), r"\1"),
    (re.compile(r"\\([a-zA-Z]{1,20})"), r"\1"),
    (re.compile(r"−"), "-"),
    (re.compile(r"\*\*(?=\d)"), "^"),
    (re.compile(r"(?<=\d)[eE](?=\d{1,2}\b)"), "*10^"),
    (re.compile(r"(?<![\d.,^_])(\d{1,3})((?:[, ]\d{3}){1,6})(?![\d,]|[ ]?\.\d)"), lambda m: re.sub("[, ]", "", m[0])),
    (re.compile(r"[`*]{2}|`"), ""),
    (re.compile(r"[ \t]{2,400}"), " "),
]  # fmt: skip
_HEADING = (
    r"^[ \t#*=_~-]{0,12}(?:The )?(?:%s)(?: Format| Specification| Description"
    r"| Data| File)?[ \t]{0,4}[:：]?[ \t#*=_~-]{0,12}$"
)
_INPUT = re.compile(_HEADING % "Input|INPUT|Inputs", re.M | re.I)
_LIMITS = re.compile(_HEADING % r"Constraints?|Limits|Restrictions|Constraints on (?:the )?input", re.M | re.I)
_GROUPS = re.compile(_HEADING % r"Scoring|Points|Subtasks?|Grading", re.M | re.I)
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{(Input|Output)\}")
_OTHER = re.compile(
    _HEADING
    % (
        r"Outputs?|Sample(?:s)?(?: Input| Output)?(?: \d{1,2})?|Examples?(?: \d{1,2})?"
        r"|Notes?|Scoring|Points|Grading|Subtasks?|Explanation|Hints?|"
        r"Input(?:s)?|Constraints?|Interaction|Sample Input \d{1,2}|Partial Scores?|Limits|Tags|Time Limit.{0,40}"
    ),
    re.M | re.I,
)


def plain(text: str) -> str:
    """The text with formulas as plain text."""
    for pattern, by in _REWRITE:
        text = pattern.sub(by, text)
    return text


def sections(statement: str) -> tuple[str, str]:
    """(the section of the input, the section of the constraints), as written; "" for one that is missing.

    Where points are given for groups of tests, the constraints of the last group are constraints too: whatever a group
    allows is a valid input.
    """
    statement = _ENVIRONMENT.sub(
        lambda found: f"\n## {found[1]}\n" if found[0][1] == "b" else "\n## Notes\n", statement
    )
    return _section(_INPUT, statement), _section(_LIMITS, statement) + _last_group(_section(_GROUPS, statement))


def _section(heading: re.Pattern[str], statement: str) -> str:
    for found in heading.finditer(statement):
        rest = statement[found.end() :]
        if rest.lstrip().startswith("```"):  # the input of an example
            continue
        end = _OTHER.search(rest)
        return rest[: end.start()] if end else rest
    return ""


def _last_group(table: str) -> str:
    """The constraints of the last row of a table of groups, points and constraints, as an item of a list."""
    rows = [row for row in re.split(r"\\\\|\n", table) if len(re.findall(r"(?<!\\)&|\|", row)) >= 2]
    rows = [row for row in rows if "begin{" not in row and re.search(r"\w", row)]
    if len(rows) < 2 or not re.search("constraint|limit", rows[0], re.I):
        return ""
    cells = re.split(r"(?<!\\)&|\|(?= |$)", rows[-1].strip().strip("|"))
    said = cells[-1].replace("\\hline", "").strip()
    if re.search(r"^no (?:further|additional|other|extra)|^$|^(?:original|none)", said, re.I):
        return ""
    return f"\n- {said}"


_ENDS = re.compile(
    r"(?<=[.!?:;])\s+(?=[A-Z(\"'$]|[a-z]_?\w? is )|\n\s*\n|\n(?=[ \t]{0,8}[-*•] )|[;.]?\s{1,8}[*•] (?=\S)"
)
_ABBREVIATION = re.compile(r"\b(?:i\.e|e\.g|i\. e|resp|no|vs|etc)\.$")


def sentences(text: str) -> list[str]:
    """Prose in sentences. Items of lists are sentences of their own."""
    parts = [" ".join(part.split()).lstrip("-*• ") for part in _ENDS.split(text)]
    found: list[str] = []
    for part in filter(None, parts):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] += " " + part
        else:
            found.append(part)
    return found


_BETWEEN = re.compile(
    r"\b([A-Za-z](?:_\w|_\{[^{}]{1,6}\})?(?:(?:, | and |, and )[A-Za-z](?:_\w)?)*) (?:is"
    r"|are) (?:an? )?(?:\w+ )?integers? (?:between|from) (\S+) (?:and|to"
    r"|through) ([^\s,.]+)"
)
_MEMBER = re.compile(r"((?:[A-Za-z](?:_\w|_\{[^{}]{1,6}\})?(?:, )?)+) ?∈ ?\{ ?(-?\d+(?:, ?-?\d+)*) ?\}")
_OR_BETWEEN = re.compile(
    r"\b([A-Za-z](?:_\w|_\{[^{}]{1,6}\})?) is (?:either )?(-?\d+),? or (?:an? )?(?:\w+ )?integer between (\d+) and"
    r" ([^\s,.]+)"
)
_UNLIKE = re.compile(r"\(([^(),]{1,8}), ?([^(),]{1,8})\) ≠ \(([^(),]{1,8}), ?([^(),]{1,8})\)")
_NAMES = r"([A-Za-z](?:_\w)?(?:(?:, and |, | and )[A-Za-z](?:_\w)?(?!\w))+)(?!, ?\.\.\.)"
ALL_DIFFERENT = re.compile(
    rf"\b(?:distinct|different) (?:\w+ )?(?:integers|numbers) {_NAMES}|(?<!\w){_NAMES} are (?:all )?(?:pairwise )?"
    r"(?:distinct|different)\b"
)
_LENGTH = re.compile(
    r"\b([A-Za-z](?:_\w)?(?:(?:, and |, | and )[A-Za-z](?:_\w)?)*) (?:is|are) (?:an? )?(?:\w+ ){0,3}strings?[^.]{0,60}?"
    r" (?:(?:of |with |whose )?lengths?(?: is| are)? )?(?:between|from|at least) (\S+?)"
    r" (?:and|to) (?:at most )?([^\s,.]+)"
)


def _base(name: str) -> str:
    return name.partition("_")[0].strip()


def relating(sentence: str) -> list[str]:
    """The parts of a sentence that hold relations: what stands in brackets, the rest, and what it tells in words."""
    parts, rest, depth, start = [], "", 0, 0
    for n, letter in enumerate(sentence):
        depth += (letter == "(") - (letter == ")")
        if letter == "(" and depth == 1:
            rest, start = rest + sentence[start:n], n
        elif letter == ")" and depth == 0:
            inner = sentence[start + 1 : n]
            if re.search(r"[≤<≥>≠]", inner):
                parts.append(inner)
            else:
                rest += sentence[start : n + 1]
            start = n + 1
    rest += sentence[start:]
    rest = re.sub(r"^[^≤<≥>≠]{0,150}\b(?:that|and|where|with|satisfying) (?=-?\d[^≤<≥>≠]{0,12}[≤<])", "", rest)
    if (found := _UNLIKE.search(sentence)) and _base(found[1]) != _base(found[3]):
        return [*parts, f"1 ≤ |{found[1]} - ({found[3]})| + |{found[2]} - ({found[4]})|"]
    if re.search(r"[≤<≥>≠]|[\w}]\|? ?= ?[\w-]", rest):
        parts.append(re.split(r"[,;]? (?:for|where|such that)\b", rest)[0] if not parts else rest)
    if found := _OR_BETWEEN.search(sentence):
        if 0 < int(found[3]) - int(found[2]) <= 3:
            parts.append(f"{found[2]} ≤ {found[1]} ≤ {found[4]}")
            parts += [f"{found[1]} ≠ {n}" for n in range(int(found[2]) + 1, int(found[3]))]
    elif found := _BETWEEN.search(sentence):
        parts += [f"{found[2]} ≤ {name} ≤ {found[3]}" for name in re.split(r", and |, | and ", found[1])]
    if (found := _MEMBER.search(sentence)) and (numbers := sorted(map(int, re.findall(r"-?\d+", found[2])))):
        if numbers == list(range(numbers[0], numbers[-1] + 1)):
            parts += [f"{numbers[0]} ≤ {name} ≤ {numbers[-1]}" for name in re.split(r", ", found[1])]
    if found := ALL_DIFFERENT.search(sentence):
        parts += [f"{a} ≠ {b}" for a, b in combinations(re.split(r", and |, | and ", found[1] or found[2]), 2)]
    if found := _LENGTH.search(sentence):
        parts += [f"{found[2]} ≤ |{name}| ≤ {found[3]}" for name in re.split(r", and |, | and ", found[1])]
    return parts
