"""The display of a training: on a terminal a panel that is kept up to date, elsewhere a line for each step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live as Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..advise import Advice
from .shown import visible
from .terminal import Terminal

BLOCKS = "▁▂▃▄▅▆▇█"
SEEN = 40  # steps in a sparkline
WARNINGS = 3  # that stay in sight
CURVES = {"reward": "reward", "length": "length_mean", "D": "diversity"}
VALUES = (  # label, metric, format with a width: the columns line up from step to step
    ("  reward ", "reward", "5.2f", ""),
    ("  acc ", "accuracy", "4.2f", ""),
    ("  len ", "length_mean", "5.0f", ""),
    ("  D ", "diversity", "4.2f", ""),
    ("  gen ", "generation_s", "4.1f", "s"),
    (" judge ", "judging_s", "4.1f", "s"),
    (" upd ", "update_s", "4.1f", "s"),
)


class Live:
    """`step` after each step, `phase` while one goes on, `note` and `warn` for words that must not tear the panel."""

    def __init__(self, total_steps: int, title: str, console: Console | None = None) -> None:
        self.total, self.title, self.console = total_steps, title, console or Terminal()
        # lists that are replaced, never changed: the panel is drawn by a thread of its own
        self.metrics: list[dict[str, Any]] = []
        self.warnings: list[Advice] = []
        self.doing = ""
        self.panel = Panel(get_renderable=self.render, console=self.console) if _can_draw(self.console) else None

    def step(self, metrics: dict[str, Any]) -> None:
        self.metrics = [*self.metrics, metrics][-SEEN:]
        if self.panel is None:
            step = f"{metrics['step']:>{len(str(self.total))}}"
            self._print("  ".join(filter(None, (f"step {step}/{self.total}{values(metrics)}", self._eta()))))

    def phase(self, name: str) -> None:
        self.doing = name

    def note(self, text: str) -> None:
        self._print(text)

    def warn(self, advice: Advice) -> None:
        self.warnings = [*self.warnings, advice][-WARNINGS:]
        if self.panel is None:
            self._print(f"{advice.severity} at step {advice.step}: {advice.message}")
            self._print(f"  why: {advice.reason}\n  try: {advice.remedy}")

    def render(self) -> RenderableType:
        """Draw the panel: title, bar, values, curves, warnings. Only warnings may exceed the terminal's width."""
        metrics = self.metrics
        last = metrics[-1] if metrics else {"step": 0}
        bar = Table.grid(padding=(0, 2), expand=True)
        bar.add_column(no_wrap=True)
        bar.add_column(ratio=1)
        bar.add_column(no_wrap=True)
        state = "  ".join(filter(None, (self._eta(), self.doing)))
        bar.add_row(f"step {last['step']}/{self.total}", ProgressBar(self.total, last["step"]), state)
        lines: list[RenderableType] = [_cut(self.title, "bold"), bar, _cut(values(last).strip())]
        newest = metrics[-max(self.console.width - 8, 1) :]  # those that fit behind a label
        for label, name in CURVES.items():
            lines.append(_cut(f"{label:<8}{sparkline([line.get(name) for line in newest])}", "cyan"))
        for advice in self.warnings:
            style = "red" if advice.severity == "error" else "yellow"
            lines.append(Text(f"step {advice.step}: {advice.message}; {advice.reason}", style))
            lines.append(Text(f"  try: {advice.remedy}"))
        return Group(*lines)

    def __enter__(self) -> Live:
        if self.panel is None:
            self._print(self.title)
        else:
            self.panel.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.doing = ""
        if self.panel is not None:
            self.panel.stop()

    def _eta(self) -> str:
        metrics = self.metrics
        seconds = [line["step_s"] for line in metrics if _known(line.get("step_s"))]
        return f"eta {duration((self.total - metrics[-1]['step']) * mean(seconds))}" if seconds else ""

    def _print(self, text: str) -> None:
        if self.panel is not None:
            self.console.print(Text(text))
        else:
            encoding = getattr(self.console.file, "encoding", None) or "utf-8"  # a log in ASCII must end no training
            text = visible(text).encode(encoding, "backslashreplace").decode(encoding)
            print(text, file=self.console.file, flush=True)


def values(metrics: dict[str, Any]) -> str:
    """Format the values of one step as a line, with a dash for those not recorded."""
    parts = [label + _number(metrics.get(name), form) + unit for label, name, form, unit in VALUES]
    tested = f"  test {metrics['test_accuracy']:.3f}" if _known(metrics.get("test_accuracy")) else ""
    return "".join(parts) + tested


def sparkline(numbers: Sequence[float | None]) -> str:
    """One character a value, from the lowest block for the least to the highest for the most; a gap where unknown."""
    known = [number for number in numbers if number is not None and math.isfinite(number)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((n - low) * scale)] if n is not None and math.isfinite(n) else " " for n in numbers)


def duration(seconds: float) -> str:
    """Format seconds as 45s, 3m10s, 2h05m."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
    return f"{minutes // 60}h{minutes % 60:02}m"


def _can_draw(console: Console) -> bool:
    """Whether the output is a terminal that can draw the panel."""
    # isatty itself is asked: where FORCE_COLOR is set, rich takes a pipe for a terminal
    return console.file.isatty() and not console.is_dumb_terminal and not console.options.ascii_only


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _number(value: float | None, form: str) -> str:
    width = form.partition(".")[0]
    return f"{value:{form}}" if _known(value) else f"{'-':>{width}}"


def _cut(text: str, style: str = "") -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")
