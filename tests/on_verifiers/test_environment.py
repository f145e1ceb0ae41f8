"""verifiers' own evaluation of our environment, with a model that answers from a script."""

from __future__ import annotations

import asyncio
import tomllib

import pytest
from chat_server import chat_server, completion
from faulty_judge import Faulty
from rewards_page import titled
from verifiers.v1 import EvalClientConfig, load_environment, resolve_env_config
from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig

import microcoder as mc
from microcoder.files import write_problems
from microcoder.rewards import verifiers_env
from microcoder.rewards.reward import CodeReward

RIGHT, WRONG = "```python\nprint(31337)\n```", "```python\nprint(1)\n```"


@pytest.fixture
def problems(tmp_path):
    path = tmp_path / "problems.parquet"
    write_problems(path, [mc.Problem("a", statement="Say it.", tests=[mc.Test("7", "31337"), mc.Test("8", "31337")])])
    return str(path)


@pytest.fixture
def model():
    with chat_server() as server:
        yield server


def evaluated(tmp_path, model, env, replies, rollouts=1):
    model.replies = [completion(reply, tokens=5) for reply in replies]
    config = EvalConfig(
        env=env.config, model="scripted", client=EvalClientConfig(base_url=model.url, api_key_var="NO_SUCH_KEY"),
        push=False, rich=None, output_dir=tmp_path / "out", num_rollouts=rollouts,
    )  # fmt: skip
    return asyncio.run(run_eval(config))


@pytest.mark.parametrize(("reply", "reward"), [(RIGHT, 1.0), (WRONG, 0.0), ("no code", 0.0)])
def test_one_turn(tmp_path, problems, model, reply, reward):
    episodes = evaluated(tmp_path, model, verifiers_env(problems, judge={"workers": 1}), [reply], rollouts=2)
    assert [episode.ok for episode in episodes] == [True, True]
    assert [episode.traces[0].reward for episode in episodes] == [reward, reward]
    assert len(model.asked) == 2 and model.asked[0]["messages"][0]["content"].startswith("Say it.")


def test_a_failed_try_is_repaired_and_the_last_counts(tmp_path, problems, model):
    (episode,) = evaluated(
        tmp_path, model, verifiers_env(problems, turns=3, judge={"workers": 1}), [WRONG, RIGHT, WRONG]
    )
    (trace,) = episode.traces
    assert (episode.ok, trace.reward, len(model.asked)) == (True, 1.0, 2)
    told = model.asked[1]["messages"]
    assert [message["role"] for message in told] == ["user", "assistant", "user"]
    assert "gives a wrong answer" in told[-1]["content"] and "31337" not in told[-1]["content"]
    assert [verdict["verdict"] for verdict in trace.info["verdicts"]] == ["wrong_answer", "accepted"]
    assert "31337" not in trace.task.data.model_dump_json()  # the tests stay out of what is written


def test_the_difference_is_told_where_it_is_asked_for(tmp_path, problems, model):
    env = verifiers_env(problems, turns=2, show="difference", judge={"workers": 1})
    (episode,) = evaluated(tmp_path, model, env, [WRONG, WRONG])
    assert "31337" in model.asked[1]["messages"][-1]["content"]
    assert episode.traces[0].reward == 0.0


def test_a_fault_of_the_judge_is_an_error_and_no_reward(tmp_path, problems, model, monkeypatch):
    monkeypatch.setattr(CodeReward, "opened", lambda self: Faulty())
    (episode,) = evaluated(tmp_path, model, verifiers_env(problems, turns=2), [RIGHT])
    assert not episode.ok and "it is broken" in episode.traces[0].last_error.message
    assert episode.traces[0].rewards["code_reward"] is None


def test_the_block_of_the_page(tmp_path, model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dataset").mkdir()
    write_problems("dataset/problems.parquet", [mc.Problem("a", statement="Say it.", tests=[mc.Test("7", "31337")])])
    names = {}
    exec(titled("verifiers"), names)
    (episode,) = evaluated(tmp_path, model, names["env"], ["```python\nprint(x)\n```", RIGHT])
    assert "NameError" in model.asked[1]["messages"][-1]["content"] and episode.traces[0].reward == 1.0


def test_a_package_of_one_line_is_an_environment_by_its_name(tmp_path, model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_problems.py").write_text(titled("my_problems.py"))
    (tmp_path / "dataset").mkdir()
    write_problems("dataset/problems.parquet", [mc.Problem("a", statement="Say it.", tests=[mc.Test("7", "31337")])])
    env = load_environment(resolve_env_config(tomllib.loads(titled("eval.toml"))["env"]))
    (episode,) = evaluated(tmp_path, model, env, [WRONG, RIGHT])
    assert episode.traces[0].reward == 1.0 and len(model.asked) == 2


def test_settings_that_cannot_work_are_named(problems):
    with pytest.raises(ValueError, match="turns is 0"):
        verifiers_env(problems, turns=0)
    with pytest.raises(ValueError, match="did you mean 'difference'"):
        verifiers_env(problems, show="diference")
