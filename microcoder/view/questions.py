"""Every question that the pages ask, as a function that returns a value for JSON.

The server gives these answers as they are asked for; an exported file holds some of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..runs.disk import opened
from ..runs.plot import STAGED
from . import find
from .follow import METRICS, PANELS, Columns, Followers, Remarks, thin
from .groups import bench_group, bench_limits, bench_scores, read_step, report, steps
from .library import Entry, Library, Missing, stamps
from .state import read_config, read_json, state, words

WATCHED = (  # files whose change makes an answer about a folder stale
    "run.json", "config.toml", "metrics.jsonl", "rollouts", "rollouts/index.jsonl", "rollouts/groups.jsonl",
    "scores.json", "verdicts.jsonl", "report.json", "report.md",
)  # fmt: skip
CONFIG = 1 << 18  # bytes of config.toml that are shown
LINE = 160  # characters of a statement in a list


class Questions:
    """The questions about one library, a method each."""

    def __init__(self, library: Library) -> None:
        self.library, self.columns, self.advice = library, Followers(Columns), Followers(_remarks)

    def stamp(self, *names: str) -> object:
        """A value that changes whenever an answer about these folders may change."""
        folders = [self.library.get(name) for name in names]
        behind = [self.behind(name) for name in names]
        return behind, [stamps([folder.path / file for file in WATCHED]) for folder in folders]

    def behind(self, name: str) -> tuple[int, ...]:
        """How far a run's metrics were read for curves and for remarks, where that is not to their end; else ()."""
        file = self.library.get(name).path / "metrics.jsonl"
        return tuple(filter(None, (self.columns.behind(file), self.advice.behind(file))))

    def listing(self) -> dict[str, Any]:
        listing = self.library.listing()
        return {
            "version": __version__,
            "root": self.library.root.name,
            "runs": [state(folder) for folder in listing.of("run")],
            "bench": [_bench_line(folder) for folder in listing.of("bench")],
            "studies": [{"name": folder.name} for folder in listing.of("study")],
            "refused": listing.refused,
            "complete": listing.complete,
            "panels": PANELS,
        }

    def run(self, run: str) -> dict[str, Any]:
        """Everything about a run but its curves and rollouts."""
        folder = self.library.get(run, "run")
        record = state(folder)
        try:
            record["info"] = read_json(folder.file("run.json"))
        except ValueError:  # `state` has named it
            record["info"] = {}
        record["config"] = _text(folder.file("config.toml"), CONFIG)
        return record

    def metrics(self, run: str, first: float | None = None, last: float | None = None) -> dict[str, Any]:
        """The curves of all panels, thinned; of the steps from `first` to `last` where these are given."""
        columns = self.columns.get(self.library.get(run, "run").file("metrics.jsonl"))
        low, high = -np.inf if first is None else first, np.inf if last is None else last
        known = {name: columns.series(name) for name in METRICS if name in columns.columns}
        found = {}
        for name, (x, y) in (known | columns.by_difficulty()).items():
            inside = (x >= low) & (x <= high)
            found[name] = thin(x[inside], y[inside])
        steps = np.array(columns.steps)
        return {
            "steps": len(steps),
            "last": float(steps.max()) if len(steps) else None,
            "broken": columns.broken,
            "behind": columns.behind,  # the rest of a very long file comes with the next answers
            "series": {name: curve for name, curve in found.items() if curve["x"]},
            "stages": _stages(columns),
        }

    def remarks(self, run: str) -> list[dict[str, Any]]:
        return self.advice.get(self.library.get(run, "run").file("metrics.jsonl")).found

    def steps(self, run: str) -> dict[str, Any]:
        """The steps with rollouts, those with the answers of an evaluation, and whether more may come."""
        folder = self.library.get(run, "run")
        running = state(folder)["status"] in ("running", "silent", "unknown")
        return {"train": steps(folder), "test": steps(folder, test=True), "running": running}

    def step(self, run: str, step: int, test: bool = False) -> dict[str, Any]:
        """The groups of a step, or of the evaluation after it, each with the first line of its statement."""
        folder = self.library.get(run, "run")
        found = read_step(folder, step, test)
        groups = [
            {**group._asdict(), "title": _line(found.statements.get(group.problem, ""))} for group in found.groups()
        ]
        return {"step": step, "groups": groups, "rows": len(found.rows), "fault": found.fault}

    def group(self, of: str, step: int, problem: str, test: bool = False) -> dict[str, Any]:
        """The samples of one problem at one step, with their prompt; of an evaluation, at one limit."""
        folder = self.library.get(of, "run", "bench")
        asked = {"step": step, "problem": problem}
        if folder.kind == "bench":
            return {**asked, "statement": "", "prompt": "", "rows": bench_group(folder, step, problem)}
        found = read_step(folder, step, test)
        rows = [row for row in found.rows if row["problem"] == problem]
        if not rows:
            raise Missing(f"no rollout of step {step} is for problem {problem!r}")
        texts = {"statement": found.statements.get(problem, ""), "prompt": found.prompts.get(problem, "")}
        return {**asked, **texts, "rows": rows}

    def visits(self, run: str, problem: str) -> list[list[int]]:
        return find.visits_of(self.library.get(run, "run"), problem)

    def find(
        self, run: str, kind: str, q: str = "", before: int | None = None, only: set[int] | None = None
    ) -> dict[str, Any]:
        return find.find(self.library.get(run, "run"), kind, q, before, only)

    def compare(self, a: str, b: str) -> dict[str, Any]:
        return find.compare(self.library.get(a, "run", "bench"), self.library.get(b, "run", "bench"))

    def bench(self, bench_name: str) -> dict[str, Any]:
        folder = self.library.get(bench_name, "bench")
        limits = [
            {"limit": limit, "problems": [[group.problem, group.accepted, group.rows] for group in groups]}
            for limit, groups in bench_limits(folder)
        ]
        return {**_bench_line(folder), "report": report(folder), "limits": limits}

    def study(self, study: str) -> dict[str, Any]:
        folder = self.library.get(study, "study")
        return {"name": folder.name, "report": report(folder)}


def _remarks(path: Path) -> Remarks:
    def settings() -> dict[str, Any]:
        try:
            return read_config(path.with_name("config.toml"))
        except ValueError:
            return {}  # some rules are mute then

    return Remarks(path, settings)


def _bench_line(folder: Entry) -> dict[str, Any]:
    try:
        found = bench_scores(folder)
    except Missing as error:  # a link that leads out
        found = {"fault": str(error)}
    line = {name: words(found.get(name)) for name in ("model", "suite", "tries", "temperature", "problems", "fault")}
    scores = found.get("scores")
    return {"name": folder.name, **line, "scores": scores if isinstance(scores, dict) else None}


def _stages(columns: Columns) -> list[dict[str, Any]]:
    """Describe the changes of temperature and response limit."""
    words: dict[float, list[str]] = {}
    for name, label in STAGED.items():
        x, y = columns.series(name)
        known = np.isfinite(y)
        x, y = x[known], y[known]
        for at in np.flatnonzero(np.diff(y)) + 1:
            words.setdefault(float(x[at]), []).append(f"{label} {y[at]:g}")
    return [{"step": step, "words": ", ".join(parts)} for step, parts in sorted(words.items())[:200]]


def _text(path: Path, limit: int) -> str:
    try:
        with opened(path) as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def _line(statement: str) -> str:
    return " ".join(statement[: 4 * LINE].split())[:LINE]
