"""Write the report of a folder of studies: report.md with figures, and report.json. Equal runs give equal bytes.

report.json has every verdict, effect, interval and p value of each scale, with the numbers of each seed.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..runs.disk import plain, write_whole, writing
from ..runs.plot import Metrics, stages
from .asked import by_diversity, mask_rows, policy_rows
from .decisions import CheckedGate, p_values
from .figures import LOOKS, ArmCurves, draw, draw_effects, panels_of
from .page import page
from .plan import StudyError
from .results import ArmRuns, Decided, Key, StudyRuns, arm_row, decide_scale, forest_rows, gather

AXIS = "standard deviations between seeds; to the right: as claimed"


def scale_record(decided: Decided) -> dict[str, Any]:
    """Collect everything about a scale, ready for JSON."""
    scale = decided.runs
    return record(
        {
            "runs": {"planned": scale.planned, "finished": len(scale.runs), "unfinished": scale.unfinished},
            "seconds": math.fsum(run.summary.get("train_seconds", 0.0) for run in scale.runs.values()),
            "other_arms_count": decided.weight,  # degrees of freedom, in the spread of each effect; null: infinite
            "claims": [_claim_record(decided, key) for key in decided.decisions],
            "studies": {
                study.name: {
                    "title": study.title,
                    "figure": study.figure,
                    "gates": [_gate_record(each) for each in decided.gates(study.name)],
                    "arms": {
                        arm.name: {"label": arm.label, "seeds": list(arm.runs), **arm_row(arm)}
                        for arm in study.arms.values()
                    },
                }
                for study in scale.studies.values()
            },
            "asked": {
                "mask": mask_rows(decided),
                "temperature": by_diversity(decided),
                "policies": policy_rows(scale),
            },
        }
    )


def _gate_record(checked: CheckedGate) -> dict[str, Any]:
    return {**dataclasses.asdict(checked.gate), "found": checked.found, "holds": checked.holds}


def _claim_record(decided: Decided, key: Key) -> dict[str, Any]:
    decision = decided.decisions[key]
    claim, adjusted = decision.claim, decided.adjusted.get(key, (None, None))
    tests = []
    for test, effect in decision.tests:
        ps = p_values(test, effect) if len(effect.values) > 1 else (None, None)
        tests.append({**dataclasses.asdict(test), **dataclasses.asdict(effect), "p_for": ps[0], "p_against": ps[1]})
    return {
        **{name: getattr(claim, name) for name in ("number", "study", "text")},
        **{name: getattr(decision, name) for name in ("verdict", "p_for", "p_against", "words")},
        "adjusted_for": adjusted[0],
        "adjusted_against": adjusted[1],
        "tests": tests,
    }


def record(value: Any) -> Any:
    """Convert a value for JSON: dataclasses to tables, keys to text, numbers that are not finite to null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return {str(key): record(item) for key, item in value.items()}
    return [record(item) for item in value] if isinstance(value, list | tuple) else plain(value)


def draw_all(scales: Sequence[Decided], folder: Path) -> dict[tuple[str, str], list[str]]:
    """Draw every figure: {(scale, study): paths relative to the page, without suffix}; study "": the effects."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[tuple[str, str], list[str]] = {}
    for each in scales:
        rows = forest_rows(each)
        if any(row["estimate"] is not None for row in rows):
            draw_effects(rows, folder / f"{each.name}-effects", f"Effects, {each.name}", AXIS)
            drawn[each.name, ""] = [f"{folder.name}/{each.name}-effects"]
        for study in (study for study in each.runs.studies.values() if study.was_run):
            pages = in_pages(study)
            for n, arms in enumerate(pages, 1):
                name = f"{each.name}-{study.name}" + f"-{n}" * (len(pages) > 1)
                curves = [curves_of(arm) for arm in arms]
                draw(f"{study.title}, {each.name}", study.figure, curves, folder / name, panels_of(curves))
                drawn.setdefault((each.name, study.name), []).append(f"{folder.name}/{name}")
    return drawn


def in_pages(study: StudyRuns) -> list[list[ArmRuns]]:
    """Distribute the arms over figures: all in one, if it has enough line styles.

    If not, arms that train like an earlier one and are only evaluated differently are left out. If there are still too
    many, they are drawn in several figures of about the same size.
    """
    arms = list(study.arms.values())
    if len(arms) > len(LOOKS):
        trained = [_training(arm) for arm in arms]
        arms = [arm for n, arm in enumerate(arms) if trained[n] is None or trained[n] not in trained[:n]]
    size = math.ceil(len(arms) / math.ceil(len(arms) / len(LOOKS)))
    return [arms[start : start + size] for start in range(0, len(arms), size)]


def _training(arm: ArmRuns) -> dict[str, Any] | None:
    """Return the settings that training depends on, from the arm's first run; None for an arm without runs."""
    if not arm.runs:
        return None
    config = next(iter(arm.runs.values())).config
    train = {key: value for key, value in config["train"].items() if key != "name" and not key.startswith("eval_")}
    return {**config, "train": train}


def curves_of(arm: ArmRuns) -> ArmCurves:
    return ArmCurves(arm.name, arm.label, [_without_ramp(run.metrics) for run in arm.runs.values()])


def _without_ramp(metrics: Metrics) -> Metrics:
    """Remove a temperature that changes at each step: it would split a curve into stages of one point."""
    if len(stages(metrics)) <= 1 + len(metrics) // 2:
        return metrics
    return [{name: value for name, value in line.items() if name != "temperature"} for line in metrics]


def write_report(out: str | Path, to: str | Path | None = None, figures: bool = True) -> tuple[list[Decided], Path]:
    """Decide the claims, draw the figures into a folder beside the page, write the page to `to` or out/report.md.

    Return the decisions at each scale, and the path of the page.
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


def read_verdicts(out: str | Path, scale: str) -> dict[Key, str]:
    """Read the verdicts of a scale from out/report.json: {(study, number): verdict}; empty before the first report."""
    path = Path(out) / "report.json"
    try:
        found = json.loads(path.read_bytes())["scales"].get(scale, {}).get("claims", [])
        return {(claim["study"], claim["number"]): claim["verdict"] for claim in found}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = f"write it again: microcoder study report {path.parent}"
        raise StudyError(f"cannot read {path}: {error}; {remedy}") from None
