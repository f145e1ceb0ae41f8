"""Before and after, as a table."""

from __future__ import annotations

from typing import Any

from rich.table import Table

ROWS = (
    ("solved at least once", "pass_at_k", "{:.1%}"),
    ("tokens in a response", "length", "{:.0f}"),
    ("truncated", "truncated_share", "{:.1%}"),
    ("diversity D", "diversity", "{:.2f}"),
)


def render(summary: dict[str, Any]) -> Table | str:
    before, after = summary["before"], summary["after"]
    if before is None or after is None:
        return "no evaluation before and after: the settings have no test problems"
    table = Table(title=f"{summary['model']} on {after['problems']} test problems, mean of {after['tries']} tries")
    table.add_column("", no_wrap=True)
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    was, now = before["accuracy"], after["accuracy"]
    table.add_row("accuracy", _share(was), _share(now), _change(was, now))
    table.add_row("  its 95% interval", _interval(before), _interval(after), "")
    for level, part in after["by_difficulty"].items():
        was = before["by_difficulty"].get(level, {}).get("accuracy")
        table.add_row(f"  difficulty {level}", _share(was), _share(part["accuracy"]), _change(was, part["accuracy"]))
    if "unseen_accuracy" in after:
        was, now = before["unseen_accuracy"], after["unseen_accuracy"]
        table.add_row("  unseen depths", _share(was), _share(now), _change(was, now))
    for label, name, form in ROWS:
        if before.get(name) is not None and after.get(name) is not None:
            table.add_row(label, form.format(before[name]), form.format(after[name]), "")
    return table


def _interval(side: dict[str, Any]) -> str:
    low, high = side["accuracy_low"], side["accuracy_high"]
    return "" if low is None else f"{low:.1%} to {high:.1%}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _change(before: float | None, after: float | None) -> str:
    return "" if before is None or after is None else f"{100 * (after - before):+.1f} points"
