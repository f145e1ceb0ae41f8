"""Tables and colours, with nothing in them but ours: no markup in what others wrote, and no escape codes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from .shown import STEERING, visible


class Terminal(Console):
    """rich's Console. The colours are made of segments' styles, so their text can be made visible as it is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)  # before it is laid out

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or not STEERING.search(segment.text):
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)
