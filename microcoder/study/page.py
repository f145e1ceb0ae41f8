"""The report of studies as Markdown: verdicts, runs, every claim, every study, and how claims are decided."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..layout import for_markdown
from .asked import CHOICE, NOTHING, by_diversity, mask_rows, policy_rows
from .decisions import (
    CONTRADICTED,
    LEVEL,
    NOT_RUN,
    NOT_TESTABLE,
    SUPPORTED,
    VERDICTS,
    CheckedGate,
    ClaimDecision,
    describe_gate,
)
from .effects import Effect
from .phrases import comparison, duration, effect_words, expected_words, p_words, share_words, signed
from .plan import ORDER, OUT, Claim, find_study, read_toml
from .plan import scales as known_scales
from .results import Decided, Key, ScaleRuns, StudyRuns, arm_row, deciding_test, in_order

NAMED = 10  # unfinished runs
Figures = Mapping[tuple[str, str], Sequence[str]]  # (scale, study) -> paths without suffix; study "": the forest plot
ARM_HEAD = ("arm", "seeds", "accuracy before", "after (95%)", "tokens", "D", "truncated", "masked", "reward", "s/step")
READING = """\
A claim with several tests is shown by the one that decided it. Points are hundredths, of an accuracy or a share; "per
arm" is the change from one arm to the next. In brackets: the 95% interval over seeds, of this effect by itself. The
verdict is stricter than that, since it allows for the number of claims."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Write a Markdown table from cells in Markdown; the first `words` columns hold words, the others numbers."""
    line = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, line, *rows))


def picture(words: str, path: str) -> str:
    """Show the PNG of a figure as a link to its SVG. `path` is relative and has no suffix."""
    return f"[![{for_markdown(words)}]({path}.png)]({path}.svg)"


def anchor(heading: str) -> str:
    """Return GitHub's anchor of a heading: its words in lower case, joined by hyphens."""
    return "#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def what_was_run(scales: Sequence[ScaleRuns]) -> Iterator[str]:
    head = ("scale", "model", "machine", "studies", "seeds", "steps", "runs", "training, summed")
    yield table(head, map(_run_row, scales), 3)
    for scale in (scale for scale in scales if scale.unfinished):
        names = ", ".join(f"`{name}`" for name in scale.unfinished[:NAMED])
        more = f" and {len(scale.unfinished) - NAMED} more" if len(scale.unfinished) > NAMED else ""
        yield f"Left out at {scale.name}, since unfinished: {names}{more}."
    yield "Seconds a step are those of an arm's fastest seed, the one that other runs on the machine slowed down least."


def _run_row(scale: ScaleRuns) -> tuple[str, ...]:
    runs = scale.runs.values()
    models = {run.summary.get("model", "?") for run in runs}
    steps = sorted({run.summary.get("steps", 0) for run in runs})
    return (
        scale.name,
        for_markdown(", ".join(sorted(model for model in models if Path(model).name not in scale.runs))),
        for_markdown("; ".join(sorted({_machine(run.info.get("hardware", {})) for run in runs}))),
        str(sum(study.was_run for study in scale.studies.values())),
        str(len(_seeds(scale))),
        " to ".join(map(str, dict.fromkeys(steps[:1] + steps[-1:]))),
        f"{len(runs)} of {scale.planned}" if scale.unfinished else str(len(runs)),
        duration(sum(run.summary.get("train_seconds", 0.0) for run in runs)),
    )


def _seeds(scale: ScaleRuns) -> set[int]:
    return {seed for study in scale.studies.values() for arm in study.arms.values() for seed in arm.runs}


def _machine(hardware: Mapping[str, Any]) -> str:
    return ", ".join([f"{hardware.get('cores', '?')} cores {hardware.get('machine', '')}", *hardware.get("gpus", [])])


def commands(scales: Sequence[ScaleRuns], out: str) -> str:
    lines, known = ["microcoder study ls"], known_scales()
    for scale in scales:
        run = [name for name, study in scale.studies.items() if study.was_run]
        names = [_named(study, f"{out}/{scale.name}") for name, study in scale.studies.items() if name in run]
        names = ["all"] if names == list(ORDER) else names
        needs = known[scale.name].needs if scale.name in known else ()
        if scale.name in known and (make := known[scale.name].make):
            lines.append(make.replace(OUT, f"{out}/{scale.name}"))
        options = f"--scale {scale.name} --seeds {max(_seeds(scale), default=0) + 1} --out {out}"
        lines.append(" ".join(["microcoder study run", *names, *(f"{need}=FILE" for need in needs), options]))
    return "\n".join(["```", *lines, f"microcoder study report {out}", "```"])


def _named(study: StudyRuns, folder: str) -> str:
    """Return what `microcoder study run` is given for a study: a file, if it is not one of the package's."""
    if study.name not in ORDER:
        return f"{study.name}.toml"
    arms = {arm["name"] for arm in read_toml(find_study(study.name))["arms"]}
    return study.name if arms >= set(study.arms) else f"{folder}/studies/{study.name}.toml"


def study_sections(scales: Sequence[Decided], figures: Figures) -> Iterator[str]:
    for name in in_order({name for each in scales for name, study in each.runs.studies.items() if study.was_run}):
        there = [each for each in scales if name in each.runs.studies and each.runs.studies[name].was_run]
        study = there[0].runs.studies[name]
        yield f"## {for_markdown(study.title)}"
        figure = f" The paper's figure {study.figure}." if study.figure else ""
        yield (for_markdown(study.about) + figure).strip()
        for each in there:
            yield f"### {for_markdown(study.title)} at {each.name}"
            yield from (picture(f"{study.title} at {each.name}", file) for file in figures.get((each.name, name), ()))
            yield arms_table(each.runs.studies[name])
            if gates := each.gates(name):
                yield gates_table(gates)
        for claim in claims_of(there, name):
            yield f"**{claim.number}. {for_markdown(claim.text)}**"
            yield from claim_parts(there, (name, claim.number))


def claims_of(scales: Sequence[Decided], study: str) -> list[Claim]:
    """Return the claims of a study at any of the scales, where its file may have others; a text is the first one's."""
    found: dict[int, Claim] = {}
    for each in scales:
        for claim in each.runs.studies[study].claims if study in each.runs.studies else ():
            found.setdefault(claim.number, claim)
    return [found[number] for number in sorted(found)]


def arms_table(study: StudyRuns) -> str:
    rows = []
    for arm in study.arms.values():
        row = arm_row(arm)
        rows.append(
            (
                f"`{arm.name}` {for_markdown(arm.label) if arm.label != arm.name else ''}".rstrip(),
                str(len(arm.runs)),
                share_words(row["accuracy_before"].estimate),
                accuracy_words(row["accuracy_after"]),
                number(row["length"], 0),
                number(row["diversity"], 3),
                share_words(row["truncated_share"].estimate),
                share_words(row["masked_share"].estimate),
                number(row["reward"], 3),
                f"{min(row['step_s'].values):.2f}" if row["step_s"].values else "",
            )
        )
    return table(ARM_HEAD, rows)


def gates_table(gates: Sequence[CheckedGate]) -> str:
    rows = []
    for each in gates:
        needed_by = ", ".join(map(str, each.gate.claims)) or "all"
        holds = "holds" if each.holds else "**fails**"
        rows.append((for_markdown(each.gate.text), f"`{describe_gate(each)}`", holds, needed_by))
    return table(("gate", "found", "", "claims"), rows, 4)


def accuracy_words(effect: Effect) -> str:
    """An accuracy with its interval, which two seeds may stretch beyond what an accuracy can be: cut there."""
    words = share_words(effect.estimate)
    if effect.low is None or effect.high is None:
        return words
    return f"{words} ({100 * max(0.0, effect.low):.1f} to {100 * min(1.0, effect.high):.1f})"


def number(effect: Effect, digits: int) -> str:
    return "" if math.isnan(effect.estimate) else f"{effect.estimate:.{digits}f}"


def claim_parts(scales: Sequence[Decided], key: Key) -> Iterator[str]:
    """Show the tests of a claim at each scale in a table, then a sentence for each scale."""
    rows, sentences = [], []
    for each in (each for each in scales if key in each.decisions):
        decision = each.decisions[key]
        for test, effect in decision.tests:
            seeds = f"{len(effect.values)}" + f" ({effect.left_out} left out)" * bool(effect.left_out)
            rows.append((each.name, comparison(test), expected_words(test), effect_words(test, effect), seeds))
        sentences.append(f"- {each.name}: {sentence(decision, each.adjusted.get(key))}")
    yield table(("scale", "test", "expected", "found (95%)", "seeds"), rows, 4)
    yield "\n".join(sentences)


def sentence(decision: ClaimDecision, adjusted: tuple[float, float] | None) -> str:
    if adjusted is None:
        return f"**{decision.verdict}**: {decision.words}."
    holds, fails = (p_words(p) for p in adjusted)
    if decision.verdict == CONTRADICTED:
        return f"**contradicted**; adjusted p against it {fails}."
    if decision.verdict == SUPPORTED:
        return f"**supported**: every test reaches its size; adjusted p for it {holds}."
    ps = f"adjusted p for it {holds}, against it {fails}"
    if adjusted[0] > LEVEL:
        return f"**undecided**: it is shown neither to hold nor to fail; {ps}."
    return f"**undecided**: not every test reaches its size, and that one falls short of it is not shown either; {ps}."


def asked_sections(scales: Sequence[Decided]) -> Iterator[str]:
    if not any(each.runs.studies.keys() & set(ORDER) for each in scales):
        return
    yield "## What readers of the paper asked for"
    for title, section in (
        ("The mask, condition by condition", _mask),
        ("T(D) beside fixed temperatures", _temperatures),
        ("What each judging policy gets wrong", _policies),
    ):
        yield f"### {title}"
        for each in scales:
            found = section(each)
            yield f"At {each.name}:" if found else f"At {each.name}: {NOT_RUN}."
            yield from found


def _mask(decided: Decided) -> list[str]:
    head = ("arm", "accuracy (95%)", f"points over {CHOICE}", f"points over {NOTHING}", "tokens", "D", "masked")
    rows = []
    for row in mask_rows(decided):
        others = [row["against"].get(name) for name in (CHOICE, NOTHING)]
        differences = ("" if effect is None else signed(effect, 100.0) for effect in others)
        length, diversity = number(row["length"], 0), number(row["diversity"], 3)
        masked = share_words(row["masked_share"].estimate)
        accuracy = accuracy_words(row["accuracy_after"])
        rows.append((for_markdown(row["label"]), accuracy, *differences, length, diversity, masked))
    return [table(head, rows)] if rows else []


def _temperatures(decided: Decided) -> list[str]:
    found = by_diversity(decided)
    if not found:
        return []
    rows = [
        (for_markdown(row["label"]), accuracy_words(row["accuracy_after"]), signed(row["gain"], 100.0))
        for row in found["against"]
    ]
    seeds: dict[str, list[str]] = {}  # what was chosen -> in which
    for seed, stages in found["chosen"].items():
        seeds.setdefault(_stages(stages), []).append(str(seed))
    chosen = "; ".join(f"{words} (seed{'s' * (len(of) > 1)} {', '.join(of)})" for words, of in seeds.items())
    own = f"T(D) itself ends at {accuracy_words(found['accuracy_after'])}. Its temperatures: {chosen}."
    return [table(("fixed", "accuracy (95%)", "points that T(D) has over it"), rows), own]


def _stages(stages: Sequence[tuple[int, float]]) -> str:
    words = [f"{float(temperature)}" + f" from step {step}" * (step > 1) for step, temperature in stages]
    return ", then ".join(words) or "not recorded"


def _policies(decided: Decided) -> list[str]:
    head = ("policy", "programs of", "right ones refused (95%)", "wrong ones accepted (95%)")
    rows = []
    for row in policy_rows(decided.runs):
        counts = (_counted(row[name]) for name in ("right_refused", "wrong_accepted"))
        rows.append((f"`{row['policy']}`", for_markdown(row["programs_of"]), *counts))
    note = (
        "Right and wrong are what the problems' own tests say. The intervals (Wilson's) take programs as independent; "
        "those of one run resemble each other, so new runs would scatter more."
    )
    return [table(head, rows, 2), note] if rows else []


def _counted(mistake: dict[str, Any]) -> str:
    words = f"{mistake['count']:,} of {mistake['of']:,}"
    if mistake["interval"] is None:
        return words
    low, high = mistake["interval"]
    return f"{words} ({100 * low:.1f} to {100 * high:.1f}%)"


def page(scales: Sequence[Decided], figures: Figures, out: str) -> str:
    """Write the whole page. `out` names the folder in the commands that make it again."""
    parts = [
        "# Claims and verdicts",
        _counts(scales),
        "## What was run",
        *what_was_run([each.runs for each in scales]),
        *(_claim_sections(scales, figures) if any(each.decisions for each in scales) else ()),
        *study_sections(scales, figures),
        *asked_sections(scales),
        "## How claims are decided",
        HOW,
        commands([each.runs for each in scales], out),
    ]
    return "\n\n".join(parts) + "\n"


def _claim_sections(scales: Sequence[Decided], figures: Figures) -> Iterator[str]:
    yield "## Every claim"
    yield _claims_table(scales)
    yield READING
    yield from (
        picture(f"Effects at {each.name}", file) for each in scales for file in figures.get((each.name, ""), ())
    )
    yield "## Contradicted"
    yield "\n".join(_contradicted(scales)) or "No claim is."
    if len(scales) > 1:
        yield "## Where scales disagree"
        yield "\n".join(_disagreeing(scales)) or "On no claim."


def _counts(scales: Sequence[Decided]) -> str:
    counts = [Counter(decision.verdict for decision in each.decisions.values()) for each in scales]
    columns = [[each.name for each in scales], *([str(count[verdict]) for count in counts] for verdict in VERDICTS)]
    return table(("scale", *VERDICTS), zip(*columns, strict=True))


def _claims_table(scales: Sequence[Decided]) -> str:
    rows = []
    for name in in_order({key[0] for each in scales for key in each.decisions}):
        study = next(each.runs.studies[name] for each in scales if name in each.runs.studies)
        there = any(name in each.runs.studies and each.runs.studies[name].was_run for each in scales)
        title = for_markdown(study.title)
        rows.append(("", f"[**{title}**]({anchor(study.title)})" if there else f"**{title}**", *("" for _ in scales)))
        for claim in claims_of(scales, name):
            cells = (_cell(each, (name, claim.number)) for each in scales)
            rows.append((str(claim.number), for_markdown(claim.text), *cells))
    return table(("", "claim", *(each.name for each in scales)), rows, 2 + len(scales))


def _cell(decided: Decided, key: Key) -> str:
    decision = decided.decisions.get(key)
    if decision is None or decision.verdict == NOT_RUN:
        return NOT_RUN
    if decision.verdict == NOT_TESTABLE:
        return f"{NOT_TESTABLE}<br>{decision.words}"
    verdict = f"**{decision.verdict}**" if decision.verdict in (SUPPORTED, CONTRADICTED) else decision.verdict
    return f"{verdict}<br>{effect_words(*deciding_test(decision))}"


def _contradicted(scales: Sequence[Decided]) -> Iterator[str]:
    for each in scales:
        for key, decision in each.decisions.items():
            if decision.verdict == CONTRADICTED:
                test, effect = deciding_test(decision)
                yield (
                    f"- Claim {decision.claim.number} at {each.name}: **{for_markdown(decision.claim.text)}** "
                    f"{comparison(test)}: expected {expected_words(test)}, found {effect_words(test, effect)}; "
                    f"adjusted p against the claim {p_words(each.adjusted[key][1])}."
                )


def _disagreeing(scales: Sequence[Decided]) -> Iterator[str]:
    for key in dict.fromkeys(key for each in scales for key in each.decisions):
        found = {each.name: each.decisions[key] for each in scales if key in each.decisions}
        if {SUPPORTED, CONTRADICTED} <= {decision.verdict for decision in found.values()}:
            claim = next(iter(found.values())).claim
            verdicts = ", ".join(f"{decision.verdict} at {name}" for name, decision in found.items())
            yield f"- Claim {claim.number}: **{for_markdown(claim.text)}** {verdicts}."


HOW = f"""\
A claim is a list of tests that stood in the study's file before any run: a statistic of a run's metrics, the arms that
are compared, and what is expected of them. Arms share their seeds, so a difference is taken within each seed, and its
95% interval is Student's over the seeds. How far seeds lie apart is estimated from the study's other arms too, as much
as spreads are alike in this report (moderated t statistics, Smyth 2004). One-sided t tests say what speaks for a test
(the effect is not 0, and has the claimed direction; `same`: it lies within the size) and what speaks against it (it
falls short of the size; `same`: it lies beyond it). All tests of a claim must hold, so the largest p speaks for it; one
that fails is enough, so the smallest speaks against it, times their number. Over all claims of a scale the share of
false verdicts is held at {LEVEL:.0%} (Benjamini and Hochberg), for and against separately. The p values of this report
are adjusted for that, so that those of at most {LEVEL:g} count.

- **supported**: what speaks for it counts, and every estimate reaches the size that was written down (`same`: every
  interval lies within it).
- **contradicted**: what speaks against it counts: the effect is absent here, smaller than that size, or of the other
  sign.
- **undecided**: neither. The interval says how large an effect these runs leave possible; more seeds narrow it.
- **not testable**: a gate of the study does not hold in these runs, so that the effect could not appear. The claim
  counts neither as supported nor as contradicted, and makes no other claim harder to decide.
- **not run**: an arm has no finished run, or fewer than two seeds have numbers in all arms.

A verdict is one about these models, data and sizes. All of it again (settings that were given besides stand in each
run's `config.toml`):"""
