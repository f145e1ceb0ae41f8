"""Sampling: nano against transformers' own `generate` and a plain forward pass, and the draw by itself."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, MistralConfig

from microcoder.grpo import token_entropy
from microcoder.models import NANO
from microcoder.prompts import messages
from microcoder.sampling import Sampler, Sampling, encode
from microcoder.sampling import sampler as plain
from microcoder.sampling.sampler import ROOM, RoomyLayer, draw, roomy
from microcoder.starter import problems

LIMIT = 64

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(NANO, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(NANO)


@pytest.fixture(scope="module")
def sampler(model):
    return Sampler(model, [model.config.eos_token_id])


@pytest.fixture(scope="module")
def prompts(tokenizer):
    found = [encode(tokenizer, messages(problem)) for problem in problems("train", 6)]
    assert len({len(ids) for ids in found}) > 3  # so that there is padding
    return found


@pytest.fixture(scope="module")
def greedy(sampler, prompts):
    """The likeliest completion of each prompt, in order."""
    return sorted(sampler(prompts, Sampling(0, LIMIT)), key=lambda c: c.prompt)


def ids_of(completions):
    return [c.ids for c in sorted(completions, key=lambda c: (c.prompt, c.sample))]


def test_keys_and_values_with_room_are_those_that_transformers_keeps(model):
    ours, theirs = roomy(DynamicCache(config=model.config)), DynamicCache(config=model.config)
    generator = torch.Generator().manual_seed(0)

    def write(rows, tokens):
        new = [torch.randn(rows, 2, tokens, 4, generator=generator) for _ in "kv"]
        found, expected = (cache.update(*new, 0) for cache in (ours, theirs))
        assert all(map(torch.equal, found, expected))
        assert ours.get_seq_length() == theirs.get_seq_length()

    write(2, 5)
    for cache in (ours, theirs):
        cache.batch_repeat_interleave(3)
    for _ in range(ROOM + 2):  # once more than there is room for
        write(6, 1)
    for cache in (ours, theirs):
        cache.batch_select_indices(torch.tensor([0, 4]))
    write(2, 1)
    write(2, 2 * ROOM)


def test_only_plain_layers_are_given_room(model):
    sliding = MistralConfig(num_hidden_layers=1, sliding_window=8)
    assert {type(layer) for layer in roomy(DynamicCache(config=model.config)).layers} == {RoomyLayer}
    assert RoomyLayer not in {type(layer) for layer in roomy(DynamicCache(config=sliding)).layers}


# --- what comes out


def test_greedy_completions_of_a_padded_batch_are_those_of_generate_for_each_prompt_alone(model, prompts, greedy):
    end = model.config.eos_token_id
    assert {c.truncated for c in greedy} == {True, False}  # some leave the batch early, some never
    for completion, prompt in zip(greedy, prompts, strict=True):
        ids = torch.tensor([prompt])
        settings = {"max_new_tokens": LIMIT, "do_sample": False, "temperature": None, "pad_token_id": 0}
        expected = model.generate(ids, attention_mask=torch.ones_like(ids), eos_token_id=end, **settings)
        assert completion.ids == expected[0, len(prompt) :].tolist()


def test_the_end_token_is_part_of_a_completion_and_nothing_follows_it(model, greedy):
    end = model.config.eos_token_id
    for completion in greedy:
        assert completion.truncated == (end not in completion.ids)
        assert end not in completion.ids[:-1]
        assert len(completion.logprobs) == len(completion.ids)


def test_the_limit_is_kept_and_a_completion_that_ends_right_at_it_is_not_truncated(sampler, prompts, greedy):
    whole = next(c for c in greedy if not c.truncated)
    prompt, length = prompts[whole.prompt], len(whole.ids)
    (fits,) = sampler([prompt], Sampling(0, length))
    (cut,) = sampler([prompt], Sampling(0, length - 1))
    assert (fits.ids, fits.truncated) == (whole.ids, False)
    assert (cut.ids, cut.truncated) == (whole.ids[:-1], True)


def test_any_of_several_end_tokens_ends_a_completion(model, prompts, greedy):
    other = greedy[0].ids[3]
    (completion,) = Sampler(model, [model.config.eos_token_id, other])(prompts[:1], Sampling(0, LIMIT))
    assert completion.ids == greedy[0].ids[: greedy[0].ids.index(other) + 1]
    assert not completion.truncated


def test_every_prompt_gets_its_samples_each_once(sampler, prompts):
    found = list(sampler(prompts, Sampling(1.0, 8, samples=3)))
    assert sorted((c.prompt, c.sample) for c in found) == list(itertools.product(range(len(prompts)), range(3)))


def test_a_batch_smaller_than_the_prompts_gives_all_of_them_the_same_completions(model, prompts, greedy):
    small = Sampler(model, [model.config.eos_token_id], batch=4)
    assert ids_of(small(prompts, Sampling(0, 12))) == [c.ids[:12] for c in greedy]
    assert ids_of(small(prompts, Sampling(0, 12, samples=5))) == [c.ids[:12] for c in greedy for _ in range(5)]


@pytest.mark.parametrize(("samples", "most"), [(3, 3), (5, 4)])
def test_no_more_than_a_batch_is_written_at_once(model, prompts, samples, most):
    rows = []
    hook = model.get_decoder().register_forward_pre_hook(
        lambda _, __, inputs: rows.append(len(inputs["input_ids"])), with_kwargs=True
    )
    found = list(Sampler(model, [], batch=4)(prompts, Sampling(1.0, 3, samples=samples)))
    hook.remove()
    assert max(rows) == most
    assert sorted((c.prompt, c.sample) for c in found) == list(itertools.product(range(len(prompts)), range(samples)))


def test_on_a_gpu_as_many_are_written_at_once_as_its_share_of_memory_holds(model, monkeypatch):
    """Of a GPU of 1 GiB; keys and values of a token take 2 x layers x heads x width x 4 bytes."""
    config = model.config
    token = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * 4
    on_gpu = SimpleNamespace(device=torch.device("cuda"), dtype=torch.float32, config=config)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=2**30))
    sampler = Sampler(on_gpu, [], batch=512, memory=0.25)
    assert sampler._rows(2**28 // token // 40) == 40
    assert (sampler._rows(16), sampler._rows(2**30)) == (512, 1)


def test_no_prompts_give_no_completions(sampler):
    assert list(sampler([], Sampling(1.0, 8))) == []


# --- when it comes out


def test_a_completion_is_handed_out_before_the_longer_ones_are_written(model, sampler, prompts, greedy):
    passes = 0

    def count(*_):
        nonlocal passes
        passes += 1

    hook = model.register_forward_hook(count)
    try:
        for completion in sampler(prompts, Sampling(0, LIMIT)):
            assert passes == len(completion.ids)  # one for the prompts, and one for each token but the last
    finally:
        hook.remove()
    assert passes == max(len(c.ids) for c in greedy)


# --- the randomness


def test_the_same_seed_gives_the_same_completions_and_another_seed_others(sampler, prompts):
    def sample(seed):
        return [(c.prompt, c.sample, c.ids, c.logprobs) for c in sampler(prompts, Sampling(1.0, 24, 2, seed=seed))]

    assert sample(1) == sample(1)
    assert sample(1) != sample(2)


def test_the_samples_of_a_prompt_differ(sampler, prompts):
    found = ids_of(sampler(prompts[:1], Sampling(1.5, 24, samples=4)))
    assert len(set(map(tuple, found))) > 1


@pytest.mark.parametrize("cut", [{"top_k": 1}, {"top_p": 1e-6}])
def test_with_one_token_to_choose_from_any_temperature_is_greedy(sampler, prompts, greedy, cut):
    assert ids_of(sampler(prompts, Sampling(1.3, LIMIT, **cut))) == [c.ids for c in greedy]


@pytest.mark.parametrize("temperature", [0, 1.3])
def test_log_probabilities_are_those_of_a_plain_forward_pass_at_the_temperature(model, sampler, prompts, temperature):
    for completion in sampler(prompts, Sampling(temperature, 24, samples=2, top_k=20)):
        prompt = prompts[completion.prompt]
        with torch.no_grad():
            logits = model(torch.tensor([prompt + completion.ids])).logits[0, len(prompt) - 1 : -1]  # (t, vocabulary)
        logprobs = torch.log_softmax(logits / (temperature or 1), -1)
        expected = logprobs.gather(1, torch.tensor(completion.ids)[:, None])[:, 0]  # (t,)
        assert torch.allclose(torch.tensor(completion.logprobs), expected, atol=1e-4)


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.8])
def test_tokens_come_as_often_as_the_softmax_at_the_temperature_says(model, sampler, temperature):
    prompt, count = [5, 6, 7], 4000
    with torch.no_grad():
        expected = count * torch.softmax(model(torch.tensor([prompt])).logits[0, -1] / temperature, -1)  # (vocabulary,)
    drawn = torch.tensor([c.ids[0] for c in sampler([prompt], Sampling(temperature, 1, samples=count))])
    found = drawn.bincount(minlength=len(expected)).float()
    often = expected >= 5  # the others count as one
    expected = torch.cat([expected[often], expected[~often].sum()[None]])
    found = torch.cat([found[often], found[~often].sum()[None]])
    chi_square, freedom = float(((found - expected) ** 2 / expected).sum()), len(expected) - 1
    assert freedom >= 5
    assert chi_square < freedom + 5 * math.sqrt(2 * freedom)


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        ({}, {0, 1, 2, 3}),
        ({"top_k": 3}, {0, 1, 2}),
        ({"top_k": 9}, {0, 1, 2, 3}),
        ({"top_p": 0.49}, {0}),
        ({"top_p": 0.51}, {0, 1}),
        ({"top_p": 0.96}, {0, 1, 2, 3}),
        ({"top_k": 2, "top_p": 0.6}, {0}),  # 0.5 of the 0.8 that top_k leaves is more than 0.6 of it
    ],
)
def test_top_k_and_top_p_keep_the_likeliest_tokens_and_no_others(cut, kept):
    probabilities = torch.tensor([0.15, 0.5, 0.05, 0.3])  # ranks 2, 0, 3, 1
    logits = probabilities.log().expand(2000, -1)
    tokens, logprobs = draw(logits, Sampling(1.0, 1, **cut), torch.Generator().manual_seed(0))
    assert {[2, 0, 3, 1][n] for n in tokens.tolist()} == kept
    assert torch.allclose(logprobs.exp(), probabilities[tokens])  # of the whole distribution, whatever was cut


@pytest.mark.parametrize(
    "wrong",
    [{"temperature": -0.1}, {"limit": 0}, {"samples": 0}, {"top_p": 0.0}, {"top_p": 1.1}, {"top_k": -1}],
)
def test_settings_that_nothing_can_be_sampled_with_are_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}.*must be"):
        Sampling(**{"temperature": 1.0, "limit": 8, **wrong})


# --- what goes in


def test_with_a_chat_template_the_prompt_ends_where_the_model_begins_to_speak(tokenizer):
    ids = encode(tokenizer, [{"role": "user", "content": "Add two numbers."}])
    assert tokenizer.decode(ids) == "<|user|>Add two numbers.<|end|><|assistant|>"


def test_without_a_chat_template_the_prompt_is_the_text_alone():
    plain = AutoTokenizer.from_pretrained(NANO)
    plain.chat_template = None
    ids = encode(plain, [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Add two numbers."}])
    assert plain.decode(ids) == "Be brief.\n\nAdd two numbers.\n"


def test_minus_the_logprobs_of_what_was_sampled_is_the_entropy_on_average(model, sampler, prompts):
    """Which is how training logs it, for all tokens and without their logits."""
    found = list(sampler(prompts, Sampling(1.0, 24, samples=24)))
    sampled, exact = [], []
    with torch.no_grad():
        for one in found:
            ids = torch.tensor([prompts[one.prompt] + one.ids])
            logits = model(ids).logits[:, len(prompts[one.prompt]) - 1 : -1]
            exact += token_entropy(logits, 1.0)[0].tolist()
            sampled += [-value for value in one.logprobs]
    difference = torch.tensor(sampled) - torch.tensor(exact)  # of mean 0, token by token
    assert abs(float(difference.mean())) < 4 * float(difference.std()) / len(difference) ** 0.5
    assert float(difference.std()) > 0.01


@pytest.mark.parametrize("arm", [True, False])
def test_how_products_are_computed_is_changed_within_the_model_only(model, sampler, prompts, monkeypatch, arm):
    """On Arm CPUs, and then neither for whoever takes the completions nor afterwards."""
    monkeypatch.setattr(plain, "ARM", arm)
    before, inside = torch.backends.mkldnn.enabled, []
    hook = model.register_forward_hook(lambda *_: inside.append(torch.backends.mkldnn.enabled))
    try:
        for _ in sampler(prompts[:2], Sampling(1.0, 8, 2)):
            assert torch.backends.mkldnn.enabled == before
    finally:
        hook.remove()
    assert set(inside) == {before and not arm}
    assert torch.backends.mkldnn.enabled == before
