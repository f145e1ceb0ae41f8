"""The comparison that a folder of `arms` holds, as a page: scores with intervals, settings, dynamics, curves.

    DIR/report.md     the tables, for whatever is there: runs and scores that are missing are named
    DIR/curves.png    reward, validation accuracy, length, D and entropy over the steps (and curves.svg)

An arm is the mean of its seeds. Its interval is the 95% bootstrap over problems and seeds (`crossed_means` in
microcoder/stats.py); differences and their p are those of `microcoder eval compare` between groups. A baseline is any
arm whose preset is not microcoder; the best one is that with the highest accuracy in the same table.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu.arms import ARMS, BASE, finished
from benchmarks.gpu.scores import FILES
from microcoder import load_problems
from microcoder.evaluation.folder import Scores, compare_scores, read_scores
from microcoder.evaluation.suite import EvaluationError
from microcoder.evaluation.tables import cell_text
from microcoder.layout import Table, counted, for_markdown, known, piped
from microcoder.runs import read_metrics
from microcoder.schema import bands, in_order
from microcoder.stats import bootstrap, crossed_means, middle
from microcoder.study.effects import paired
from microcoder.study.figures import LOOKS, ArmCurves, draw
from microcoder.study.launch import FREE
from microcoder.study.phrases import signed

OURS = "microcoder"  # the preset that is no baseline
RUN = re.compile(r"(.+)-s(\d+)")  # a run's name: its arm and its seed
SUITES = {  # (suite, tests): its column
    ("test", "all"): "LeetCode, newer",
    ("forged", "all"): "LeetCode, validation",
    ("humaneval", "all"): "HumanEval, its own",
    ("humanevalplus", "base"): "HumanEval",
    ("humanevalplus", "all"): "HumanEval+",
    ("mbppplus", "base"): "MBPP",
    ("mbppplus", "all"): "MBPP+",
    ("livecodebench", "all"): "LiveCodeBench v6, public tests",
}
DYNAMICS = {  # metric: its column, how it is written
    "reward": ("reward", "{:.3f}"),
    "accuracy": ("accepted", "{:.1%}"),
    "length_mean": ("tokens", "{:.0f}"),
    "diversity": ("D", "{:.3f}"),
    "entropy": ("entropy", "{:.3f}"),
    "truncated_share": ("truncated", "{:.1%}"),
    "masked_share": ("masked", "{:.2%}"),
    "no_signal_share": ("no signal", "{:.0%}"),
}
PARTS = (  # what one arm has and another has not: (what, without, with)
    ("no KL, clip-higher", "grpo", "grpo_plus"),
    ("dynamic sampling, overlong shaping", "grpo_plus", "dapo"),
    ("the conditional mask", "grpo_plus", "microcoder"),
    ("masking all that is truncated", "grpo_plus", "mask-all"),
    ("T(D), beside the mask", "microcoder", "microcoder-TD"),
    ("T(D)", "grpo_plus", "TD"),
    ("a second turn, at about equal tokens", "grpo_plus", "two-turns"),
    ("forged tests as rewards", "examples", "forged"),
    ("forged tests as rewards", "examples", "grpo_plus"),
)
SECONDS = {"step_s": "s/step", "generation_s": "sampling", "judging_s": "waiting", "update_s": "update"}
PANELS = ("reward", "test_accuracy", "length_mean", "diversity", "entropy", "truncated_share")
SHARED = ("model.name", "data.train", "grpo.temperature", "grpo.samples", "train.steps", "train.train_batch_size",
          "train.ppo_mini_batch_size", "train.max_response_tokens", "train.lr", "train.eval_temperature")  # fmt: skip
OWN = {"train.seed", *FREE} - {"grpo.preset"}  # what runs may differ in
RESAMPLES = 10_000  # of a relative gain
PAIRED = (
    "On LeetCode as in the table above. Reward, tokens, D and entropy are those of the last tenth of the steps of "
    "finished runs, paired by seed, with Student's 95% interval over the seeds."
)
COURSE = (
    "A reward may hold more than whether a program is accepted, such as dapo's punishment of long responses: "
    "`accepted` is the share of right ones. Seconds are means over all steps; `waiting` is for the judge."
)
Floats = NDArray[np.float64]


class ReportError(ValueError):
    """A folder that no page can be made from; the message says what to type instead."""


@dataclass(frozen=True)
class TrainedRun:
    """A run that was begun: its metrics and settings, as far as they are there."""

    folder: Path

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        return read_metrics(self.folder)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The lines of steps; step 0 is the evaluation before training."""
        return [line for line in self.metrics if line["step"]]

    @property
    def finished(self) -> bool:
        return finished(self.folder)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """{"grpo.kl": 0.0, ...}; empty without a config.toml."""
        try:
            sections = tomllib.loads((self.folder / "config.toml").read_text())
        except FileNotFoundError:
            return {}
        return {f"{section}.{key}": value for section, values in sections.items() for key, value in values.items()}


class Comparison:
    """What there is in a folder of `arms`: runs, and finished evaluations by suite."""

    def __init__(self, out: Path) -> None:
        self.out, self.notes = out, list[str]()
        self.runs = {path.parent.name: TrainedRun(path.parent) for path in sorted(out.glob("runs/*/metrics.jsonl"))}
        self.suites = {suite: found for suite in FILES if (found := self._evaluations(suite))}
        names = {*self.runs, *(name for found in self.suites.values() for name in found)} - {BASE}
        if not names and not self.suites:
            raise ReportError(
                f"{out} holds no run (runs/NAME/metrics.jsonl) and no score (bench/NAME.SUITE); see `arms run`"
            )
        self.arms: dict[str, dict[int, str]] = {}  # arm -> seed -> the name of its run
        for name in sorted(names, key=_place):
            arm, seed = _place(name)[1:]
            self.arms.setdefault(arm, {})[seed] = name
        self._note_missing()

    def _evaluations(self, suite: str) -> dict[str, Scores]:
        found = {}
        for folder in sorted((self.out / "bench").glob(f"*.{suite}")):
            name = folder.name.removesuffix(f".{suite}")
            try:
                found[name] = read_scores(folder)
            except EvaluationError as error:
                self.notes.append(f"No score of {name} on {suite}: {error}")
        digests = Counter(scores.result["digest"] for scores in found.values())
        usual = digests.most_common(1)[0][0] if digests else ""
        if strange := [name for name, scores in found.items() if scores.result["digest"] != usual]:
            self.notes.append(f"Left out on {suite}, since of other problems than most: {', '.join(strange)}")
        for what in ("tries", "temperature", "style", "chat"):
            if len(values := {str(scores.result[what]) for scores in found.values()}) > 1:
                self.notes.append(f"NOT ALIKE on {suite}: {what} is {' and '.join(sorted(values))}")
        return {name: scores for name, scores in found.items() if name not in strange}

    def _note_missing(self) -> None:
        for name, run in self.runs.items():
            if not run.finished:
                self.notes.append(f"{name} is not finished: {len(run.steps)} steps")
        for suite, found in self.suites.items():
            if missing := [name for name in (BASE, *self.names) if name not in found]:
                self.notes.append(f"Not scored on {suite}: {', '.join(missing)}")

    @property
    def names(self) -> list[str]:
        return [name for seeds in self.arms.values() for name in seeds.values()]

    def scores(self, suite: str, arm: str, limit: int) -> list[Scores]:
        """The evaluations of an arm's seeds, or of the untrained model."""
        names = [BASE] if arm == BASE else list(self.arms[arm].values())
        found = self.suites.get(suite, {})
        return [found[name] for name in names if name in found and limit in found[name].limits]

    def limits(self, suite: str) -> list[int]:
        return sorted({limit for scores in self.suites.get(suite, {}).values() for limit in scores.limits})

    def trained(self, arm: str) -> list[TrainedRun]:
        return [self.runs[name] for name in self.arms[arm].values() if name in self.runs]

    def ends(self, arm: str, name: str) -> dict[int, float]:
        """{seed: the mean of a metric over the last tenth of its steps} of the finished runs."""
        runs = {seed: self.runs[run] for seed, run in self.arms[arm].items() if run in self.runs}
        values = {seed: _ends(run.steps, name)[1] for seed, run in runs.items() if run.finished and run.steps}
        return {seed: value for seed, value in values.items() if value is not None}

    def is_baseline(self, arm: str) -> bool:
        presets = {run.settings.get("grpo.preset") for run in self.trained(arm)} - {None}
        return OURS not in presets if presets else not arm.startswith(OURS)


def _place(name: str) -> tuple[int, str, int]:
    """Where a run stands in the tables: the arms of `arms` in its order, then others; then by seed."""
    match = RUN.fullmatch(name)
    arm, seed = (match[1], int(match[2])) if match else (name, 0)
    return (list(ARMS).index(arm) if arm in ARMS else len(ARMS)), arm, seed


def report(out: Path, data: Path) -> str:
    """Write DIR/report.md and the curves; return the page."""
    found = Comparison(out)
    parts = ["# Arms side by side", *_facts(found)]
    for limit in found.limits("test"):
        parts += [*_table_1(found, data / FILES["test"], limit)]
    if parts_of := _parts(found):
        parts += [piped(parts_of), PAIRED]
    for limit in sorted({limit for suite in found.suites for limit in found.limits(suite)}):
        parts.append(piped(_all_suites(found, limit)))
    if found.runs:
        parts += [piped(_dynamics(found)), COURSE, *(f"![{file}]({file})" for file in _curves(found))]
    page = "\n\n".join(parts) + "\n"
    (out / "report.md").write_text(page, encoding="utf-8")
    return page


# --- what was run


def _facts(found: Comparison) -> Iterator[str]:
    settings = {name: run.settings for name, run in found.runs.items() if run.settings}
    keys = dict.fromkeys(key for each in settings.values() for key in each if key not in OWN)
    values = {key: {json.dumps(each.get(key)) for each in settings.values()} for key in keys}
    alike = [f"`{key} = {min(values[key])}`" for key in SHARED if len(values.get(key, ())) == 1]
    if alike:
        yield f"All runs: {', '.join(alike)}."
    differing = [key for key in keys if len(values[key]) > 1]
    rows = []
    for arm in found.arms:
        each = [run.settings for run in found.trained(arm) if run.settings]
        cells = [" and ".join(dict.fromkeys(_value(one.get(key)) for one in each)) for key in differing]
        seeds = ", ".join(str(seed) for seed in found.arms[arm])
        rows.append((arm, seeds, *cells))
    if rows:
        yield piped(Table("What the arms differ in", ("arm", "seeds", *differing), rows, words=2 + len(differing)))
    if found.notes:
        yield "\n".join(f"- {for_markdown(note)}" for note in found.notes)


def _value(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


# --- scores


def _table_1(found: Comparison, file: Path, limit: int) -> Iterator[str]:
    """The paper's Table 1: accuracy by difficulty, and what each arm gains."""
    arms = [arm for arm in (BASE, *found.arms) if found.scores("test", arm, limit)]
    levels = _levels(file, found)
    rights = {arm: _rights(found.scores("test", arm, limit), "all", limit) for arm in arms}
    shared = [name for name in levels if all(name in each for right in rights.values() for each in right)]
    matrices = {arm: _matrix(right, shared) for arm, right in rights.items()}  # (seeds, problems)
    of = np.array([levels[name] for name in shared])  # (problems,)
    columns = {level: of == level for level in in_order(levels.values())} | {"all": np.ones(len(shared), bool)}
    baselines = [arm for arm in arms if arm != BASE and found.is_baseline(arm)]
    best = max(baselines, key=lambda arm: matrices[arm].mean(), default="")
    rows = [("problems", "", *(str(int(here.sum())) for here in columns.values()), *[""] * 5)]
    for arm in arms:
        cells = [_cell(matrices[arm][:, here]) for here in columns.values()]
        gains = [_gain(found, limit, other, arm) for other in (BASE, best)]
        relative = _relative(matrices[best], matrices[arm]) if best not in ("", arm) and arm != BASE else ""
        seeds = "" if arm == BASE else str(len(matrices[arm]))
        rows.append((arm, seeds, *cells, *gains[0], *gains[1], relative))
    over = f"over {best}, the best baseline" if best else "over the best baseline"
    head = ("arm", "seeds", *columns, "over the untrained", "p", over, "p", "relative, %")
    first = found.scores("test", arms[0], limit)[0].result
    conditions = f"{counted(first['tries'], 'sample')} each at T {first['temperature']:g}, limit {limit:,}"
    yield piped(Table(f"LeetCode problems newer than those of training: {conditions}", head, rows))
    yield (
        "Accuracy in %, with its 95% interval over problems and seeds; differences in points, problem by problem, as "
        "`microcoder eval compare` has them. Each p is that of one comparison, not adjusted for their number."
    )
    left_out = {name for right in rights.values() for each in right for name in each} - set(shared)
    if left_out:
        yield f"Left out, since not judged in every evaluation: {', '.join(sorted(left_out))}."


def _levels(file: Path, found: Comparison) -> dict[str, str]:
    """{problem of the test: its difficulty}."""
    if not file.exists():
        raise ReportError(f"there is no {file}, which says how difficult the problems are; name the folder with --data")
    problems = load_problems(str(file))
    levels = dict(zip((problem.id for problem in problems), bands(problems), strict=True))
    asked = {name for scores in found.suites["test"].values() for name in scores.outcomes()}
    if unknown := sorted(asked - set(levels)):
        raise ReportError(
            f"{file} does not have {len(unknown)} of the problems that were scored, such as {unknown[0]}; name the "
            "folder that `arms run` had with --data"
        )
    return {name: level or "none" for name, level in levels.items() if name in asked}


def _rights(evaluations: Sequence[Scores], tests: str, limit: int) -> list[dict[str, float]]:
    """{problem: the share of its tries that is right} of each evaluation, without problems that were not judged."""
    tried = [scores.at(limit, tests=tests).outcomes() for scores in evaluations]
    return [{name: float(np.mean(tries)) for name, tries in each.items() if tries} for each in tried]


def _matrix(rights: Sequence[dict[str, float]], problems: Sequence[str]) -> Floats:
    return np.array([[each[name] for name in problems] for each in rights])  # (seeds, problems)


def _cell(matrix: Floats) -> str:
    if not matrix.size:
        return ""
    ends = bootstrap(matrix[0])  # as `microcoder eval show` has it
    if len(matrix) > 1 and matrix.shape[1] > 1:
        ends = middle(crossed_means([matrix])[0])
    return cell_text({"accuracy": float(matrix.mean()), "low": ends[0], "high": ends[1]})


def _gain(found: Comparison, limit: int, before: str, after: str) -> tuple[str, str]:
    sides = [found.scores("test", arm, limit) if arm else [] for arm in (before, after)]
    if before == after or after == BASE or not all(sides):
        return "", ""
    try:
        result, _ = compare_scores(sides[0], sides[1], limit)
    except EvaluationError:  # they share fewer than two judged problems
        return "", ""
    points = f"{100 * result['difference']:+.1f} ({100 * result['low']:+.1f} to {100 * result['high']:+.1f})"
    return points, "< 0.001" if result["p"] < 0.001 else f"{result['p']:.3f}"


def _relative(best: Floats, arm: Floats) -> str:
    """The gain relative to the best baseline, in %."""
    if not best.mean():
        return ""
    before, after = crossed_means([best, arm], RESAMPLES)
    words = f"{100 * (arm.mean() / best.mean() - 1):+.0f}"
    if (before <= 0).any():
        return words
    low, high = middle(after / before - 1)
    return f"{words} ({100 * low:+.0f} to {100 * high:+.0f})"


def _parts(found: Comparison) -> Table | None:
    """What single parts of an algorithm do, for each pair of arms that is there."""
    limits, rows = found.limits("test"), []
    names = [name for name in DYNAMICS if name in ("reward", "length_mean", "diversity", "entropy")]
    for words, without, with_it in PARTS:
        if without in found.arms and with_it in found.arms:
            gains = [cell for limit in limits for cell in _gain(found, limit, without, with_it)]
            ends = [[found.ends(arm, name) for arm in (with_it, without)] for name in names]
            rows.append((words, f"{with_it} - {without}", *gains, *(signed(paired(*pair)) for pair in ends)))
    heads = [head for limit in limits for head in (f"LeetCode, newer, at {limit:,}", "p")]
    head = ("what", "arms", *heads, *(DYNAMICS[name][0] for name in names))
    return Table("What each part does: points, and differences at the end", head, rows, words=2) if rows else None


def _all_suites(found: Comparison, limit: int) -> Table:
    """Every suite: the untrained model, then each arm and each of its seeds."""
    there = [key for key in SUITES if limit in found.limits(key[0])]
    rows = []
    for arm in (BASE, *found.arms):
        seeds = {} if arm == BASE or len(found.arms[arm]) < 2 else found.arms[arm]
        rows.append((arm, *(_suite_cell(found.scores(suite, arm, limit), tests, limit) for suite, tests in there)))
        for name in seeds.values():
            each = [found.suites[suite].get(name) for suite, _ in there]
            at = [[scores] if scores and limit in scores.limits else [] for scores in each]
            rows.append((name, *(_suite_cell(one, tests, limit) for one, (_, tests) in zip(at, there, strict=True))))
    title = f"All suites, limit {limit:,}: accuracy in %, with its interval over problems and, of an arm, over seeds"
    return Table(title, ("", *(SUITES[key] for key in there)), [row for row in rows if any(row[1:])])


def _suite_cell(evaluations: Sequence[Scores], tests: str, limit: int) -> str:
    rights = _rights(evaluations, tests, limit)
    shared = [name for name in (rights[0] if rights else ()) if all(name in each for each in rights)]
    return _cell(_matrix(rights, shared)) if shared else ""


# --- dynamics


def _dynamics(found: Comparison) -> Table:
    """How training went: the mean of the first tenth of the steps and of the last, then over seeds."""
    rows = []
    for arm in found.arms:
        runs = [run for run in found.trained(arm) if run.steps]
        if runs:
            steps = ", ".join(str(len(run.steps)) for run in runs)
            courses = [_course([_ends(run.steps, name) for run in runs], form) for name, (_, form) in DYNAMICS.items()]
            tested = _course([_tested(run.metrics) for run in runs], "{:.1%}")
            seconds = [_mean(_mean(line.get(name) for line in run.steps) for run in runs) for name in SECONDS]
            rows.append(
                (arm, steps, courses[0], tested, *courses[1:], *(known("{:.1f}", each, "") for each in seconds))
            )
    heads = [title for title, _ in DYNAMICS.values()]
    head = ("arm", "steps", heads[0], "validation", *heads[1:], *SECONDS.values())
    return Table("Dynamics: the first tenth of the steps → the last, mean over seeds", head, rows)


def _ends(lines: Sequence[dict[str, Any]], name: str) -> list[float | None]:
    tenth = max(1, len(lines) // 10)
    return [_mean(line.get(name) for line in part) for part in (lines[:tenth], lines[-tenth:])]


def _tested(lines: Sequence[dict[str, Any]]) -> list[float | None]:
    """Accuracy on validation, first and last."""
    values = [line["test_accuracy"] for line in lines if line.get("test_accuracy") is not None]
    return [values[0], values[-1]] if values else [None, None]


def _course(ends: Sequence[Sequence[float | None]], form: str) -> str:
    means = [_mean(each) for each in zip(*ends, strict=True)]
    return "" if None in means else " → ".join(form.format(mean) for mean in means)


def _mean(values: Any) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def _curves(found: Comparison) -> list[str]:
    """Draw DIR/curves.png and .svg, and more of them where one has too few kinds of lines; return their names."""
    drawn = [ArmCurves(arm, arm, [run.metrics for run in found.trained(arm) if run.steps]) for arm in found.arms]
    drawn = [arm for arm in drawn if arm.runs]
    files: list[str] = []
    for start in range(0, len(drawn), len(LOOKS)):
        name = f"curves-{len(files) + 1}" if len(drawn) > len(LOOKS) else "curves"
        draw("Training dynamics", 0, drawn[start : start + len(LOOKS)], found.out / name, PANELS, bands=True)
        files.append(f"{name}.png")
    return files
