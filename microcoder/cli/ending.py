"""Before and after, as a table."""

from __future__ import annotations

from typing import Any

from rich.table import Table

ROWS = (
    ("tests passed at least once", "pass_at_k", "{:.1%}"),
    ("response length (tokens)", "length", "{:.0f}"),
    ("truncated", "truncated_share", "{:.1%}"),
    ("diversity D", "diversity", "{:.2f}"),
)


def render(summary: dict[str, Any]) -> Table | str:
    before, after = summary["before"], summary["after"]
    if before is None or after is None:
        return "no evaluation before and after: the settings have no test problems"
    table = Table(title=f"{summary['model']} on {after['problems']} test problems, mean of {after['tries']} tries")
    for name, side in (("", "left"), ("before", "right"), ("after", "right"), ("change", "right")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    table.add_row("accuracy", _accuracy(before), _accuracy(after), _change(before["accuracy"], after["accuracy"]))
    for level, part in after["by_difficulty"].items():
        was = before["by_difficulty"].get(level, {}).get("accuracy")
        table.add_row(f"  difficulty {level}", _share(was), _share(part["accuracy"]), _change(was, part["accuracy"]))
    if "unseen_accuracy" in after:
        was, now = before["unseen_accuracy"], after["unseen_accuracy"]
        table.add_row("  depths unseen in pretraining", _share(was), _share(now), _change(was, now))
    for label, name, form in ROWS:
        if before.get(name) is not None and after.get(name) is not None:
            table.add_row(label, form.format(before[name]), form.format(after[name]), "")
    return table


def _accuracy(side: dict[str, Any]) -> str:
    if side["accuracy_low"] is None:
        return _share(side["accuracy"])
    return f"{side['accuracy']:.1%} ({side['accuracy_low']:.1%} to {side['accuracy_high']:.1%})"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _change(before: float | None, after: float | None) -> str:
    return "" if before is None or after is None else f"{100 * (after - before):+.1f} points"
