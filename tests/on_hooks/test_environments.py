"""OpenEnv's server and client over a real socket, and an environment of SkyRL as its generator uses it."""

from __future__ import annotations

import contextlib
import json
import threading
import time

import pytest
import uvicorn
from faulty_judge import Faulty
from openenv import GenericEnvClient
from rewards_page import titled
from skyrl_gym import make
from skyrl_gym.envs import deregister, register
from skyrl_gym.metrics import aggregate_for_environment

import microcoder as mc
from microcoder.rewards.hooks import skyrl_env
from microcoder.rewards.openenv import CodeClient, openenv_app
from microcoder.rewards.reward import CodeReward

ONE = {"workers": 1}
PROBLEMS = "dataset/problems.parquet"
RIGHT, WRONG = "```python\nprint(2 * int(input()))\n```", "```python\nprint(2)\n```"


@contextlib.contextmanager
def served(app):
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def test_an_episode_over_the_wire(reader):
    with served(openenv_app(PROBLEMS, turns=2, judge=ONE)) as url, CodeClient(base_url=url).sync() as env:
        first = env.reset(id="double")
        assert (first.done, first.reward) == (False, None)
        assert first.observation.messages[0]["content"].startswith("Double it.")
        second = env.step(WRONG)
        assert (second.done, second.reward) == (False, 0.0)
        assert "gives a wrong answer" in second.observation.messages[-1]["content"]
        assert "62674" not in second.observation.model_dump_json()
        assert (env.state().step_count, env.state().id) == (1, "double")
        last = env.step(RIGHT)
        assert (last.done, last.reward, last.observation.metadata["verdict"]) == (True, 1.0, "accepted")


def test_clients_have_episodes_of_their_own(reader):
    with served(openenv_app(PROBLEMS, judge=ONE)) as url:
        with CodeClient(base_url=url).sync() as one, GenericEnvClient(base_url=url).sync() as other:
            one.reset(id="double")
            other.reset(id="one")
            assert other.step({"completion": "```python\nprint(1)\n```"}).reward == 1.0
            assert one.step(RIGHT).reward == 1.0


def test_a_seed_chooses_the_same_problem(reader):
    with served(openenv_app(PROBLEMS, judge=ONE)) as url, CodeClient(base_url=url).sync() as env:
        assert len({env.reset(seed=5).observation.metadata["id"] for _ in range(4)}) == 1


def test_a_fault_of_the_judge_ends_the_episode_without_a_reward(reader, monkeypatch):
    monkeypatch.setattr(CodeReward, "opened", lambda self: Faulty())
    with served(openenv_app(PROBLEMS, turns=2)) as url, CodeClient(base_url=url).sync() as env:
        env.reset()
        found = env.step(RIGHT)
        assert (found.done, found.reward, found.observation.metadata["verdict"]) == (True, None, "internal_error")


def test_what_cannot_work_is_told(reader):
    with pytest.raises(ValueError, match="turns is 0"):
        openenv_app(PROBLEMS, turns=0)
    with served(openenv_app(PROBLEMS, judge=ONE)) as url, CodeClient(base_url=url).sync() as env:
        with pytest.raises(Exception, match="did you mean 'double'"):
            env.reset(id="duoble")


def test_the_blocks_of_the_page_for_openenv(reader):
    names = {}
    exec(titled("my_env.py"), names)
    with served(names["app"]) as url:
        exec(titled("openenv").replace("http://localhost:8000", url), names)
    assert names["result"].reward == 1.0 and names["result"].done


@pytest.fixture
def named():
    """A name to register an environment of SkyRL by."""
    yield "judged"
    deregister("judged")


def extras(**more):
    """A row of verl.parquet without its prompt, as SkyRL hands it on."""
    problem = mc.Problem("double", tests=[mc.Test("1", "2"), mc.Test("31337", "62674")])
    return {"reward_model": {"style": "rule", "ground_truth": json.dumps(problem.to_dict())}, **more}


def test_skyrl_repairs_and_the_last_try_counts(named):
    register(named, skyrl_env(judge=ONE))
    env = make(named, env_config={}, extras=extras(max_turns=2))
    prompt = [{"role": "user", "content": "Double it."}]
    assert env.init(prompt) == (prompt, {})
    first = env.step(WRONG)
    assert (first["reward"], first["done"], first["metadata"]) == (0.0, False, {"verdict": "wrong_answer"})
    assert "gives a wrong answer" in first["observations"][0]["content"] and "62674" not in str(first)
    last = env.step(RIGHT + "<|im_end|>")
    assert (last["reward"], last["done"], last["observations"]) == (1.0, True, [])
    metrics = [env.get_metrics(), {"accepted": False, "judge_fault": False, "turns": 2}]
    assert aggregate_for_environment(named, metrics) == {"accepted": 0.5, "judge_fault": 0.0, "turns": 2.0}
    env.close()


def test_skyrl_with_one_turn_shapes_and_its_own_column(named):
    register(named, skyrl_env(judge=ONE, shape="share"))
    row = {"reward_spec": extras()["reward_model"]}
    assert make(named, env_config={}, extras=row).step(WRONG)["reward"] == 0.5


def test_skyrl_needs_a_number_for_a_fault_of_the_judge(named, monkeypatch):
    monkeypatch.setattr(CodeReward, "opened", lambda self: Faulty())
    register(named, skyrl_env(on_fault=-1.0))
    env = make(named, env_config={}, extras=extras(max_turns=3))
    assert (env.step(RIGHT)["reward"], env.get_metrics()["judge_fault"]) == (-1.0, True)


def test_the_block_of_the_page_for_skyrl():
    exec(titled("skyrl"), {})
    try:
        assert make("microcoder", env_config={}, extras=extras()).step(RIGHT)["reward"] == 1.0
    finally:
        deregister("microcoder")
