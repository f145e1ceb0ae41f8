"""Our side of the contract with vLLM, against a stand-in: what it is asked, and what is made of what it answers.

vLLM itself needs a GPU and is not run here, so nothing below shows that a real one answers like this.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

import pytest

from microcoder.sampling import Completion, Sampling, VllmError, VllmSampler

END = 7


@dataclass
class LLM:
    """Writes the prompt's last token `n + 1` times in its n-th output, then the end token, within the limit."""

    options: dict

    def __post_init__(self):
        self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=512))
        self.calls = []

    def generate(self, prompts, params, use_tqdm):
        self.calls.append((prompts, params))
        return [
            SimpleNamespace(outputs=[self.output(prompt["prompt_token_ids"][-1], n, one) for n in range(one.n)])
            for prompt, one in zip(prompts, params, strict=True)
        ]

    def output(self, token, n, params):
        whole = [token] * (n + 1) + params.stop_token_ids[:1]
        ids = tuple(whole[: params.max_tokens])
        steps = [{i: SimpleNamespace(logprob=-i / 8)} for i in ids]
        return SimpleNamespace(
            index=n, token_ids=ids, logprobs=steps, finish_reason="stop" if len(ids) == len(whole) else "length"
        )


@pytest.fixture
def vllm(monkeypatch):
    module = ModuleType("vllm")
    module.LLM = lambda **options: LLM(options)
    module.SamplingParams = SimpleNamespace
    module.TokensPrompt = dict
    monkeypatch.setitem(sys.modules, "vllm", module)


@pytest.fixture
def sampler(vllm):
    return VllmSampler("some/model", [END], 0.5, max_model_len=512)


def test_the_model_is_loaded_from_its_path_with_log_probabilities_after_the_temperature(sampler):
    assert sampler.llm.options == {
        "model": "some/model",
        "gpu_memory_utilization": 0.5,
        "logprobs_mode": "processed_logprobs",
        "max_model_len": 512,
    }
    assert sampler.context == 512


def test_every_sample_of_every_prompt_is_a_completion_with_its_end_token_unless_the_limit_came_first(sampler):
    assert list(sampler([[1, 2], [3]], Sampling(1.0, 2, samples=2))) == [
        Completion(0, 0, [2, END], [-0.25, -0.875], False),
        Completion(0, 1, [2, 2], [-0.25, -0.25], True),
        Completion(1, 0, [3, END], [-0.375, -0.875], False),
        Completion(1, 1, [3, 3], [-0.375, -0.375], True),
    ]


def test_vllm_is_asked_in_its_own_words(sampler):
    list(sampler([(1, 2)], Sampling(0.6, 32, samples=4, top_p=0.9, top_k=20)))
    [([prompt], [params])] = sampler.llm.calls
    assert prompt == {"prompt_token_ids": [1, 2]}
    asked = vars(params)
    assert 0 <= asked.pop("seed") < 2**31
    assert asked == {
        "n": 4, "temperature": 0.6, "top_p": 0.9, "top_k": 20, "max_tokens": 32, "stop_token_ids": [END],
        "logprobs": 0, "detokenize": False,
    }  # fmt: skip


def test_prompts_of_one_call_draw_different_noise_and_the_same_noise_when_called_again(sampler):
    for seed in (1, 1, 2):
        list(sampler([[1], [1], [1]], Sampling(1.0, 4, seed=seed)))
    first, again, other = ([one.seed for one in params] for _, params in sampler.llm.calls)
    assert first == again
    assert len({*first, *other}) == 6


def test_the_likeliest_response_is_asked_for_once_and_given_as_often_as_wanted(sampler):
    found = list(sampler([[3]], Sampling(0.0, 4, samples=2)))
    assert found == [Completion(0, k, [3, END], [-0.375, -0.875], False) for k in range(2)]
    assert sampler.llm.calls[0][1][0].n == 1  # vLLM refuses more at temperature 0


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
