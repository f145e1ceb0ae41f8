"""The end of a judging: counted as verdicts come in, then shown as a table or as JSON."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..schema import ACCEPTED, VERDICTS, Verdict
from .shown import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

SLOWEST = 3


@dataclass(slots=True)
class Tally:
    """Count verdicts: those of this run, and those that an earlier run left in the output."""

    judged: int = 0
    resumed: int = 0
    unreadable: int = 0
    inside: int = 0
    cpu_s: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    strategies: Counter[str] = field(default_factory=Counter)
    slowest: list[tuple[float, str]] = field(default_factory=list)  # a heap of the few largest

    def add(self, verdict: Verdict, resumed: bool = False) -> None:
        self.resumed += resumed
        self.judged += not resumed
        self.inside += verdict.inside
        self.cpu_s += verdict.cpu_s
        self.verdicts[verdict.verdict] += 1
        if verdict.verdict == ACCEPTED and verdict.strategy:
            self.strategies[verdict.strategy] += 1
        entry = (verdict.cpu_s, verdict.id)
        if len(self.slowest) < SLOWEST:
            heapq.heappush(self.slowest, entry)
        else:
            heapq.heappushpop(self.slowest, entry)

    def summary(self, wall_s: float, **about: Any) -> dict[str, Any]:
        """Everything that is shown; `about` holds what the run knows of itself: sandbox, workers, policy, output."""
        return {
            "programs": self.judged + self.resumed,
            "verdicts": {name: self.verdicts[name] for name in VERDICTS if self.verdicts[name]},
            "unreadable": self.unreadable,
            "judged": self.judged,
            "resumed": self.resumed,
            "wall_s": round(wall_s, 3),
            "programs_per_s": round(self.judged / wall_s, 2) if wall_s > 0 else 0.0,
            "cpu_s": round(self.cpu_s, 3),
            "slowest": [{"id": ident, "cpu_s": round(cpu, 4)} for cpu, ident in sorted(self.slowest, reverse=True)],
            "strategies": dict(self.strategies.most_common()),
            "inside": self.inside,
            **about,
        }


def render(summary: dict[str, Any]) -> RenderableType:
    """Return the summary as a rich table: verdicts first, then speed and settings."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    total = summary["programs"]
    verdicts = Table("verdict", box=box.SIMPLE_HEAD)
    verdicts.add_column("programs", justify="right")
    verdicts.add_column("share", justify="right")
    for name, count in summary["verdicts"].items():
        style = {ACCEPTED: "green", "internal_error": "red"}.get(name)
        verdicts.add_row(name, str(count), f"{100 * count / total:.1f}%", style=style)
    verdicts.add_section()
    verdicts.add_row("all", str(total), "", style="bold")
    if summary["unreadable"]:
        verdicts.add_row("unreadable", str(summary["unreadable"]), "", style="red")

    facts = Table(box=None, show_header=False, padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in _facts(summary):
        facts.add_row(name, Text(text))  # Text: an id such as [x] is not markup
    return Group(verdicts, facts)


def _facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    resumed = f"; {summary['resumed']} were judged before" if summary["resumed"] else ""
    inside = " (a test ran in the program's own process: a weaker promise)" if summary["inside"] else ""
    return [
        (
            "speed",
            f"{summary['programs_per_s']} programs/s ({summary['judged']} in {summary['wall_s']:.1f} s, "
            f"{summary['workers']} workers){resumed}",
        ),
        ("cpu", f"{summary['cpu_s']:.1f} s in the programs"),
        ("slowest", ", ".join(f"{visible(s['id'])} ({s['cpu_s']:.2f} s)" for s in summary["slowest"]) or "-"),
        ("accepted by", ", ".join(f"{name} {count}" for name, count in summary["strategies"].items()) or "-"),
        ("judged inside", f"{summary['inside']}{inside}"),
        ("policy", summary["policy"]),
        ("sandbox", summary["sandbox"]),
    ]
