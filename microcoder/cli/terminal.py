"""Tables, colours and progress, with nothing in them but ours: no markup in what others wrote, and no escape codes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.segment import Segment
from rich.text import Text

from .shown import STEERING, echo, visible

EVERY_S = 10.0  # between two lines where there is no terminal


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


class Progress:
    """Progress on stderr: a bar on a terminal, now and then a line where there is none.

    `step` for each record that is done with; `say` for a message that must not tear the bar."""

    def __init__(self, total: int, unit: str = "programs") -> None:
        self.total, self.unit, self.done, self.judged = total, unit, 0, 0
        self.started = self.printed = time.monotonic()
        console = Terminal(stderr=True)
        self.bar: Bar | None = None
        if console.is_terminal:
            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
            self.bar = Bar(*columns, console=console, transient=True)
            self.task = self.bar.add_task("", total=total)

    def step(self, judged: bool) -> None:
        self.done += 1
        self.judged += judged
        if self.bar is not None:
            self.bar.update(self.task, completed=self.done, description=self.rate())
        elif time.monotonic() - self.printed > EVERY_S:
            self.printed = time.monotonic()
            print(f"{self.done}/{self.total}, {self.rate()}", file=sys.stderr, flush=True)

    def rate(self) -> str:
        speed = self.judged / max(time.monotonic() - self.started, 1e-9)
        if not speed:
            return ""
        left = int(max(self.total - self.done, 0) / speed)
        clock = f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02}"
        return f"{speed:.1f} {self.unit}/s, {clock} left"

    def say(self, text: str) -> None:
        if self.bar is not None:
            self.bar.console.print(Text(text), soft_wrap=True)
        else:
            echo(text, err=True)

    def __enter__(self) -> Progress:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
