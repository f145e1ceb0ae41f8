"""Convert HTML to Markdown, where a text really has HTML, and decode entities.

`vector<int>`, `a<b` and `<name>` are no HTML. A tag counts if HTML has its name and if it is closed somewhere, has
attributes, or is never used as a placeholder (`<br>`, `<div>`). Fenced code, and problems about tags or entities ("the
entity is &quot;"), are not changed. In samples only tags and entities are removed, and not even these if the tests
contain them: then they are data.

Drops: broken_text (more tags than a statement can have, or nested too deeply).
"""

from __future__ import annotations

import html
import re
from collections import Counter
from functools import cache
from itertools import groupby
from typing import Any

from ..record import Dropped, Record, package
from .samples import blocks, inline, on_prose

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,11})((?:[\s/][^<>]{0,2000})?)>")
_PARAGRAPH = re.compile(r"^<p>(?=[A-Z])", re.M)
_ATTRIBUTE = re.compile(r"""\b(href|src|alt|class|id|style)=("[^"]{0,1000}"|'[^']{0,1000}'|[^\s"'<>]{1,1000})""", re.I)
_ENTITY = re.compile(r"&(?:amp;){0,3}(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_MARKUP = re.compile(r"</?[a-z]{1,12}>|&(?:#\d{2,5}|[a-z]{2,8});", re.I)  # in tests: data, so in samples too
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
    " font footer form head header html i img input ins kbd label link main meta nav nobr noscript object option q s"
    " samp section select small span strike strong sub summary sup svg tfoot title tt u var".split()
)  # fmt: skip
_MOST_TAGS = 2_000


def convert(record: Record) -> Record:
    """Convert title and statement."""
    problem = record.problem
    title, statement = problem.title, problem.statement
    if "&" in title:
        title = _decoded(title)
    if "<" in statement or "&" in statement:
        data = any(_MARKUP.search(text) for test in problem.tests for text in (test.input, test.output))
        statement = to_markdown(statement, samples=not data)
    if (title, statement) != (problem.title, problem.statement):
        problem.title, problem.statement = title, statement
        record.did("process: html to markdown")
    return record


def to_markdown(text: str, samples: bool = True) -> str:
    """Convert HTML to Markdown. `samples`: clean samples too; False if the tests contain tags or entities as data."""
    names = html_names(text)
    if _ABOUT.search(text) and not names & {"p", "br", "pre", "ul"}:
        return text
    groups = groupby(blocks(text), lambda part: "prose" if part.kind == "sample" and "pre" in names else part.kind)
    out = []
    for kind, parts in groups:
        part = "".join(part.text for part in parts)
        if kind == "prose":
            part = _converted(part, names) if names else _outside_code(part)
        elif kind == "sample" and samples:
            part = _decoded(_TAG.sub(lambda match: "" if match[2].lower() in names else match.group(), part))
        out.append(part)
    return "".join(out)


def html_names(text: str) -> set[str]:
    """Return the names of the tags that are HTML in this text."""
    opened: Counter[str] = Counter()
    names = {"p"} if _PARAGRAPH.search(text) else set()
    for match in _TAG.finditer(text):
        name = match[2].lower()
        if name in _KNOWN:
            opened[name] += not match[1]
            if match[1] or name in _UNMISTAKABLE or _ATTRIBUTE.search(match[3]):
                names.add(name)
    if opened.total() > _MOST_TAGS:
        raise Dropped("broken_text", f"{opened.total()} HTML tags")
    if names:  # then the others need no closing tag either
        names |= opened.keys() & (_BLOCKS if names & _BLOCKS else {"p"})
    return names


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
    """Return the text with clean tags only: escape what is no HTML, remove attributes that are not needed.

    Without attributes equal tags stay equal, so a parser does not repeat thousands of them in each paragraph.
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
    """Decode entities; `&amp;lt;` was escaped twice, and an unknown `&name;` stays."""
    return _ENTITY.sub(lambda match: html.unescape(f"&{match[1]};"), text)


def _tags_as_code(text: str) -> str:
    """Put escaped tags into backticks: they are text, and must not count as HTML in the next round."""
    return _TAG.sub(lambda match: f"`{match.group()}`" if match[2].lower() in _KNOWN else match.group(), text)


# --- clean HTML to Markdown: selectolax parses it and removes what is no text, markdownify writes Markdown

_NO_TEXT = "script,style,nav,noscript,iframe,svg,button,form,input,select,link,meta,head,footer,aside,[class=chrome]"
_TABLE = ["td", "th", "tr", "thead", "tbody", "tfoot", "table"]
_PRE = re.compile(r"(<pre>|</pre>)")
_SPACES = re.compile(r"[ \t]{2,}")
_BLANK = re.compile(r"\n(?: ?\n)+")
_BREAK = "\u2029"  # replaces a blank line during conversion; repaired texts do not contain it


def markdown(html: str) -> str:
    """Convert HTML. Blank lines stay paragraphs, so that text with a little HTML in it keeps its shape."""
    outside, pieces = True, []
    for piece in _PRE.split(html):
        outside = not piece.startswith("<pre>") and (outside or piece == "</pre>")
        pieces.append(_BLANK.sub(f"\n{_BREAK}\n", _SPACES.sub(" ", piece)) if outside else piece)
    tree = package("selectolax.lexbor").LexborHTMLParser("".join(pieces))
    for node in tree.css(_NO_TEXT):
        node.decompose()
    for table in tree.css("table"):
        if table.css_first("pre") is not None:  # samples side by side: a cell in Markdown cannot hold several lines
            for cell in table.css("td, th"):
                cell.insert_after(_BREAK)
            table.unwrap_tags(_TABLE)
    body = tree.body
    if body is None:
        return ""
    text = _converter()(**_STYLE).convert(body.html)  # with its tag: BeautifulSoup warns of bare text
    return "\n\n".join(part.strip("\n") for part in text.split(_BREAK) if part.strip())


_STYLE: dict[str, Any] = {
    "heading_style": "atx",
    "bullets": "-",
    "autolinks": False,
    "escape_asterisks": False,
    "escape_underscores": False,
    "keep_inline_images_in": ["td", "th", "h1", "h2", "h3", "h4"],
    "table_infer_header": True,
}


@cache
def _converter() -> Any:
    """Return markdownify's converter, adapted to problem statements."""
    base = package("markdownify").MarkdownConverter

    class Converter(base):  # type: ignore[misc, valid-type]
        def convert_sub(self, el: Any, text: str, parent_tags: set[str]) -> str:
            return _script("_", text)

        def convert_sup(self, el: Any, text: str, parent_tags: set[str]) -> str:
            return _script("^", text)

        def convert_var(self, el: Any, text: str, parent_tags: set[str]) -> str:
            bare = text.strip()
            return f"${bare}$" if bare and "$" not in bare and "_noformat" not in parent_tags else text

        def convert_br(self, el: Any, text: str, parent_tags: set[str]) -> str:
            return " " if "_inline" in parent_tags else "\n"

        def convert_div(self, el: Any, text: str, parent_tags: set[str]) -> str:
            if "pre" in parent_tags:
                return f"{text}\n"
            return str(super().convert_div(el, text, parent_tags)) or "\n\n"  # keeps the words around it apart

        convert_p = convert_div

        def convert_pre(self, el: Any, text: str, parent_tags: set[str]) -> str:
            fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`{3,}", text))])
            return f"\n\n{fence}\n{text.strip(chr(10))}\n{fence}\n\n" if text.strip() else ""

        def convert_td(self, el: Any, text: str, parent_tags: set[str]) -> str:
            return str(super().convert_td(el, text.replace(_BREAK, " "), parent_tags))

        convert_th = convert_td

    return Converter


def _script(mark: str, text: str) -> str:
    bare = text.strip()
    return "" if not bare else mark + bare if bare.isalnum() else f"{mark}{{{bare}}}"
