"""`microcoder study report`: synthetic runs whose effects are known, and what the page and its numbers say of them."""

from __future__ import annotations

import json
import math
import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from study_runs import arm_of, finished, lines

from microcoder.cli.study import report
from microcoder.runs import Run, read_metrics
from microcoder.study.asked import by_diversity, mask_rows, policy_rows
from microcoder.study.effects import Effect
from microcoder.study.figures import boundaries
from microcoder.study.measures import measure
from microcoder.study.page import accuracy_words, anchor, claims_of, commands
from microcoder.study.phrases import p_words
from microcoder.study.plan import Claim, find_study
from microcoder.study.report import curves_of, in_pages, write_report
from microcoder.study.results import (
    ArmRuns,
    Decided,
    FinishedRun,
    ScaleRuns,
    StudyRuns,
    decide_scale,
    forest_rows,
    gather_scale,
)

OWN = """
title = "Masks: some | all"
about = "One mask, and none."
[[arms]]
name = "none"
[[arms]]
name = "mask"
label = "some are masked"
[arms.at.smollm2]
label = "few are masked"
[[arms]]
name = "later"
[[claims]]
number = 1
text = "The mask ends higher."
[[claims.tests]]
statistic = "last(test_accuracy)"
of = "mask"
against = "none"
expect = "more"
by = 0.02
[[claims]]
number = 2
text = "The mask earns a_lot."
[[claims.tests]]
statistic = "mean(reward)"
of = "mask"
against = "none"
expect = "more"
by = 0.1
[[claims]]
number = 3
text = "The mask keeps D."
[[claims.tests]]
statistic = "last(diversity)"
of = "mask"
against = "none"
expect = "more"
by = 0.0
[[claims]]
number = 4
text = "Later is the same."
[[claims.tests]]
statistic = "last(test_accuracy)"
of = "later"
against = "none"
expect = "same"
by = 0.02
"""
SEEDS = range(5)


def write_run(folder, name, metrics, status="finished", config="[train]\n", **info):
    hardware = {"hardware": {"machine": "x86_64", "cores": 16, "gpus": []}}
    with Run.create(folder / "runs" / name, config, {**hardware, **info}) as run:
        for line in metrics:
            run.log(line["step"], line)
    summary = {"status": status, "model": "nano", "steps": metrics[-1]["step"], "train_seconds": 100.0}
    (folder / "runs" / name / "summary.json").write_text(json.dumps(summary))


def write_study(folder, name, text, arms):
    """A study of the scale's folder; `arms` are {arm: [a run's metrics, for each seed]}."""
    (folder / "studies").mkdir(parents=True, exist_ok=True)
    (folder / "studies" / f"{name}.toml").write_text(text)
    plan = folder / "plan.json"
    planned = json.loads(plan.read_text()) if plan.exists() else {}
    for arm, runs in arms.items():
        for seed, metrics in enumerate(runs):
            planned[f"{name}/{arm}/{seed}"] = f"{name}.{arm}.{seed}"
            write_run(folder, f"{name}.{arm}.{seed}", metrics)
    plan.write_text(json.dumps(planned))
    return folder


def own(out, scale, gain):
    arms = {arm: [lines(0.1 + gain * (arm == "mask"), seed, arm) for seed in SEEDS] for arm in ("none", "mask")}
    return write_study(out / scale, "masks", OWN, arms)


def shipped(folder, name, arms):
    return write_study(folder, name, find_study(name).read_text(), arms)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Two scales: the mask helps at nano and harms at smollm2. One run of nano is not finished."""
    folder = tmp_path_factory.mktemp("report") / "studies-out"
    own(folder, "nano", gain=0.1)
    own(folder, "smollm2", gain=-0.1)
    plan = folder / "nano" / "plan.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"masks/mask/5": "masks.mask.5"}))
    write_run(folder / "nano", "masks.mask.5", lines(0.1, 5, "mask")[:3], status="stopped")
    return folder


@pytest.fixture(scope="module")
def written(out):
    """The report's page, and its numbers."""
    _, page = write_report(out)
    return page.read_text(), json.loads((out / "report.json").read_text())


def rows(page, heading):
    """The cells of the first table under a heading."""
    parts = page[page.index(f"{heading}\n") :].split("\n\n")[1:]
    head, _, *lines = next(part for part in parts if part.startswith("|")).splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in (head, *lines)]


def verdicts(numbers, scale):
    return [claim["verdict"] for claim in numbers["scales"][scale]["claims"]]


# ---- what is decided


def test_a_planted_effect_is_supported_an_absent_one_contradicted_noise_undecided_and_a_missing_arm_not_run(written):
    page, numbers = written
    assert verdicts(numbers, "nano") == ["supported", "contradicted", "undecided", "not run"]
    assert verdicts(numbers, "smollm2") == ["contradicted", "contradicted", "undecided", "not run"]
    assert rows(page, "# Claims and verdicts")[1:] == [
        ["nano", "1", "1", "1", "0", "1"],
        ["smollm2", "0", "2", "1", "0", "1"],
    ]


def test_effects_are_those_that_measure_gives_by_hand(out, written):
    page, numbers = written
    runs = out / "nano" / "runs"
    last = {
        arm: [measure("last(test_accuracy)", read_metrics(runs / f"masks.{arm}.{seed}")) for seed in SEEDS]
        for arm in ("none", "mask")
    }
    differences = np.subtract(last["mask"], last["none"])
    (test,) = numbers["scales"]["nano"]["claims"][0]["tests"]
    reach = 2.776445 * differences.std(ddof=1) / math.sqrt(5)
    assert test["values"] == pytest.approx(differences.tolist())
    estimate, low, high = (test[name] for name in ("estimate", "low", "high"))
    assert (estimate, low, high) == pytest.approx(
        (differences.mean(), differences.mean() - reach, differences.mean() + reach)
    )
    shown = f"+{100 * estimate:.2f} points (+{100 * low:.2f} to +{100 * high:.2f})"
    assert rows(page, "## Every claim")[2][2] == f"**supported**<br>{shown}"
    accuracy = rows(page, "### Masks: some \\| all at nano")[2][3]
    assert accuracy.startswith(f"{100 * np.mean(last['mask']):.1f}% (")


def test_the_table_of_arms_has_their_labels_at_the_scale_and_the_numbers_of_measure(written):
    page, _ = written
    small, large = (rows(page, f"### Masks: some \\| all at {scale}") for scale in ("nano", "smollm2"))
    assert [row[0] for row in small[1:]] == ["`none`", "`mask` some are masked", "`later`"]
    assert large[2][0] == "`mask` few are masked"
    assert small[2][1:3] == ["5", "10.0%"]
    assert [small[2][n] for n in (4, 6, 7, 9)] == ["54", "25.0%", "12.5%", "2.00"]
    assert small[3][1:] == ["0", *[""] * 8]


def test_contradictions_and_disagreements_of_scales_are_said_plainly(written):
    page, _ = written
    contradicted = page[page.index("## Contradicted") : page.index("## Where scales disagree")]
    assert len(re.findall("^- ", contradicted, re.MULTILINE)) == 3
    words = "- Claim 2 at nano: **The mask earns a\\_lot.** `mean(reward)`, mask − none: expected at least +0.1, found "
    assert words in contradicted
    disagree = page[page.index("## Where scales disagree") : page.index("## Masks")].split("\n\n")[1]
    assert disagree == "- Claim 1: **The mask ends higher.** supported at nano, contradicted at smollm2."


def test_each_claim_tells_its_test_the_expectation_the_effect_and_the_adjusted_p(written):
    page, numbers = written
    claim = page[page.index("**3. The mask keeps D.**") : page.index("**4. Later")]
    assert "| nano | `last(diversity)`, mask − none | more than 0 |" in claim
    found = numbers["scales"]["nano"]["claims"][2]
    holds, fails = p_words(found["adjusted_for"]), p_words(found["adjusted_against"])
    undecided = "- nano: **undecided**: it is shown neither to hold nor to fail;"
    assert f"{undecided} adjusted p for it {holds}, against it {fails}." in claim
    assert "- nano: **not run**: study 'masks' has no runs of later." in page


def test_an_unfinished_run_is_left_out_counted_and_named(out, written):
    page, numbers = written
    assert numbers["scales"]["nano"]["runs"] == {"planned": 11, "finished": 10, "unfinished": ["masks.mask.5"]}
    assert "Left out at nano, since unfinished: `masks.mask.5`." in page
    nano = rows(page, "## What was run")[1]
    assert nano == ["nano", "nano", "16 cores x86\\_64", "1", "5", "4", "10 of 11", "17 min"]


def test_the_page_ends_with_the_commands_that_make_it_again(written):
    page, _ = written
    assert page.endswith(
        "```\nmicrocoder study ls\n"
        "microcoder study run masks.toml --scale nano --seeds 5 --out studies-out\n"
        "microcoder study run masks.toml data.train=FILE data.test=FILE --scale smollm2 --seeds 5 --out studies-out\n"
        "microcoder study report studies-out\n```\n"
    )


def test_a_study_with_other_arms_than_the_packages_is_named_by_its_file_and_the_scale_by_what_makes_its_model():
    def runs(name, *arms):
        made = {arm: ArmRuns(arm, arm, {0: FinishedRun(f"{name}.{arm}.0", [], {}, {}, {}, {})}) for arm in arms}
        return StudyRuns(name, name, 0, "", made, ())

    studies = {"context": runs("context", "short", "long"), "truncation": runs("truncation", "none", "mask-50")}
    found = commands([ScaleRuns("testbed-small", studies, 4, [])], "out").split("\n")
    assert found[2:4] == [
        "python -m benchmarks.testbed pretrain --out out/testbed-small/bed --size tiny --most 8",
        "microcoder study run context out/testbed-small/studies/truncation.toml "
        "--scale testbed-small --seeds 1 --out out",
    ]


def test_a_claim_that_only_one_scales_study_makes_is_on_the_page():
    def at(scale, *numbers):
        claims = tuple(Claim(number, f"claim {number} at {scale}", "truncation", ()) for number in numbers)
        runs = ScaleRuns(scale, {"truncation": StudyRuns("truncation", "", 0, "", {}, claims)}, 0, [])
        return Decided(runs, {}, {}, 0.0)

    found = claims_of([at("nano", 26, 25), at("testbed-small", 25, 101)], "truncation")
    assert [claim.text for claim in found] == ["claim 25 at nano", "claim 26 at nano", "claim 101 at testbed-small"]


# ---- files


def test_every_figure_lies_beside_the_page_and_every_link_leads_somewhere(out, written):
    page, _ = written
    links = set(re.findall(r"\((report/[^)]+)\)", page))
    names = [f"{scale}-{what}" for scale in ("nano", "smollm2") for what in ("effects", "masks")]
    assert links == {f"report/{name}.{end}" for name in names for end in ("png", "svg")}
    assert all((out / link).stat().st_size > 1000 for link in links)
    headings = {anchor(heading) for heading in re.findall("^#+ (.*)$", page, re.MULTILINE)}
    assert set(re.findall(r"\((#[^)]+)\)", page)) <= headings
    assert "figure 0" not in (out / "report" / "nano-masks.svg").read_text()


def test_the_same_runs_give_the_same_bytes(out, written, tmp_path):
    copy = tmp_path / "studies-out"
    shutil.copytree(out, copy, ignore=shutil.ignore_patterns("report*", "smollm2"))
    again = tmp_path / "again" / "studies-out"
    shutil.copytree(copy, again)
    for folder in (copy, again):
        write_report(folder)
    files = [path.relative_to(copy) for path in (*copy.glob("report.*"), *copy.glob("report/*"))]
    assert len(files) == 6
    assert all((copy / name).read_bytes() == (again / name).read_bytes() for name in files)


def test_a_page_elsewhere_has_its_figures_beside_it_and_its_numbers_stay_with_the_runs(out, tmp_path):
    alone = tmp_path / "out"
    shutil.copytree(out / "nano", alone / "nano")
    write_report(alone, tmp_path / "docs" / "claims.md", figures=False)
    assert [path.name for path in (tmp_path / "docs").iterdir()] == ["claims.md"]
    assert "![" not in (tmp_path / "docs" / "claims.md").read_text()
    assert (alone / "report.json").exists() and not (alone / "report.md").exists()
    assert "Where scales disagree" not in (tmp_path / "docs" / "claims.md").read_text()


def test_a_study_that_claims_nothing_is_reported_without_tables_of_claims(tmp_path):
    bare = OWN[: OWN.index("[[claims]]")]
    write_study(tmp_path / "nano", "masks", bare, {"none": [lines(0.1, 0, "none")]})
    _, path = write_report(tmp_path, figures=False)
    page = path.read_text()
    assert "## Every claim" not in page and "## What readers" not in page
    assert rows(page, "### Masks: some \\| all at nano")[1][:4] == ["`none`", "1", "10.0%", accuracy_of(tmp_path)]


def accuracy_of(out):
    """One seed has no interval."""
    return f"{100 * read_metrics(out / 'nano' / 'runs' / 'masks.none.0')[-1]['test_accuracy']:.1f}%"


# ---- refusals


def refused(*args):
    done = CliRunner().invoke(report, [str(arg) for arg in args], standalone_mode=True)
    assert done.exit_code == 2 and isinstance(done.exception, SystemExit)
    return done.output


def test_what_is_no_folder_of_studies_is_refused_with_what_to_name_instead(tmp_path, out):
    assert "there is no folder" in refused(tmp_path / "none")
    assert "holds no studies" in refused(tmp_path)
    assert f"name the folder above, {out}" in refused(out / "nano")
    assert "'page.html' does not end in .md; name it page.html.md" in refused(out, "-o", tmp_path / "page.html")


def test_studies_without_a_finished_run_are_refused(tmp_path):
    write_study(tmp_path / "nano", "masks", OWN, {})
    (tmp_path / "nano" / "plan.json").write_text('{"masks/none/0": "masks.none.0"}')
    assert "none of the 1 runs" in refused(tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("plan.json", "{", "plan.json"),
        ("plan.json", "[1]", "plan.json"),
        ("studies/masks.toml", None, "cannot read"),
        ("studies/masks.toml", "title = ", "is not TOML"),
        ("studies/masks.toml", OWN.replace("mean(reward)", "mean(rewrad)"), "did you mean 'reward'?"),
        ("runs/masks.none.0/metrics.jsonl", "nothing\n", "metrics.jsonl:1"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, file, text, words):
    folder = write_study(tmp_path / "nano", "masks", OWN, {"none": [lines(0.1, 0, "none")]})
    (folder / file).unlink() if text is None else (folder / file).write_text(text)
    assert words in refused(tmp_path, "--no-figures")


def test_the_command_prints_the_counts_and_where_the_page_is(out, written):
    done = CliRunner().invoke(report, [str(out), "--no-figures", "-o", str(out / "again.md")])
    assert done.exit_code == 0
    table = [line.split() for line in done.output.splitlines()[:4]]
    assert table == [
        ["nano"],
        ["claims", "of", "supported", "contradicted", "undecided", "not", "testable", "not", "run"],
        ["masks", "1", "1", "1", "1"],
        ["all", "1", "1", "1", "0", "1"],
    ]
    assert "nano: 1 of 11 runs are unfinished, and left out" in done.output
    assert f"the page: {out / 'again.md'}; its numbers: {out / 'report.json'}" in done.output
    printed = CliRunner().invoke(report, [str(out), "--no-figures", "-o", str(out / "again.md"), "--json"])
    assert json.loads(printed.output) == written[1]


GATES = """
[[gates]]
text = "The mask takes out enough."
statistic = "mean(masked_share)"
of = "mask"
at_least = 0.2
claims = [2]
[gates.at.smollm2]
at_least = 0.1
[[gates]]
text = "The limit bites."
statistic = "mean(truncated_share)"
of = "none"
at_least = 0.03
"""


def test_a_claim_whose_gate_fails_at_a_scale_is_not_testable_there_and_no_contradiction(tmp_path):
    arms = {arm: [lines(0.1 + 0.1 * (arm == "mask"), seed, arm) for seed in SEEDS] for arm in ("none", "mask")}
    for scale in ("nano", "smollm2"):  # the share masked is 0.125
        write_study(tmp_path / scale, "masks", OWN + GATES, arms)
    _, path = write_report(tmp_path)
    page, numbers = path.read_text(), json.loads((tmp_path / "report.json").read_text())
    assert verdicts(numbers, "nano") == ["supported", "not testable", "undecided", "not run"]
    assert verdicts(numbers, "smollm2") == ["supported", "contradicted", "undecided", "not run"]
    claim = numbers["scales"]["nano"]["claims"][1]
    assert (claim["p_against"], claim["adjusted_against"]) == (None, None)
    assert claim["words"] == "mean(masked_share) of mask: 0.125, needed at least 0.2"
    gates = numbers["scales"]["nano"]["studies"]["masks"]["gates"]
    assert [(gate["found"], gate["holds"]) for gate in gates] == [(0.125, False), (0.25, True)]
    assert "Claim 2 at nano" not in page and "Claim 2 at smollm2" in page
    assert "- nano: **not testable**: mean(masked_share) of mask: 0.125, needed at least 0.2." in page
    assert "| The limit bites. | `mean(truncated_share) of none: 0.25, needed at least 0.03` | holds | all |" in page
    (row,) = [row for row in forest_rows(decide_scale(gather_scale(tmp_path / "nano"))) if "a_lot" in row["label"]]
    assert (row["verdict"], row["estimate"]) == ("not testable", None)


# ---- the package's own studies


def test_with_one_of_the_papers_studies_all_34_claims_are_listed(tmp_path):
    arms = {arm: [lines(gain, seed, arm) for seed in (0, 1)] for arm, gain in (("none", 0.1), ("mask-20", 0.2))}
    shipped(tmp_path / "nano", "truncation", arms)
    (decided,), page = write_report(tmp_path, figures=False)
    assert sorted(number for _, number in decided.decisions) == list(range(1, 35))
    assert {key[0] for key, each in decided.decisions.items() if each.verdict != "not run"} <= {"truncation"}
    text = page.read_text()
    assert [row[0] for row in rows(text, "## Every claim")[1:] if row[0]] == [str(n) for n in range(1, 35)]
    assert [line for line in text.splitlines() if line.startswith("At nano")] == [
        "At nano:",
        *["At nano: not run."] * 2,
    ]
    mask = rows(text, "### The mask, condition by condition")
    assert [row[0] for row in mask[1:]] == ["no mask", "conditional, 20%"]
    (none, twenty) = mask_rows(decided)
    assert none["against"]["mask-20"].estimate == pytest.approx(-twenty["against"]["none"].estimate)
    assert twenty["against"]["none"].estimate == pytest.approx(0.1, abs=0.02)
    assert mask[1][2].startswith("−") and mask[1][3] == ""


def test_t_of_d_is_held_against_temperatures_that_stay_and_are_tested_alike(tmp_path):
    def settings(temperature, **train):
        return {"grpo": {"temperature": temperature}, "train": {"eval_temperature": 0.2, "stages": [], **train}}

    def arm(name, gain, config, stages=()):
        info = {"stages": [{"first_step": step, "temperature": t} for step, t in stages]}
        return arm_of(name, [finished(lines(gain, seed, name), config=config, info=info) for seed in SEEDS])

    arms = (
        arm("by-diversity", 0.3, settings("auto"), [(1, 1.0), (5, 1.2)]),
        arm("cold", 0.1, settings(0.6)),
        arm("up", 0.2, settings(0.6, stages=[{"at_step": 4, "temperature": 1.0}])),
        arm("tested-hot", 0.1, settings(0.6, eval_temperature=1.4)),
    )
    study = StudyRuns("temperature", "Temperature", 3, "", {each.name: each for each in arms}, ())
    found = by_diversity(decide_scale(ScaleRuns("nano", {"temperature": study}, 0, [])))
    assert [row["arm"] for row in found["against"]] == ["cold"]
    assert found["against"][0]["gain"].estimate == pytest.approx(0.2, abs=0.02)
    assert found["chosen"] == {seed: [[1, 1.0], [5, 1.2]] for seed in SEEDS}


def test_shares_of_styles_join_the_metrics_of_their_steps(tmp_path):
    arms = {arm: [lines(0.1, seed, arm) for seed in range(2)] for arm in ("none", "mask")}
    folder = write_study(tmp_path / "nano", "masks", OWN, arms)
    (folder / "styles").mkdir()
    shares = {step: {"trace_share": step / 8} for step in range(1, 5)}
    (folder / "styles" / "masks.mask.1.json").write_text(json.dumps(shares))
    found = gather_scale(folder).values("masks", "mask", "last(trace_share) - first(trace_share)")
    assert found[1] == 4 / 8 - 1 / 8 and math.isnan(found[0])
    write_report(tmp_path)
    drawn = (tmp_path / "report" / "nano-masks.svg").read_text()
    assert ">Share of traces<" in drawn and ">Share of loops<" in drawn


def test_mistakes_of_the_policies_are_added_up_over_runs_and_join_the_metrics(tmp_path):
    counts = {"programs": 100, "right": 40, "faults": 0}
    for policy, refused_, accepted in (("exact", 30, 0), ("robust", 0, 0), ("paper", 0, 6)):
        counts |= {f"{policy}_right_refused": refused_, f"{policy}_wrong_accepted": accepted}
        counts |= {f"{policy}_mistaken": (refused_ + accepted) / 100}
    arms = {arm: [lines(0.1, seed, arm) for seed in range(2)] for arm in ("exact", "robust")}
    folder = shipped(tmp_path / "nano", "evaluator", arms)
    (folder / "judged").mkdir()
    for seed in range(2):
        (folder / "judged" / f"evaluator.robust.{seed}.json").write_text(json.dumps(counts))
    scale = gather_scale(folder)
    assert scale.values("evaluator", "robust", "last(exact_mistaken) - last(robust_mistaken)") == {0: 0.3, 1: 0.3}
    found = {row["policy"]: row for row in policy_rows(scale) if row["programs_of"] == "all arms"}
    assert (found["exact"]["right_refused"]["count"], found["exact"]["right_refused"]["of"]) == (60, 80)
    assert (found["paper"]["wrong_accepted"]["count"], found["paper"]["wrong_accepted"]["of"]) == (12, 120)
    write_report(tmp_path, figures=False)
    policies = rows((tmp_path / "report.md").read_text(), "### What each judging policy gets wrong")
    assert ["`paper`", "all arms", "0 of 80 (0.0 to 4.6%)", "12 of 120 (5.8 to 16.7%)"] in policies


# ---- figures


def test_the_forest_plot_shows_the_deciding_test_in_standard_deviations_between_seeds_as_claimed(out):
    decided = decide_scale(gather_scale(out / "smollm2"))
    row = forest_rows(decided)[0]
    arms = [list(decided.runs.values("masks", arm, "last(test_accuracy)").values()) for arm in ("mask", "none")]
    spread = math.sqrt((np.var(arms[0], ddof=1) + np.var(arms[1], ddof=1)) / 2)
    assert row["estimate"] == pytest.approx((np.mean(arms[0]) - np.mean(arms[1])) / spread)
    assert row["low"] < row["estimate"] < row["high"] < 0
    assert (row["aspect"], row["label"]) == ("Masks: some | all", "1. The mask ends higher.")
    assert forest_rows(decided)[3]["estimate"] is None
    for arm in decided.runs.studies["masks"].arms.values():
        arm.runs.clear()
    assert "Masks: some | all" not in {row["aspect"] for row in forest_rows(decided)}


def test_arms_too_many_for_a_figure_lose_those_that_train_alike_and_else_fill_several():
    def study(configs):
        arms = [arm_of(str(n), [finished([], config={"train": config})]) for n, config in enumerate(configs)]
        return StudyRuns("s", "S", 0, "", {arm.name: arm for arm in arms}, ())

    def sizes(configs):
        return [len(page) for page in in_pages(study(configs))]

    different = [{"lr": n, "eval_temperature": 0.2} for n in range(12)]
    hot = {"lr": 0, "eval_temperature": 1.4, "name": "hot"}
    assert sizes([*different[:8], hot]) == [9]
    assert sizes([*different[:9], hot]) == [9]
    assert sizes([*different[:10], hot]) == [5, 5]
    assert sizes(different) == [6, 6]


def test_a_ramp_is_drawn_without_a_stage_at_each_step():
    ramp = [{"step": step, "temperature": 0.6 + step / 100} for step in range(9)]
    staged = [{"step": step, "temperature": 0.6 + (step > 4)} for step in range(9)]
    assert boundaries(curves_of(arm_of("ramp", [finished(ramp)]))) == []
    assert boundaries(curves_of(arm_of("staged", [finished(staged)]))) == [4.5]


def test_the_interval_of_an_accuracy_ends_where_accuracies_do():
    assert accuracy_words(Effect(0.317, -1.468, 2.102, (2, 3), (0.457, 0.176))) == "31.7% (0.0 to 100.0)"
    assert accuracy_words(Effect(0.317, 0.2, 0.43, (2, 3), (0.3, 0.33))) == "31.7% (20.0 to 43.0)"
