"""Studies are files that are read strictly, and become runs: each valid, and made once however many arms it serves."""

from __future__ import annotations

import contextlib
import io
import json
from types import SimpleNamespace

import pytest

from microcoder.cli import main
from microcoder.config import load
from microcoder.study.launch import filled, identify, missing, plan, shared
from microcoder.study.measures import parse
from microcoder.study.plan import FOLDER, ORDER, StudyError, find_scale, find_study, load_study, scales
from microcoder.training.plan import batches, stages_of

NANO, SMOLLM2 = find_scale("nano"), find_scale("smollm2")
ASPECTS = {"evaluator": 4, "temperature": 10, "data": 4, "context": 6, "truncation": 6, "batch": 2, "kl_clip": 2}
FILE = """
title = "Mine"
figure = 2
shared = ["train.steps=10", "data.train={varied}"]
measurements = ["judging"]
[at.smollm2]
shared = ["train.steps=4"]
measurements = []

[[arms]]
name = "first"
set = ["grpo.temperature=0.6"]
[[arms]]
name = "second"
label = "the second"
stages = [{ at = 0.25, temperature = 1.4 }, { at = 0.5, max_response_tokens = 32 }]
[arms.at.smollm2]
label = "the second, smaller"
stages = [{ at = 0.01, temperature = 1.4 }]
[[arms]]
name = "third"
after = "first"
set = ["grpo.temperature=0.5"]
ramp = 0.8

[[claims]]
number = 1
text = "The second is better."
[[claims.tests]]
statistic = "last(reward)"
of = "second"
against = "first"
expect = "more"
by = 0.1
"""


def study(folder, text=FILE, scale=NANO, extra=(), name="mine"):
    path = folder / f"{name}.toml"
    path.write_text(text)
    return load_study(path, scale, extra)


def config(arm):
    return load(None, filled(arm.settings, "out", "name"))


def stages(arm):
    return [stage.model_dump(exclude_none=True) for stage in config(arm).train.stages]


def microcoder(*args):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(arg) for arg in args])
    return SimpleNamespace(code=ended.value.code, out=out.getvalue(), err=err.getvalue())


# The package's studies


def test_the_34_claims_are_there_once_each_under_their_aspects():
    found = {name: [claim.number for claim in load_study(find_study(name), NANO).claims] for name in ORDER}
    assert {name: len(numbers) for name, numbers in found.items() if numbers} == ASPECTS
    assert [number for numbers in found.values() for number in numbers] == list(range(1, 35))


def test_every_file_of_the_folder_is_a_study_with_a_place():
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.toml" for name in ORDER}


@pytest.mark.parametrize("scale", scales().values(), ids=lambda scale: scale.name)
@pytest.mark.parametrize("name", ORDER)
def test_every_arm_is_a_configuration_that_can_be_trained_and_every_claim_can_be_measured(name, scale):
    found = load_study(find_study(name), scale)
    for arm in found.arms:
        settings = config(arm)
        assert batches(settings).updates >= 1
        assert all(stage.first_step <= settings.train.steps for stage in stages_of(settings))
    arms = {arm.name for arm in found.arms}
    for test in (test for claim in found.claims for test in claim.tests):
        assert parse(test.statistic) and set(test.arms) <= arms


@pytest.mark.parametrize("scale", scales().values(), ids=lambda scale: scale.name)
@pytest.mark.parametrize("name", ORDER)
def test_no_two_arms_of_a_study_are_the_same(name, scale):
    found = load_study(find_study(name), scale)
    assert len(plan([found], [0])[0]) == len(found.arms)


def test_the_hotter_test_of_the_middle_arm_changes_nothing_but_the_test():
    for scale in scales().values():
        arms = {arm.name: identify(config(arm)) for arm in load_study(find_study("temperature"), scale).arms}
        one, other = arms["middle"], arms["middle-tested-hot"]
        assert [name for name in one if one[name] != other[name]] == ["train.eval_temperature"]


# Reading a study


def test_a_study_has_what_its_file_says(tmp_path):
    found = study(tmp_path)
    assert (found.name, found.title, found.figure, found.about) == ("mine", "Mine", 2, "")
    assert [(arm.name, arm.label, arm.after) for arm in found.arms] == [
        ("first", "first", ""),
        ("second", "the second", ""),
        ("third", "third", "first"),
    ]
    assert [(claim.number, claim.study) for claim in found.claims] == [(1, "mine")]
    assert found.measurements == ("judging",)
    assert [config(arm).train.steps for arm in found.arms] == [10, 10, 10]


def test_another_scale_may_say_other_things(tmp_path):
    found = study(tmp_path, scale=SMOLLM2)
    assert found.measurements == ()
    assert config(found.arms[0]).train.steps == 4
    assert found.arms[1].label == "the second, smaller"
    assert stages(found.arms[1]) == [{"at_step": 2, "temperature": 1.4}]  # the first step has no stage before it


def test_stages_begin_at_a_share_of_the_steps(tmp_path):
    second = study(tmp_path).arms[1]
    assert stages(second) == [{"at_step": 3, "temperature": 1.4}, {"at_step": 6, "max_response_tokens": 32}]
    longer = study(tmp_path, FILE.replace("steps=10", "steps=20")).arms[1]
    assert [stage["at_step"] for stage in stages(longer)] == [6, 11]
    late = study(tmp_path, FILE.replace("at = 0.5, max", "at = 0.96, max")).arms[1]
    assert [stage["at_step"] for stage in stages(late)] == [3, 10]  # not after the end


def test_a_ramp_goes_to_its_end_by_equal_steps(tmp_path):
    third = study(tmp_path).arms[2]
    assert [stage["at_step"] for stage in stages(third)] == list(range(2, 11))
    temperatures = [config(third).grpo.temperature, *(stage["temperature"] for stage in stages(third))]
    assert temperatures == pytest.approx([0.5 + n / 30 for n in range(10)], abs=1e-4)


def test_extra_settings_give_way_to_those_of_the_study(tmp_path):
    found = study(tmp_path, extra=["train.steps=99", "train.lr=0.5", "grpo.temperature=0.7"])
    assert config(found.arms[0]).train.steps == 10
    assert config(found.arms[0]).train.lr == 0.5
    assert [config(arm).grpo.temperature for arm in found.arms] == [0.6, 0.7, 0.5]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "Mine"', 'titel = "Mine"', "unknown key 'titel'; did you mean 'title'?"),
        ('title = "Mine"', "title = 3", "title is 3; write it as text"),
        ("figure = 2", "figure = -1", "figure is -1"),
        ('["train.steps=10", "data.train={varied}"]', '"train.steps=10"', "shared is 'train.steps=10'; it must be"),
        ('"grpo.temperature=0.6"', '"data.train=starter"', "arm first: judging needs problems with varied answers"),
        ('["judging"]', '["juding"]', "measurements: unknown key 'juding'; did you mean 'judging'?"),
        ("[at.smollm2]", "[at.smolm2]", "at: unknown key 'smolm2'; did you mean 'smollm2'?"),
        ("[arms.at.smollm2]", "[arms.at.nano]\nafter = 'x'\n[arms.at.smollm2]", "at.nano: unknown key 'after'"),
        ('name = "second"', 'name = "first"', "arm first occurs twice"),
        ('name = "second"', "", "arm at place 2: name is missing"),
        ('name = "second"', 'name = "a/b"', "arm a/b: a name becomes part of a folder"),
        ('after = "first"', 'after = "frist"', "begins after 'frist', which is no arm before it; did you mean"),
        ('after = "first"', 'after = "third"', "begins after 'third', which is no arm before it"),
        ("ramp = 0.8", 'ramp = "hot"', "a ramp goes from grpo.temperature=0.5 to 'hot'"),
        ('"grpo.temperature=0.5"', '"grpo.temperature=auto"', "a ramp goes from grpo.temperature=auto to 0.8"),
        ("ramp = 0.8", "ramp = 99", "arm third: train.stages is"),
        ("at = 0.25", "at = 3", "a stage is {'at': 3"),
        ("{ at = 0.25, temperature", "{ temperature", "it begins at a share of the steps"),
        ("{ at = 0.25, temperature", "{ at = 0.25, temprature", "unknown key 'temprature' in table 1 of train.stages"),
        ('"grpo.temperature=0.6"', '"grpo.temprature=0.6"', "arm first: grpo.temprature=0.6: unknown key 'temprature'"),
        ('"grpo.temperature=0.6"', '"train.seed=3"', "an arm cannot set train.seed: --seeds says how many"),
        ('of = "second"', 'of = "secnd"', "claim 1, test 1: the study has no arm 'secnd'; did you mean 'second'?"),
        (FILE[FILE.index("[[arms]]") : FILE.index("[[claims]]")], "", "there is no table of arms; write [[arms]]"),
        ("[[claims]]", "[[claims]", "is not TOML"),
    ],
)
def test_a_study_that_cannot_be_used_names_its_file_and_the_remedy(tmp_path, old, new, words):
    assert FILE.count(old) == 1
    with pytest.raises(StudyError) as error:
        study(tmp_path, FILE.replace(old, new))
    assert str(tmp_path / "mine.toml") in str(error.value) and words in str(error.value)


# Arms become runs


def test_a_run_for_each_arm_and_seed_and_a_later_one_begins_with_the_weights_of_its_own_seed(tmp_path):
    runs, where = plan([study(tmp_path)], [0, 7])
    names = [f"mine.{arm}.{seed}" for seed in (0, 7) for arm in ("first", "second", "third")]
    assert [run.name for run in runs] == names == list(where.values())
    assert [run.after for run in runs] == ["", "", "mine.first.0", "", "", "mine.first.7"]
    made = load(None, filled(runs[5].settings, "/out/nano", runs[5].name))
    assert (made.model.name, made.train.seed) == ("/out/nano/runs/mine.first.7", 7)
    assert (made.train.folder, made.train.name) == ("/out/nano/runs", "mine.third.7")
    assert load(None, filled(runs[1].settings, "/out/nano", "x")).data.train == "/out/nano/varied.jsonl"


def test_arms_with_the_same_settings_share_a_run_whichever_studies_they_are_in(tmp_path):
    again = '[[arms]]\nname = "again"\nset = ["grpo.temperature=0.6", "train.steps=10", "data.train={varied}"]\n'
    studies = [study(tmp_path), study(tmp_path, again, name="other")]
    runs, where = plan(studies, [0, 1])
    assert len(runs) == 6
    assert where["other", "again", 1] == "mine.first.1"
    assert shared(where) == ["mine/first, other/again: the same settings, so that one run serves them all"]
    assert next(run for run in runs if run.name == "mine.first.0").measurements == {"judging"}


@pytest.mark.parametrize(
    ("setting", "another"),
    [
        ("train.micro_batch_size=16", False),
        ("rollout.memory=0.3", False),
        ("judge.workers=7", False),
        ("grpo.preset=grpo_plus", True),  # no KL, a wider clip
        ("train.lr=3e-4", True),
    ],
)
def test_only_what_changes_a_runs_findings_makes_it_another_run(setting, another):
    base = ["grpo.preset=grpo", "train.lr=1e-4"]
    assert (identify(load(None, base)) != identify(load(None, [*base, setting]))) == another


def test_a_preset_is_the_settings_that_it_stands_for():
    spelled = ["grpo.preset=grpo_plus", "grpo.kl=0.001", "grpo.eps_high=0.2"]
    assert identify(load(None, spelled)) == identify(load(None, ["grpo.preset=grpo"]))


def test_a_run_that_is_there_is_known_by_its_settings(tmp_path):
    found = study(tmp_path)
    runs, _ = plan([found], [0])
    one, two = (identify(load(None, filled(run.settings, "/elsewhere", run.name))) for run in runs[:2])
    _, where = plan([found], [0], {"b.0": one, "c.0": two})
    assert list(where.values()) == ["b.0", "c.0", "mine.third.0"]
    _, where = plan([found], [0], {"b.0": one, "mine.first.0": one})
    assert where["mine", "first", 0] == "mine.first.0"


def test_how_often_a_run_is_saved_or_how_it_is_judged_at_once_makes_no_other_run_of_it(tmp_path):
    runs, _ = plan([study(tmp_path)], [0])
    there = {run.name: identify(load(None, filled(run.settings, "/x", run.name))) for run in runs[:2]}
    again = study(tmp_path, extra=["judge.workers=9", "train.save_every=3", "train.trackers=['x']"])
    assert plan([again], [0], there)[0][0].name == "mine.first.0"


def test_a_run_made_with_other_settings_is_refused_by_name(tmp_path):
    runs, _ = plan([study(tmp_path)], [0])
    there = {run.name: identify(load(None, filled(run.settings, "/x", run.name))) for run in runs[:2]}
    words = r"the run mine\.first\.0 is there, made with other settings: train\.lr was 0\.0002, now 0\.5; name another"
    with pytest.raises(StudyError, match=words):
        plan([study(tmp_path, extra=["train.lr=0.5"])], [0], there)


def test_a_scale_may_name_files_in_its_folder_and_its_runs_are_known_wherever_that_is(tmp_path):
    found = load_study(find_study("batch"), find_scale("testbed-small"))
    assert [path.name for path in missing([found], tmp_path)] == ["model", "test.jsonl", "train.jsonl"]
    other = load_study(find_study("batch"), find_scale("testbed-small"), ["model.name=nano"])
    assert [path.name for path in missing([other], tmp_path)] == ["test.jsonl", "train.jsonl"]
    for name in ("model", "test.jsonl", "train.jsonl"):
        (tmp_path / "bed").mkdir(exist_ok=True)
        (tmp_path / "bed" / name).touch()
    assert missing([found], tmp_path) == []
    runs, _ = plan([found], [0])
    config = load(None, filled(runs[0].settings, tmp_path, runs[0].name))
    assert config.data.test == f"{tmp_path}/bed/test.jsonl"
    there = {runs[0].name: identify(config)}
    assert plan([found], [0], there)[0][0].name == runs[0].name


def test_two_studies_of_one_name_are_refused(tmp_path):
    with pytest.raises(StudyError, match="the same name"):
        plan([study(tmp_path), study(tmp_path)], [0])


# The commands that run nothing


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["trunctation"], "there is no study 'trunctation'; did you mean 'truncation'?"),
        (["zzz"], "there are evaluator, temperature"),
        (["none.toml"], "cannot read none.toml: No such file"),
        ([], "name a study: evaluator"),
        (["all", "--scale", "nan"], "there is no scale 'nan'; did you mean 'nano'?"),
        (["batch", "--scale", "smollm2", "data.test=x"], "the scale smollm2 does not say data.train"),
        (
            ["batch", "--scale", "testbed-small"],
            "studies-out/testbed-small/bed/model is missing; to make it, from a clone of the project: "
            "python -m benchmarks.testbed pretrain --out studies-out/testbed-small/bed --size tiny",
        ),
        (["batch", "train.stesp=3"], "on the command line: train.stesp=3: unknown key 'stesp'"),
        (["batch", "train.name=x"], "on the command line: an arm cannot set train.name"),
        (["batch", "--seeds", "0"], "--seeds"),
    ],
)
def test_a_command_that_cannot_be_carried_out_says_what_to_type(tmp_path, monkeypatch, args, words):
    monkeypatch.chdir(tmp_path)
    done = microcoder("study", "run", *args)
    assert done.code == 2
    assert words in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_lists_each_run_once_and_makes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = microcoder("study", "run", "context", "truncation", "--seeds", 2, "--dry-run")
    assert done.code == 0
    assert done.out.count("to be made\n") == 27  # 2 * (6 + 8 - 1) runs, and the sum
    assert "context/medium, truncation/none: the same settings" in done.out
    assert "26 runs in studies-out/nano: 26 to be made" in done.out
    assert list(tmp_path.iterdir()) == []


def test_seeds_can_begin_with_any_number_so_that_machines_share_them_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = microcoder("study", "run", "batch", "--first-seed", 3, "--seeds", 2, "--dry-run")
    named = {line.split()[0] for line in done.out.splitlines() if line.startswith("  batch.")}
    assert named == {f"batch.{arm}.{seed}" for arm in ("on-policy", "between", "off-policy") for seed in (3, 4)}


def test_ls_shows_every_study_and_claim_and_what_decides_it():
    done = microcoder("study", "ls")
    assert done.code == 0
    for name in ORDER:
        assert f"\n  {name} " in done.out
        for claim in load_study(find_study(name), NANO).claims:
            assert f"\n{claim.number:4}  {claim.text}\n" in done.out
    assert "mask-20 \N{MINUS SIGN} none: at least +2 points\n" in done.out


def test_ls_shows_the_verdicts_of_a_report_that_is_there(tmp_path):
    assert microcoder("study", "ls", "--out", tmp_path).out == microcoder("study", "ls").out
    report = {"scales": {"nano": {"claims": [{"study": "batch", "number": 31, "verdict": "contradicted"}]}}}
    (tmp_path / "report.json").write_text(json.dumps(report))
    claim = next(claim for claim in load_study(find_study("batch"), NANO).claims if claim.number == 31)
    assert f"{claim.text} [contradicted]\n" in microcoder("study", "ls", "--out", tmp_path).out
    assert "[contradicted]" not in microcoder("study", "ls", "--out", tmp_path, "--scale", "smollm2").out
    found = json.loads(microcoder("study", "ls", "--out", tmp_path, "--json").out)
    assert [claim.get("verdict") for claim in found["studies"]["batch"]["claims"]] == ["contradicted", None]
    (tmp_path / "report.json").write_text("[]")
    assert "write it again: microcoder study report" in microcoder("study", "ls", "--out", tmp_path).err
