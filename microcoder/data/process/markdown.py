"""Clean HTML as Markdown: selectolax parses it and takes out what is no text, markdownify writes it down."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from ..record import package

_NO_TEXT = "script,style,nav,noscript,iframe,svg,button,form,input,select,link,meta,head,footer,aside,[class=chrome]"
_TABLE = ["td", "th", "tr", "thead", "tbody", "tfoot", "table"]
_PRE = re.compile(r"(<pre>|</pre>)")
_SPACES = re.compile(r"[ \t]{2,}")
_BLANK = re.compile(r"\n(?: ?\n)+")
_PARAGRAPH = "\u2029"  # stands for a blank line on the way; repaired texts hold none


def markdown(html: str) -> str:
    """Blank lines stay paragraphs, so that text with a little HTML in it keeps its shape."""
    outside, pieces = True, []
    for piece in _PRE.split(html):
        outside = not piece.startswith("<pre>") and (outside or piece == "</pre>")
        pieces.append(_BLANK.sub(f"\n{_PARAGRAPH}\n", _SPACES.sub(" ", piece)) if outside else piece)
    tree = package("selectolax.lexbor").LexborHTMLParser("".join(pieces))
    for node in tree.css(_NO_TEXT):
        node.decompose()
    for table in tree.css("table"):
        if table.css_first("pre") is not None:  # samples side by side: a cell of Markdown has no lines
            for cell in table.css("td, th"):
                cell.insert_after(_PARAGRAPH)
            table.unwrap_tags(_TABLE)
    body = tree.body
    if body is None:
        return ""
    text = _converter()(**_STYLE).convert(body.html)  # with its tag: BeautifulSoup warns of bare text
    return "\n\n".join(part.strip("\n") for part in text.split(_PARAGRAPH) if part.strip())


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
    """markdownify's converter with the habits of problem statements."""
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
            return str(super().convert_div(el, text, parent_tags)) or "\n\n"  # the words around it stay apart

        convert_p = convert_div

        def convert_pre(self, el: Any, text: str, parent_tags: set[str]) -> str:
            fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`{3,}", text))])
            return f"\n\n{fence}\n{text.strip(chr(10))}\n{fence}\n\n" if text.strip() else ""

        def convert_td(self, el: Any, text: str, parent_tags: set[str]) -> str:
            return str(super().convert_td(el, text.replace(_PARAGRAPH, " "), parent_tags))

        convert_th = convert_td

    return Converter


def _script(mark: str, text: str) -> str:
    bare = text.strip()
    return "" if not bare else mark + bare if bare.isalnum() else f"{mark}{{{bare}}}"
