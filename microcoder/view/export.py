"""One self-contained file of a run, or of a few: the pages, the charts' script and the answers that they ask for.

1. Curves are thinned as in the browser. Of the rollouts the last step, the first, and steps evenly between are taken
   until `megabytes` are filled; the file says how many were left out. The answers of evaluations are taken in the same
   order, and fill half of the megabytes at most.
2. What the model wrote lies in the file packed and in base64, so no text of it can end a script or begin one; and the
   policy in the file lets nothing run but these scripts, by their hashes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from ..runs.disk import plain
from .find import KINDS
from .library import Library
from .questions import Questions
from .routes import STATIC, plotly_script
from .state import TEXT

RUNS = 40  # of a folder with more, the first by name
LARGEST = 1e6  # megabytes; so much where more is asked for, or inf, or nan
MODULES = (  # each after those that it imports
    "dom.js", "api.js", "route.js", "table.js", "traces.js", "sketch.js", "charts.js", "runs.js", "run.js",
    "highlight.js", "sample.js", "rollouts.js", "markdown.js", "compare.js", "bench.js", "studies.js", "main.js",
)  # fmt: skip
IMPORT = re.compile(r"^import \{([^}]*)\} from '\./([\w.]+)';$", re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
SCRIPT_END = re.compile(r"</(script)", re.IGNORECASE)


def export(root: Path, path: Path, megabytes: float = 20.0) -> str:
    """Write the file; return a sentence about what it holds."""
    answers, words = _answers(Questions(Library(root)), int(min(LARGEST, megabytes) * 1e6))
    runs = [key.split("=", 1)[1] for key in answers if key.startswith("run\n")]
    packed = {"about": {"words": words, "only": runs[0] if len(runs) == 1 else None}, "answers": answers}
    data = gzip.compress(json.dumps(plain(packed), separators=(",", ":")).encode(), mtime=0)
    path.write_text(_page(base64.b64encode(data).decode()), encoding="utf-8")
    return words


def bundle() -> str:
    """Join the modules into one script, each as a function that returns its exports."""
    parts = ["const modules = {};"]
    for name in MODULES:
        text = (STATIC / name).read_text(encoding="utf-8")
        given = ", ".join(match[2] for match in EXPORT.finditer(text))
        text = IMPORT.sub(lambda match: f"const {{{match[1]}}} = modules['{match[2]}'];", text)
        text = EXPORT.sub(r"\1", text)
        parts.append(f"modules['{name}'] = (() => {{\n{text}\nreturn {{ {given} }};\n}})();")
    return "\n".join(parts)


def spread(steps: list[int]) -> list[int]:
    """Order steps so that any first few are spread evenly: the last, the first, the middle ..."""
    end = len(steps) - 1
    order = [end, 0] if steps else []
    parts = 2
    while len(set(order)) < len(steps):
        order += [round(n * end / parts) for n in range(1, parts)]
        parts *= 2
    return [steps[at] for at in dict.fromkeys(order)]


def _answers(answers: Questions, room: int) -> tuple[dict[str, Any], str]:
    found: dict[str, Any] = {}
    listing = answers.listing()
    kept, left = listing["runs"][:RUNS], len(listing["runs"][RUNS:])
    _keep(found, {**listing, "runs": kept, "bench": [], "studies": []}, "list")
    counts = {"train": [0, 0], "test": [0, 0]}  # steps that were taken, steps that there are
    for run in kept:
        one: dict[str, Any] = {}
        try:
            taken = _run(one, answers, run["name"], room // len(kept))
        except Exception as error:  # whatever stands in its files: the other runs are exported all the same
            run["faults"] = [*run["faults"], f"it is not in this copy: {error}"[:TEXT]]
            continue
        found |= one
        for kind, pair in taken.items():
            counts[kind] = [sum(both) for both in zip(counts[kind], pair, strict=True)]
    (steps, of_steps), (tests, of_tests) = counts["train"], counts["test"]
    rollouts = f"with the rollouts of {steps} of {_count(of_steps, 'step')}" if of_steps else "without rollouts"
    rollouts += f" and the answers of {tests} of {_count(of_tests, 'evaluation')}" if of_tests else ""
    more = f"; {_count(left, 'run')} left out" if left else ""
    return found, f"A copy of {_count(len(kept), 'run')}, {rollouts}{more}. `microcoder view` shows everything, live."


def _run(found: dict[str, Any], answers: Questions, name: str, room: int) -> dict[str, tuple[int, int]]:
    """Keep the answers about one run; return {train, test: (how many of its steps were taken, how many there are)}."""
    _keep(found, answers.run(name), "run", run=name)
    metrics, remarks = answers.metrics(name), answers.remarks(name)
    while answers.behind(name):  # of a very long file
        metrics, remarks = answers.metrics(name), answers.remarks(name)
    _keep(found, metrics, "metrics", run=name)
    _keep(found, remarks, "remarks", run=name)
    steps = answers.steps(name)
    tests, filled = _steps(found, answers, name, steps["test"], room // 2, test=True)
    chosen, _ = _steps(found, answers, name, steps["train"], room - filled)
    _keep(found, {"train": chosen, "test": tests, "running": False}, "steps", run=name)
    _finders(found, answers, name, set(chosen))
    json.dumps(plain(found))  # what cannot be written is found here, where it costs one run and not all
    return {"train": (len(chosen), len(steps["train"])), "test": (len(tests), len(steps["test"]))}


def _steps(
    found: dict[str, Any], answers: Questions, run: str, steps: list[int], room: int, test: bool = False
) -> tuple[list[int], int]:
    """Keep the rollouts of the steps there is room for, one at least; return (these steps, bytes that they fill).

    test   keep the answers of the evaluations after the steps instead; none, if there is no room for one
    """
    chosen: list[int] = []
    filled = 0
    asked = {"test": "true"} if test else {}  # as static/rollouts.js asks
    for step in spread(steps):
        record = answers.step(run, step, test)
        groups = [answers.group(run, step, group["problem"], test) for group in record["groups"]]
        size = sum(_size(row) for group in groups for row in group["rows"])
        if filled + size > room and (chosen or test):
            break
        chosen.append(step)
        filled += size
        _keep(found, record, "step", run=run, step=step, **asked)
        for group in groups:
            _keep(found, group, "group", of=run, step=step, problem=group["problem"], **asked)
    return sorted(chosen), filled


def _size(row: dict[str, Any]) -> int:
    """About the bytes that a rollout fills."""
    tries = [row, *(row.get("earlier") or [])]
    return sum(len(str(one.get("completion"))) + 400 for one in tries)


def _finders(found: dict[str, Any], answers: Questions, run: str, steps: set[int]) -> None:
    for kind in KINDS:
        if kind != "text":
            record: dict[str, Any] = answers.find(run, kind, only=steps) if steps else {"found": [], "note": ""}
            note = "; ".join(filter(None, ["of the exported steps", record["note"]]))
            _keep(found, {"found": record["found"], "next": None, "note": note}, "find", run=run, kind=kind)


def _keep(found: dict[str, Any], value: Any, question: str, **parameters: Any) -> None:
    """Keep an answer under the key by which static/api.js looks it up."""
    found["\n".join([question, *(f"{name}={parameters[name]}" for name in sorted(parameters))])] = value


def _page(packed: str) -> str:
    style, theme = ((STATIC / name).read_text(encoding="utf-8") for name in ("style.css", "theme.js"))
    scripts = [theme, plotly_script().read_text(encoding="utf-8"), bundle()]
    scripts = [SCRIPT_END.sub(r"<\\/\1", text) for text in scripts]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; "
        f"style-src {_hash(style)} {_hash('')}; "  # the charts' own sheet begins empty
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    body = (STATIC / "index.html").read_text(encoding="utf-8").partition("<body>")[2].partition("</body>")[0]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>MicroCoder</title>\n'
        f'<link rel="icon" href="data:,">\n<style>{style}</style>\n<style id="plotly.js-style-global"></style>\n'
        f"<script>{scripts[0]}</script>\n</head>\n<body>{body}"
        f'<script type="application/octet-stream" id="packed">{packed}</script>\n'
        f"<script>{scripts[1]}</script>\n<script>{scripts[2]}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
