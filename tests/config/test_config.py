"""Settings: three layers, and errors that say what to type."""

from __future__ import annotations

import itertools
import os
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.config import (
    ABOUT,
    PRESETS,
    Config,
    ConfigError,
    StageConfig,
    configuration,
    load,
    parse_setting,
    settings,
    to_toml,
    toml_value,
    usable_cores,
)
from microcoder.config.layers import about, shipped


def write(tmp_path, text):
    path = tmp_path / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_overrides_the_defaults_and_the_command_line_overrides_the_file(tmp_path):
    path = write(tmp_path, "[judge]\nworkers = 3\nmemory_mb = 256\n")
    config = load(path, ["judge.workers=5"])
    assert (config.judge.workers, config.judge.memory_mb, config.judge.policy) == (5, 256, "robust")


def test_the_file_of_an_older_run_may_hold_a_key_that_is_gone(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('[grpo]\ntemperature = "auto"\ndiversity_target = 0.3\n')
    assert load(path).grpo.temperature == "auto"


def test_the_last_of_two_settings_counts():
    assert load(None, ["judge.workers=2", "judge.workers=3"]).judge.workers == 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b=4", 4),
        ("a.b=4.5", 4.5),
        ("a.b=true", True),
        ("a.b=exact", "exact"),
        ('a.b="4"', "4"),
        ("a.b=[1, 2]", [1, 2]),
        ("a.b={c = 1}", {"c": 1}),
        ("a.b=", ""),
        ("a.b=x=y", "x=y"),
        ("a.b=2026-01-01", "2026-01-01"),
        ("a.b=1\nother = 2", "1\nother = 2"),
    ],
)
def test_a_value_is_toml_or_else_text(text, value):
    assert parse_setting(text) == (("a", "b"), value)


def test_a_whole_number_will_do_where_a_number_is_expected():
    assert load(None, ["judge.time_limit_s=2"]).judge.time_limit_s == 2.0


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("judge.wokers=4", ["'wokers'", "[judge]", "did you mean 'workers'"]),
        ("jugde.workers=4", ["'jugde'", "did you mean 'judge'"]),
        ("judge.zzz=4", ["'zzz'", "known are workers, policy"]),
        ("workers=4", ["write judge.workers=4"]),
        ("verbose", ["section.key=value", "judge.workers=4"]),
        ("judge.workers=many", ['"many" (text)', "a whole number of at least 1", '"auto"', "judged at once"]),
        ("judge.workers=0", ["is 0", "at least 1"]),
        ("judge.workers=true", ["true/false", "a whole number"]),
        ("judge.workers.x=1", ["judge.workers", "a table"]),
        ("judge.memory_mb=1.5", ["1.5 (a number)", "a whole number"]),
        ("judge.policy=loose", ['one of "exact", "robust", "paper"']),
        ("judge.reuse=yes", ["true or false"]),
        ("judge.time_limit_s=-1", ["above 0"]),
        ("judge.time_limit_s=inf", ["inf", "a number"]),
        ("judge.time_limit_s=nan", ["nan", "a number"]),
        ("train.stages=[{temprature = 1}]", ["'temprature' in table 1 of train.stages", "did you mean 'temperature'"]),
        ("train.stages=[{zzz = 1}]", ["'zzz' in table 1 of train.stages", "known are at_step"]),
    ],
)
def test_a_wrong_setting_is_told_what_is_wrong_and_what_would_do(setting, words):
    with pytest.raises(ConfigError) as error:
        load(None, [setting])
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[judge]\nwokers = 4", ["settings.toml", "[judge]", "did you mean 'workers'"]),
        ("workers = 4", ["settings.toml", "it belongs in section [judge]"]),
        ("judge = 4", ["settings.toml", "judge is a section"]),
        ('[judge]\nworkers = "4"', ["settings.toml", '"4" (text)', "a whole number"]),
        ("[judge\n", ["settings.toml", "not TOML", "line 1"]),
    ],
)
def test_a_wrong_file_is_named_in_the_error(tmp_path, text, words):
    with pytest.raises(ConfigError) as error:
        load(write(tmp_path, text))
    for word in words:
        assert word in str(error.value)


def test_every_wrong_value_is_reported_at_once():
    with pytest.raises(ConfigError) as error:
        load(None, ["judge.workers=many", "judge.reuse=2"])
    assert "judge.workers" in str(error.value)
    assert "judge.reuse" in str(error.value)


def test_a_missing_file_says_how_to_write_one(tmp_path):
    with pytest.raises(ConfigError, match="microcoder config >"):
        load(tmp_path / "none.toml")


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    assert load(write(tmp_path, "\ufeff[judge]\nworkers = 2\n")).judge.workers == 2


@pytest.mark.parametrize("comments", [True, False])
def test_what_is_written_is_accepted_back(tmp_path, comments):
    config = load(None, ["judge.workers=7", "judge.sandbox=landlock", "judge.time_factor=2.5", "judge.reuse=true"])
    assert load(write(tmp_path, to_toml(config, comments))) == config


def test_every_setting_has_a_description_and_the_file_carries_it():
    comments = " ".join(line.lstrip("# ") for line in to_toml(Config()).splitlines() if line.startswith("#"))
    for name, field in settings():
        assert field.description, name
        assert field.description in comments


@given(
    st.recursive(
        st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_any_value_survives_being_written_as_toml(value):
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == value


@pytest.mark.parametrize(
    ("value", "plain"), [(np.int64(3), 3), (np.bool_(True), True), ([np.float64(0.1), np.int64(2)], [0.1, 2]),
                         (np.array([1, 2]), [1, 2]), ({"at": np.float32(0.5)}, {"at": 0.5})]
)  # fmt: skip
def test_numbers_of_numpy_are_written_as_numbers_also_in_lists(value, plain):
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == plain


def test_auto_means_the_cores_this_process_may_use():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert usable_cores() == 1
        assert load().judge.options()["workers"] == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_the_queue_follows_the_workers_unless_it_is_set():
    assert load(None, ["judge.workers=3"]).judge.options()["queue"] == 12
    assert load(None, ["judge.workers=3", "judge.queue=5"]).judge.options()["queue"] == 5


# --- presets, stages, and the configurations of the package


def test_a_preset_on_the_command_line_replaces_what_the_file_spelled_out(tmp_path):
    path = write(tmp_path, '[grpo]\npreset = "grpo"\nkl = 0.5\neps_high = 0.3\nsamples = 4\n')
    assert (load(path).grpo.kl, load(path).grpo.eps_high) == (0.5, 0.3)
    grpo = load(path, ["grpo.preset=grpo_plus"]).grpo
    assert (grpo.preset, grpo.kl, grpo.eps_high) == ("grpo_plus", 0.0, 0.28)
    assert grpo.samples == 4  # no preset speaks of it


@pytest.mark.parametrize("order", [1, -1])
def test_a_single_key_wins_over_the_preset_of_its_own_layer_in_either_order(tmp_path, order):
    words = ["grpo.preset=grpo", "grpo.kl=0.02"][::order]
    assert (load(None, words).grpo.kl, load(None, words).grpo.eps_high) == (0.02, 0.2)
    lines = ['preset = "grpo"', "kl = 0.02"][::order]
    assert load(write(tmp_path, "\n".join(["[grpo]", *lines]))).grpo.kl == 0.02


def test_a_single_key_on_the_command_line_wins_over_the_preset_of_the_file(tmp_path):
    grpo = load(write(tmp_path, '[grpo]\npreset = "grpo"\n'), ["grpo.kl=0.0"]).grpo
    assert (grpo.preset, grpo.kl, grpo.eps_high) == ("grpo", 0.0, 0.2)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_means_its_values_and_all_presets_set_the_same_keys(name):
    grpo = load(None, [f"grpo.preset={name}"]).grpo.model_dump()
    assert PRESETS[name].items() <= grpo.items()
    assert PRESETS[name].keys() == PRESETS["grpo"].keys()
    assert ABOUT[name]


def test_the_presets_differ_and_the_default_values_are_those_of_the_default_preset():
    for one, other in itertools.combinations(PRESETS.values(), 2):
        assert one != other
    assert load() == Config()


def test_the_help_on_presets_names_every_key_that_they_set_and_the_settings_of_the_mask_that_they_leave():
    said = set(re.findall(r"\w+", dict(settings("grpo"))["grpo.preset"].description))
    assert PRESETS["grpo"].keys() <= said
    left = {"rho", "mask_outcome", "masked_in_group", "repeat", "repeat_tokens"}
    assert left <= said and not left & PRESETS["grpo"].keys()


def test_an_unknown_preset_is_told_the_known_ones():
    with pytest.raises(ConfigError) as error:
        load(None, ["grpo.preset=grop"])
    assert '"grop"' in str(error.value)
    assert all(f'"{name}"' in str(error.value) for name in PRESETS)


STAGES = "[{at_step = 140, temperature = 1.2}, {at_step = 260, max_response_tokens = 8192}]"


def test_stages_are_read_from_the_command_line_and_from_either_way_to_write_them_in_a_file(tmp_path):
    first = "[[train.stages]]\nat_step = 140\ntemperature = 1.2\n"
    second = "[[train.stages]]\nat_step = 260\nmax_response_tokens = 8192\n"
    expected = [StageConfig(at_step=140, temperature=1.2), StageConfig(at_step=260, max_response_tokens=8192)]
    assert load(None, [f"train.stages={STAGES}"]).train.stages == expected
    assert load(write(tmp_path, f"[train]\nstages = {STAGES}\n")).train.stages == expected
    assert load(write(tmp_path, first + second)).train.stages == expected


@pytest.mark.parametrize(
    "stages",
    ["[{temperature = 1.2}]", "[{at_step = 1, temperature = 1.2}]", "[140]", "140"],
)
def test_a_stage_that_cannot_be_is_told_what_a_stage_is(stages):
    with pytest.raises(ConfigError) as error:
        load(None, [f"train.stages={stages}"])
    for words in ("train.stages is", "at_step (a whole number of at least 2)", "temperature (a number above 0"):
        assert words in str(error.value)


@pytest.mark.parametrize("comments", [True, False])
def test_a_configuration_with_stages_and_a_preset_survives_being_written(tmp_path, comments):
    words = [f"train.stages={STAGES}", "grpo.preset=dapo", "grpo.temperature=auto", "grpo.eps=0.1", "train.lr=1e-6"]
    config = load(None, [*words, "data.difficulty=[1, 3]", 'model.lora_targets=["q_proj"]', 'train.trackers=["wandb"]'])
    assert config != Config()
    assert load(write(tmp_path, to_toml(config, comments))) == config


def test_an_empty_list_of_tables_shows_the_keys_of_a_table_with_their_meaning(tmp_path):
    text = to_toml(Config())
    assert "#   [[train.stages]]\n#   at_step = ...  # The first step of the stage.\n#   temperature = ..." in text
    stage = "\n[[train.stages]]\nat_step = 7\ntemperature = 1.5\n"
    assert load(write(tmp_path, text + stage)).train.stages[0].at_step == 7


@pytest.mark.parametrize("name", shipped())
def test_every_configuration_of_the_package_is_read_says_what_it_is_for_and_can_be_written_back(tmp_path, name):
    path = shipped()[name]
    config = load(path)
    assert about(path) and not about(path).startswith("[")
    assert load(write(tmp_path, to_toml(config))) == config


def test_what_a_list_of_words_or_a_name_takes_is_said():
    with pytest.raises(ConfigError, match=r'a list, such as \["a", "b"\]'):
        load(None, ["train.trackers=wandb"])
    with pytest.raises(ConfigError, match=r"text that matches \^\[\^/\]\*\$"):
        load(None, ["train.name=a/b"])


def test_arguments_of_the_chat_template_are_a_table_or_single_settings(tmp_path):
    file = write(tmp_path, "[model]\nchat = {enable_thinking = false, effort = 2}\n")
    assert load(file).model.chat == {"enable_thinking": False, "effort": 2}
    assert load(file, ["model.chat.effort=high"]).model.chat == {"enable_thinking": False, "effort": "high"}
    config = load(None, ["model.chat={enable_thinking = true}", "model.chat.effort=1.5"])
    assert config.model.chat == {"enable_thinking": True, "effort": 1.5}
    assert load(write(tmp_path, to_toml(config))) == config


@pytest.mark.parametrize("word", ["model.chat=false", "model.chat.a.b=1", "model.chat.a=[1]"])
def test_chat_arguments_that_are_no_table_of_values_are_told_what_they_should_be(word):
    with pytest.raises(ConfigError, match=r"model\.chat is .*expected a table\n.*enable_thinking = false"):
        load(None, [word])


def test_a_list_is_one_also_where_the_shell_has_eaten_its_quotes():
    assert load(None, ["data.refuse=[many_answers, unverified]"]).data.refuse == ["many_answers", "unverified"]
    with pytest.raises(ConfigError, match="expected a list"):
        load(None, ["data.refuse=unverified"])


def test_a_run_of_a_configuration_with_a_dot_in_its_name_has_its_whole_name():
    assert configuration(["leetcode-0.5b"])[1] == Path("runs/leetcode-0.5b")


@pytest.mark.parametrize("name", ["leetcode-0.5b", "leetcode-1.5b"])
def test_the_leetcode_configurations_give_a_reason_for_every_value_and_say_how_their_files_are_made(name):
    text = shipped()[name].read_text()
    assert "microcoder forge" in text and load(shipped()[name]).data.train in text.split("[model]")[0]
    values = [line for line in text.splitlines() if " = " in line and not line.startswith("#")]
    assert len(values) > 15 and all("  # " in line for line in values)
