"""A folder of studies -> report.md with its figures, and report.json; the same bytes for the same runs."""

from __future__ import annotations

import json
from pathlib import Path

from ...runs.disk import write_whole, writing
from ..strict import StudyError
from .drawing import draw_all
from .gathering import gather
from .page import page
from .records import scale_record
from .results import Decided, decide_scale


def write_report(out: str | Path, to: str | Path | None = None, figures: bool = True) -> tuple[list[Decided], Path]:
    """Decide, draw and write. `to` is a page elsewhere than out/report.md; its figures lie beside it in a folder.

    Returns what was decided at each scale, and where the page is.
    """
    out = Path(out)
    path = Path(to) if to else out / "report.md"
    if path.suffix != ".md":
        raise StudyError(f"the report is Markdown, and {path.name!r} does not end in .md; name it {path.name}.md")
    scales = [decide_scale(scale) for scale in gather(out)]
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    drawn = draw_all(scales, path.with_suffix("")) if figures else {}
    write_whole(path, page(scales, drawn, out.resolve().name).encode())
    found = {"scales": {each.name: scale_record(each) for each in scales}}
    write_whole(out / "report.json", json.dumps(found, indent=1).encode() + b"\n")
    return scales, path
