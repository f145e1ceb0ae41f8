"""Our side of the contract with vLLM, against a stand-in: what it is asked, and what is made of what it answers.

`tests/on_vllm` runs a real one.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

import pytest
import torch
from peft import LoraConfig, get_peft_model

from microcoder.models import resolve
from microcoder.models.weights import load
from microcoder.sampling import Completion, Sampling, VllmError, VllmSampler
from microcoder.sampling.vllm import ON_CPU, in_process

END = 7
HERE = {} if torch.cuda.is_available() else ON_CPU


@dataclass
class LLM:
    """Writes a prompt's last token as often as its request is late in the row, then the end token, within the limit. A
    step finishes the newest request."""

    options: dict

    def __post_init__(self):
        self.llm_engine, self.model_config = self, SimpleNamespace(max_model_len=512)
        self.asked, self.left, self.aborted, self.done = [], [], [], []
        self.loaded = {}

    def add_request(self, name, prompt, params):
        self.asked.append((name, prompt, params))
        self.left.append((name, prompt["prompt_token_ids"][-1], params))

    def step(self):
        name, token, params = self.left.pop()
        whole = [token] * (int(name.split()[1]) + 1) + params.stop_token_ids[:1]
        ids = tuple(whole[: params.max_tokens])
        steps = [{i: SimpleNamespace(logprob=-i / 8)} for i in ids]
        reason = "stop" if len(ids) == len(whole) else "length"
        output = SimpleNamespace(token_ids=ids, logprobs=steps, finish_reason=reason)
        return [SimpleNamespace(request_id=name, finished=True, outputs=[output])]

    def abort_request(self, names):
        self.aborted += names

    def collective_rpc(self, method, kwargs):
        assert method == "reload_weights"
        self.loaded.update(kwargs["weights_iterator"])

    def apply_model(self, function):
        """The head is packed anew, on a CPU."""

    def sleep(self, level):
        self.done.append(f"sleep {level}")

    def wake_up(self, tags):
        self.done.append(f"wake {tags}")

    def reset_prefix_cache(self):
        self.done.append("reset")


@pytest.fixture
def vllm(monkeypatch):
    module, params = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    module.LLM = lambda **options: LLM(options)
    module.SamplingParams = SimpleNamespace
    params.RequestOutputKind = SimpleNamespace(FINAL_ONLY="final")
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", params)


@pytest.fixture
def sampler(vllm):
    return VllmSampler("some/model", [END], 0.5, max_model_len=512)


def test_the_model_is_loaded_from_its_path_with_log_probabilities_after_the_temperature(sampler):
    assert sampler.llm.options == {
        "model": "some/model",
        "gpu_memory_utilization": 0.5,
        "logprobs_mode": "processed_logprobs",
        "max_model_len": 512,
        **HERE,
    }
    assert sampler.context == 512


def test_every_response_comes_when_it_is_finished_with_its_end_token_unless_the_limit_came_first(sampler):
    assert list(sampler([[1, 2], [3]], Sampling(1.0, 2, samples=2))) == [
        Completion(1, 1, [3, 3], [-0.375, -0.375], True),
        Completion(1, 0, [3, END], [-0.375, -0.875], False),
        Completion(0, 1, [2, 2], [-0.25, -0.25], True),
        Completion(0, 0, [2, END], [-0.25, -0.875], False),
    ]


def test_vllm_is_asked_in_its_own_words(sampler):
    list(sampler([(1, 2)], Sampling(0.6, 32, samples=2, top_p=0.9, top_k=20)))
    (name, prompt, params), _ = sampler.llm.asked
    assert (name, prompt) == ("0 0", {"type": "token", "prompt_token_ids": [1, 2]})
    asked = vars(params)
    assert 0 <= asked.pop("seed") < 2**31
    assert asked == {
        "n": 1, "temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.0, "repetition_penalty": 1.0,
        "max_tokens": 32, "stop_token_ids": [END], "logprobs": 0, "detokenize": False, "output_kind": "final",
    }  # fmt: skip


def test_each_response_draws_noise_of_its_own_and_the_same_when_called_again(sampler):
    for seed in (1, 1, 2):
        list(sampler([[1], [1]], Sampling(1.0, 4, samples=2, seed=seed)))
    seeds = [params.seed for _, _, params in sampler.llm.asked]
    assert seeds[:4] == seeds[4:8]
    assert len({*seeds[:4], *seeds[8:]}) == 8


def test_the_likeliest_response_is_asked_for_once_and_given_as_often_as_wanted(sampler):
    found = list(sampler([[3]], Sampling(0.0, 4, samples=2)))
    assert found == [Completion(0, k, [3, END], [-0.375, -0.875], False) for k in range(2)]
    assert len(sampler.llm.asked) == 1


def test_what_nobody_waits_for_any_more_is_aborted(sampler):
    completions = sampler([[1], [2]], Sampling(1.0, 4))
    next(completions)
    completions.close()
    assert sampler.llm.aborted == ["0 0"]


def test_weights_of_a_trained_model_go_in_with_its_adapter_added_and_the_model_is_left_alone(vllm):
    model = get_peft_model(load(resolve("nano"), torch.float32), LoraConfig(r=2, target_modules=["q_proj"]))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.fill_(0.5)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    sampler = VllmSampler("some/model", [END])
    sampler.refresh(model)
    loaded = {name: weight.clone() for name, weight in sampler.llm.loaded.items()}
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())
    merged = model.merge_and_unload()
    assert set(loaded) == {name for name, _ in merged.named_parameters()}
    for name, weight in merged.named_parameters():
        torch.testing.assert_close(loaded[name], weight, msg=name)
    assert sampler.llm.done == ["reset"]  # keys and values of the old weights


def test_it_sleeps_only_where_it_was_made_to_and_wakes_before_its_weights_come(vllm):
    model = torch.nn.Linear(2, 2)
    awake, sleepy = (VllmSampler("some/model", [END], enable_sleep_mode=sleeps) for sleeps in (False, True))
    for one in (awake, sleepy):
        one.release()
        one.release()
        one.refresh(model)
    assert awake.llm.done == ["reset"]
    assert sleepy.llm.done == ["sleep 2", "wake ['weights']", "wake ['kv_cache']", "reset"] and not sleepy.asleep


def test_in_training_context_rows_and_sleep_are_ours_and_ranks_share_the_trainings_group(vllm, monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    alone = in_process("some/model", 0.25, 3072, 64, sleeps=True)
    assert alone.llm.options == {
        "model": "some/model", "gpu_memory_utilization": 0.25, "logprobs_mode": "processed_logprobs",
        "max_model_len": 3072, "max_num_seqs": 64, "enable_sleep_mode": True, "disable_log_stats": True,
        **HERE,
    }  # fmt: skip
    assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"  # else the weights would be in another process
    monkeypatch.setenv("WORLD_SIZE", "2")
    rank = in_process("some/model", 0.25, 3072, 64, sleeps=False)
    assert rank.llm.options["distributed_executor_backend"] == "external_launcher"


def broken(name):
    """As one that is compiled for another CUDA."""
    raise ImportError("libcudart.so.13: cannot open shared object file")


@pytest.mark.parametrize("how", ["missing", "broken"])
def test_without_a_vllm_that_works_the_ways_out_are_named(monkeypatch, how):
    module = ModuleType("vllm")
    module.__getattr__ = broken
    monkeypatch.setitem(sys.modules, "vllm", None if how == "missing" else module)  # None: cannot be imported
    with pytest.raises(VllmError, match=r"pip install vllm.*--server URL.*rollout.engine=auto"):
        VllmSampler("some/model", [END])
