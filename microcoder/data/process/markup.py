"""HTML to Markdown, where there really is HTML; entities decoded.

`vector<int>`, `a<b` and `<name>` are no HTML: a tag counts if HTML has its name and if it is closed somewhere, has
attributes, or is one that nobody writes as a placeholder (`<br>`, `<div>`). A problem about tags or entities ("the
entity is &quot;") is left alone, and so are fenced code and samples, unless the sample is itself in HTML.

Drops: broken_text (more tags than a statement can have, or nested too deeply).
"""

from __future__ import annotations

import html
import re
from itertools import groupby

from ..record import Dropped, Record
from .markdown import markdown
from .samples import Part, blocks, inline, on_prose

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,11})((?:[\s/][^<>]{0,2000})?)>")
_ATTRIBUTE = re.compile(r"""\b(href|src|alt|class|id|style)=("[^"]{0,1000}"|'[^']{0,1000}'|[^\s"'<>]{1,1000})""", re.I)
_ENTITY = re.compile(r"&(?:amp;){0,3}(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_AMPERSAND = re.compile(r"&(?!#?[A-Za-z0-9]{1,31};)")
_DECLARATION = re.compile(r"<[!?][A-Za-z\[][^<>]{0,2000}>")
_ABOUT = re.compile(
    r"\b(?:HTML|XML|CDATA|entity|entities|markup|(?:start|end|opening|closing|closed|bold|open)[ -]tags?)\b", re.I
)
_CHROME = re.compile(
    r"\b(?:nav|navbar|navigation|menu|sidebar|breadcrumbs?|footer|share|social|adverts?|ads|cookie|login)\b"
    r"|display: ?none", re.I,
)  # fmt: skip
_UNMISTAKABLE = frozenset("br hr div script style iframe".split())
_BLOCKS = frozenset("p br hr div ul ol li table thead tbody tr td th center blockquote h1 h2 h3 h4 h5 h6 pre".split())
_KNOWN = _UNMISTAKABLE | _BLOCKS | frozenset(
    "a abbr article aside b big body button caption cite code col colgroup dd del details dl dt em figcaption figure"
    " font footer form head header html i img input ins kbd label link main meta nav nobr noscript object option q s samp"
    " section select small span strike strong sub summary sup svg tfoot title tt u var".split()
)  # fmt: skip
_MOST_TAGS = 2_000


def convert(record: Record) -> Record:
    """Title and statement."""
    problem = record.problem
    title, statement = _decoded(problem.title), to_markdown(problem.statement)
    if (title, statement) != (problem.title, problem.statement):
        problem.title, problem.statement = title, statement
        record.did("process: html to markdown")
    return record


def to_markdown(text: str) -> str:
    if "<" not in text and "&" not in text:
        return text
    names = html_names(text)
    if _ABOUT.search(text) and not names & {"p", "br", "pre", "ul"}:
        return text
    if not names:
        return on_prose(text, _outside_code) if _ENTITY.search(text) else text

    def is_markup(part: Part) -> bool:
        return part.kind == "prose" or (part.kind == "sample" and ("pre" in names or bool(html_names(part.text))))

    parts = [(markup, "".join(part.text for part in group)) for markup, group in groupby(blocks(text), is_markup)]
    return "".join(_converted(part, names) if markup else part for markup, part in parts)


def html_names(text: str) -> set[str]:
    """The names of the tags that are HTML in this text."""
    opened, names, count = set(), set(), 0
    for match in _TAG.finditer(text):
        name = match[2].lower()
        if name not in _KNOWN:
            continue
        count += not match[1]
        opened.add(name)
        if match[1] or name in _UNMISTAKABLE or _ATTRIBUTE.search(match[3]):
            names.add(name)
    if count > _MOST_TAGS:
        raise Dropped("broken_text", f"{count} HTML tags")
    return names | (opened & _BLOCKS if names & _BLOCKS else set())


def _converted(text: str, names: set[str]) -> str:
    bare = text.strip()
    if not bare:
        return text
    before, _, after = text.partition(bare)
    try:
        converted = markdown(_well_formed(bare, names))
    except RecursionError:
        raise Dropped("broken_text", "HTML tags nested too deeply") from None
    return before + on_prose(converted, _tags_as_code, within=True).strip() + after


def _well_formed(text: str, names: set[str]) -> str:
    """The same with nothing but clean tags: what is no HTML is escaped, attributes are gone that nobody needs.

    Without attributes equal tags stay equal, and a parser need not repeat thousands of them in each paragraph.
    """
    out = []
    for part in inline(_DECLARATION.sub("", _without_comments(text))):
        if part.kind == "code":
            out.append(html.escape(part.text, quote=False))
            continue
        at = 0
        for match in _TAG.finditer(part.text):
            if match[2].lower() in names:
                out += [_escaped(part.text[at : match.start()]), _clean(match)]
                at = match.end()
        out.append(_escaped(part.text[at:]))
    return "".join(out)


def _without_comments(text: str) -> str:
    first, *rest = text.split("<!--")
    kept = [first]
    for piece in rest:
        _, end, after = piece.partition("-->")
        kept.append(after if end else f"<!--{piece}")
    return "".join(kept)


def _clean(match: re.Match[str]) -> str:
    name = match[2].lower()
    if match[1]:
        return f"</{name}>"
    given = {key.lower(): value.strip("\"'") for key, value in _ATTRIBUTE.findall(match[3])}
    chrome = name in ("div", "ul", "span", "section") and any(map(_CHROME.search, given.values()))
    kept = {"class": "chrome"} if chrome else {}
    kept |= {key: given[key] for key in {"a": ["href"], "img": ["src", "alt"]}.get(name, []) if key in given}
    attributes = "".join(f' {key}="{html.escape(html.unescape(value))}"' for key, value in kept.items())
    return f"<{name}{attributes}>"


def _escaped(text: str) -> str:
    return _AMPERSAND.sub("&amp;", text).replace("<", "&lt;")


def _outside_code(text: str) -> str:
    return "".join(part.text if part.kind == "code" else _decoded(part.text) for part in inline(text))


def _decoded(text: str) -> str:
    """Entities as characters; `&amp;lt;` was escaped twice, and an unknown `&name;` is none."""
    return _ENTITY.sub(lambda match: html.unescape(f"&{match[1]};"), text)


def _tags_as_code(text: str) -> str:
    """A tag that was escaped in HTML is meant to be read: in backticks nobody takes it for one again."""
    return _TAG.sub(lambda match: f"`{match.group()}`" if match[2].lower() in _KNOWN else match.group(), text)
