"""vLLM in this process gives what our own sampler gives: tokens, log-probabilities, weights that are handed over."""

from __future__ import annotations

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from microcoder.models import NANO
from microcoder.prompts import messages
from microcoder.sampling import Sampler, Sampling, encode
from microcoder.sampling.vllm import in_process
from microcoder.starter import problems

LIMIT = 40
CLOSE = {"abs": 2e-4, "rel": 0}  # float32 products in another order


@pytest.fixture(scope="module")
def prompts():
    tokenizer = AutoTokenizer.from_pretrained(NANO)
    return [encode(tokenizer, messages(problem)) for problem in problems("train", 6)]


@pytest.fixture(scope="module")
def engine():
    found = in_process(str(NANO), 0.05, 256, 16, False)
    found.end_tokens = [AutoTokenizer.from_pretrained(NANO).eos_token_id]
    yield found
    found.close()


@pytest.fixture
def model():
    return AutoModelForCausalLM.from_pretrained(NANO, dtype=torch.float32).eval()


def changed(model):
    """The model with other weights, so that it writes something else."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1 + 0.1 * torch.randn(weight.shape, generator=generator))
    return model


def ordered(completions):
    return sorted(completions, key=lambda one: (one.prompt, one.sample))


def likeliest(sampler, prompts):
    return ordered(sampler(prompts, Sampling(0, LIMIT)))


def same(found, expected):
    """The same tokens and log-probabilities."""
    assert [one.ids for one in found] == [one.ids for one in expected]
    assert [one.truncated for one in found] == [one.truncated for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, **CLOSE)


@torch.no_grad()
def scored(model, prompt, completion, temperature):
    """The log-probabilities of a completion by a plain pass."""
    ids = torch.tensor([[*prompt, *completion.ids]])
    logits = model(ids).logits[0, len(prompt) - 1 : -1] / temperature
    return logits.log_softmax(-1).gather(1, torch.tensor(completion.ids)[:, None])[:, 0].tolist()


def test_the_likeliest_completions_are_those_of_our_own_sampler(engine, model, prompts):
    engine.refresh(model)
    same(likeliest(engine, prompts), likeliest(Sampler(model, engine.end_tokens), prompts))


def test_log_probabilities_are_those_at_the_temperature(engine, model, prompts):
    engine.refresh(model)
    for one in engine(prompts, Sampling(1.3, LIMIT, samples=2, seed=1)):
        assert one.logprobs == pytest.approx(scored(model, prompts[one.prompt], one, 1.3), **CLOSE)


def test_a_completion_depends_on_its_seed_and_not_on_those_beside_it(engine, model, prompts):
    engine.refresh(model)
    asked = Sampling(1.0, LIMIT, samples=3, seed=5)
    whole = ordered(engine(prompts, asked))
    alone = ordered(engine(prompts[:1], asked))
    assert [one.ids for one in alone] == [one.ids for one in whole[:3]]
    assert len({tuple(one.ids) for one in whole[:3]}) > 1
    others = ordered(engine(prompts[:1], Sampling(1.0, LIMIT, samples=3, seed=6)))
    assert [one.ids for one in others] != [one.ids for one in alone]


def test_it_samples_from_the_weights_that_it_was_last_handed(engine, model, prompts):
    engine.refresh(model)
    before = likeliest(engine, prompts)
    changed(model)
    engine.refresh(model)
    after = likeliest(engine, prompts)
    assert [one.ids for one in after] != [one.ids for one in before]
    same(after, likeliest(Sampler(model, engine.end_tokens), prompts))


def test_an_adapter_is_handed_over_as_part_of_the_weights(engine, model, prompts):
    adapted = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")).eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_" in name:
                weight.copy_(0.2 * torch.randn(weight.shape, generator=generator))
    engine.refresh(adapted)
    same(likeliest(engine, prompts), likeliest(Sampler(adapted, engine.end_tokens), prompts))


def test_more_prompts_than_are_read_at_once(engine, model, prompts):
    engine.refresh(model)
    many = Sampling(1.0, 8, samples=16, seed=4)  # 16 at a time; together they have more tokens than are read at once
    found = ordered(engine(prompts * 4, many))
    assert len(found) == 16 * 4 * len(prompts)
    assert [one.ids for one in found[:16]] == [one.ids for one in ordered(engine(prompts[:1], many))]


def test_who_stops_listening_leaves_nothing_under_way(engine, model, prompts):
    engine.refresh(model)
    next(iter(engine(prompts, Sampling(1.0, LIMIT, samples=2, seed=2))))
    same(likeliest(engine, prompts), likeliest(Sampler(model, engine.end_tokens), prompts))
