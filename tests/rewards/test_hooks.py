"""Reward hooks for OpenRLHF, NeMo-RL and rLLM, called as their sources call them. tests/on_hooks has SkyRL's.

OpenRLHF needs packages for GPUs, NeMo-RL Python 3.13, and rLLM is not on PyPI: none installs beside the rest. What
NeMo-RL and rLLM hand over and ask for is written down here, as in their sources of August 2026.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
import types
from typing import Any, NamedTuple

import pytest
from faulty_judge import Faulty
from rewards_page import titled

import microcoder as mc
from microcoder.data.dataset import for_trl
from microcoder.files import write_problems
from microcoder.rewards.hooks import nemo_rl_environment, openrlhf_reward, rllm_evaluator, skyrl_env
from microcoder.rewards.reward import CodeReward
from microcoder.rewards.scorers import inspect_task, lm_eval_task
from microcoder.schema import SchemaError

ONE = {"workers": 1}
DOUBLE = mc.Problem("double", statement="Double it.", tests=[mc.Test("2", "4"), mc.Test("0", "0")])
RIGHT, HALF = "```python\nprint(2 * int(input()))\n```", "```python\nprint(4)\n```"
PROMPT = "<|im_start|>user\nDouble it.\n```python\nprint(4)\n```<|im_end|>\n<|im_start|>assistant\n"
TEXT = for_trl(DOUBLE, 0)["problem"]


@pytest.fixture
def faulty(monkeypatch):
    monkeypatch.setattr(CodeReward, "opened", lambda self: Faulty())


def openrlhf(function, *texts, label=TEXT, prompt=PROMPT):
    """Call a function of a file as OpenRLHF does: whole texts with their special tokens, one at a time."""
    found = [function([prompt + text], [prompt], [label]) for text in texts]
    return [one["rewards"].tolist() for one in found], found[0]["extra_logs"]


@pytest.mark.parametrize(
    "end", ["", "<|im_end|>", "<|im_end|>\n", "</s>", " <|endoftext|><|endoftext|>", "<｜end▁of▁sentence｜>"]
)
def test_openrlhf_with_whatever_ends_a_response(end):
    rewards, logs = openrlhf(openrlhf_reward(judge=ONE), RIGHT + end, HALF + end, "I give up." + end)
    assert rewards == [[1.0], [0.0], [0.0]]
    assert {name: value.tolist() for name, value in logs.items()} == {"accepted": [1.0], "judge_fault": [0.0]}


def test_openrlhf_finds_the_response_behind_a_prompt_that_lost_its_beginning():
    given = openrlhf_reward(judge=ONE, shape="share")
    prompt = "Long ago. " * 50 + PROMPT
    assert given([prompt[30:] + "no code"], [prompt], [TEXT])["rewards"].tolist() == [0.0]  # not the prompt's program
    assert given([prompt[30:] + HALF], [prompt], [TEXT])["rewards"].tolist() == [0.5]


def test_openrlhf_takes_ids_and_lists(tmp_path):
    write_problems(tmp_path / "p.jsonl", [DOUBLE])
    found = openrlhf_reward(str(tmp_path / "p.jsonl"), judge=ONE)([PROMPT + RIGHT] * 2, [PROMPT] * 2, ["double"] * 2)
    assert found["rewards"].tolist() == found["scores"].tolist() == [1.0, 1.0]


def test_openrlhf_needs_a_number_for_a_fault_of_the_judge(faulty):
    rewards, logs = openrlhf(openrlhf_reward(on_fault=-1.0), RIGHT)
    assert rewards == [[-1.0]] and logs["judge_fault"].tolist() == [1.0]


def test_openrlhf_reads_the_file_of_the_page(tmp_path):
    (tmp_path / "judged.py").write_text(titled("judged.py"))
    spec = importlib.util.spec_from_file_location("reward_func", tmp_path / "judged.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert openrlhf(module.reward_func, RIGHT)[0] == [[1.0]]


def test_openrlhf_says_what_a_label_must_be():
    with pytest.raises(SchemaError, match="a problem is a JSON object"):
        openrlhf(openrlhf_reward(judge=ONE), RIGHT, label="4")


class Returned(NamedTuple):
    """NeMo-RL's EnvironmentReturn."""

    observations: list[dict[str, str]]
    metadata: list[Any]
    next_stop_strings: list[Any]
    rewards: Any
    terminateds: Any
    answers: list[str | None] | None


@pytest.fixture
def nemo_rl(monkeypatch):
    """The names that are asked for of NeMo-RL and Ray; an actor class is the class."""
    names = {
        "nemo_rl": {},
        "nemo_rl.environments": {},
        "nemo_rl.environments.interfaces": {"EnvironmentInterface": object, "EnvironmentReturn": Returned},
        "nemo_rl.environments.utils": {"register_env": lambda name, path: registered.update({name: path})},
        "nemo_rl.distributed": {},
        "nemo_rl.distributed.ray_actor_environment_registry": {"ACTOR_ENVIRONMENT_REGISTRY": {}},
        "nemo_rl.distributed.virtual_cluster": {"PY_EXECUTABLES": types.SimpleNamespace(SYSTEM="python")},
        "ray": {"remote": lambda kind: kind},
    }
    registered = {}
    for name, content in names.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return registered


def log(text):
    return [{"role": "user", "content": "Double it."}, {"role": "assistant", "content": text}]


def test_nemo_rl_steps_over_a_batch(nemo_rl):
    env = nemo_rl_environment()({"judge": ONE, "shape": "share"})
    rows = [{"ground_truth": TEXT}, {"problem": TEXT}]
    found = env.step([log(RIGHT), log(HALF)], rows)
    assert found.rewards.tolist() == [1.0, 0.5] and found.terminateds.tolist() == [1.0, 1.0]
    assert [one["content"] for one in found.observations] == ["Environment: accepted", "Environment: wrong_answer"]
    assert (found.metadata, found.next_stop_strings, found.answers) == (rows, [None, None], None)
    assert env.step([log(RIGHT)], rows[:1], True).answers == [RIGHT]
    assert env.global_post_process_and_metrics({}) == ({}, {"accuracy": 2 / 3, "judge_fault": 0.0})
    assert env.global_post_process_and_metrics({}) == ({}, {"accuracy": 0.0, "judge_fault": 0.0})


def test_nemo_rl_needs_a_number_for_a_fault_of_the_judge(nemo_rl, faulty):
    env = nemo_rl_environment()({"on_fault": -1})
    assert env.step([log(RIGHT)], [{"problem": TEXT}]).rewards.tolist() == [-1.0]
    assert env.global_post_process_and_metrics({})[1]["judge_fault"] == 1.0


def test_nemo_rl_registers_the_module_of_the_page(nemo_rl):
    names = {}
    exec(titled("judged_env.py"), names)
    ((name, path),) = nemo_rl.items()
    assert (name, path) == ("microcoder", "judged_env.CodeEnvironment") and "CodeEnvironment" in names


@dataclasses.dataclass
class Signal:
    """rLLM's."""

    name: str
    value: float
    metadata: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class EvalOutput:
    """rLLM's."""

    reward: float
    is_correct: bool
    signals: list[Signal] = dataclasses.field(default_factory=list)
    metadata: dict = dataclasses.field(default_factory=dict)


@pytest.fixture
def rllm(monkeypatch):
    """The names that are asked for of rLLM."""
    names = {
        "rllm": {},
        "rllm.eval": {},
        "rllm.eval.types": {"EvalOutput": EvalOutput, "Signal": Signal},
        "rllm.eval.reward_fns": {},
        "rllm.eval.reward_fns._helpers": {"extract_answer_text": lambda episode: episode.trajectories[-1].output},
    }
    for name, content in names.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)


def episode(text):
    return types.SimpleNamespace(artifacts={}, trajectories=[types.SimpleNamespace(output=text)])


def task(ident="7", **metadata):
    return types.SimpleNamespace(id=ident, metadata=metadata)


def test_rllm_evaluates_an_episode(rllm):
    evaluate = rllm_evaluator(judge=ONE, shape="share")
    assert evaluate(task(ground_truth=TEXT), episode(RIGHT)) == EvalOutput(
        1.0, True, [Signal("accuracy", 1.0)], {"verdict": "accepted"}
    )
    assert evaluate(task(problem=TEXT), episode(HALF)) == EvalOutput(
        0.5, False, [Signal("accuracy", 0.0)], {"verdict": "wrong_answer"}
    )


def test_rllm_is_given_an_exception_for_a_fault_of_the_judge(rllm, faulty):
    with pytest.raises(RuntimeError, match="it is broken"):
        rllm_evaluator()(task(problem=TEXT), episode(RIGHT))


def test_rllm_runs_the_file_of_the_page(rllm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dataset").mkdir()
    write_problems("dataset/problems.parquet", [DOUBLE])
    names = {}
    exec(titled("tests/evaluate.py"), names)
    assert names["evaluate"](task("double"), episode(RIGHT)).reward == 1.0


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (nemo_rl_environment, "NeMo-RL is needed"),
        (skyrl_env, "pip install skyrl-gym"),
        (lambda: lm_eval_task([DOUBLE]), "pip install lm_eval"),
        (lambda: inspect_task([DOUBLE]), "pip install inspect_ai"),
        (lambda: importlib.import_module("microcoder.rewards.openenv"), "pip install openenv"),
    ],
)
def test_what_is_missing_is_named(made, said, monkeypatch):
    for name in ("ray", "skyrl_gym", "lm_eval.api.task", "inspect_ai", "openenv.core.client_types"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "microcoder.rewards.openenv", raising=False)
    with pytest.raises(ImportError, match=said):
        made()


def test_a_row_without_a_problem_is_named(rllm):
    with pytest.raises(SchemaError, match="problem '7' is not known"):
        rllm_evaluator(judge=ONE)(task(), episode(RIGHT))
