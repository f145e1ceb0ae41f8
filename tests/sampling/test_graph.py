"""Sampling in slots, as on a GPU but step by step: against transformers' own `generate` and a plain forward pass."""

from __future__ import annotations

import copy
import functools
import itertools
import weakref
from types import SimpleNamespace

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny_models import CONFIGS, random_prompts, tiny
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, MistralConfig

from microcoder.models import NANO
from microcoder.prompts import messages
from microcoder.sampling import GraphSampler, NotCapturable, Sampler, Sampling, call, encode, sampler_for, shadow
from microcoder.sampling.call import CHUNK
from microcoder.starter import problems

LIMIT = 16
PROMPTS = random_prompts(1, 5, 70, 3, 17, 2)

pytestmark = pytest.mark.usefixtures("one_thread")


def continued(model, prompt, limit, ends=None):
    """The likeliest continuation, as transformers writes it."""
    ids = torch.tensor([prompt])
    settings = {"max_new_tokens": limit, "do_sample": False, "pad_token_id": 0, "eos_token_id": ends}
    return model.generate(ids, attention_mask=torch.ones_like(ids), **settings)[0, len(prompt) :].tolist()


@torch.no_grad()
def distributions(model, prompts, completions, temperature=1.0):
    """The log-probabilities (t, vocabulary) that each completion was drawn from, by one plain forward pass."""
    whole = [torch.tensor(prompts[one.prompt] + one.ids) for one in completions]
    logits = model(pad_sequence(whole, batch_first=True)).logits  # what is padded comes last, and is seen by no one
    logprobs = torch.log_softmax(logits / temperature, -1)
    return [
        row[len(ids) - len(one.ids) - 1 : len(ids) - 1]
        for row, ids, one in zip(logprobs, whole, completions, strict=True)
    ]


def furthest(model, prompts, completions, temperature=1.0):
    """The largest difference between the log-probabilities of completions and those of a plain forward pass."""
    differences = [
        logprobs.gather(1, torch.tensor(one.ids)[:, None])[:, 0] - torch.tensor(one.logprobs)  # (t,)
        for logprobs, one in zip(distributions(model, prompts, completions, temperature), completions, strict=True)
    ]
    return float(torch.cat(differences).abs().max())


def in_order(completions):
    return sorted(completions, key=lambda c: (c.prompt, c.sample))


def ids_of(completions):
    return [c.ids for c in in_order(completions)]


@functools.cache
def greedy(family):
    """A model, two end tokens, each of which ends one completion, and what `generate` writes until it comes to them."""
    model = tiny(family)
    endless = [continued(model, prompt, LIMIT) for prompt in PROMPTS]
    tokens = list(itertools.chain(*endless))
    once = {n: token for n, ids in enumerate(endless) for token in ids[2:7] if tokens.count(token) == 1}
    ends = list(once.values())[:2]
    expected = [[t for n, t in enumerate(ids) if not set(ends) & set(ids[:n])] for ids in endless]
    assert sum(len(ids) < LIMIT for ids in expected) == 2
    return SimpleNamespace(model=model, ends=ends, expected=expected)


@pytest.fixture(scope="module")
def llama():
    """The smallest, for what depends on the slots and not on the model."""
    return tiny("llama", num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1)


# --- what comes out


@pytest.mark.parametrize(("batch", "samples"), [(3, 1), (64, 2)])  # slots that are refilled; and one for each response
@pytest.mark.parametrize("family", CONFIGS)
def test_greedy_completions_are_those_of_generate_for_each_prompt_alone(family, batch, samples):
    case = greedy(family)
    found = in_order(GraphSampler(case.model, case.ends, batch)(PROMPTS, Sampling(0, LIMIT, samples)))
    assert [c.ids for c in found] == [ids for ids in case.expected for _ in range(samples)]
    assert [c.truncated for c in found] == [c.ids[-1] not in case.ends for c in found]
    assert furthest(case.model, PROMPTS, found) < 1e-4


@pytest.mark.parametrize("family", CONFIGS)
def test_log_probabilities_are_those_of_a_plain_forward_pass_at_the_temperature(family):
    case = greedy(family)
    found = list(GraphSampler(case.model, case.ends, batch=5)(PROMPTS, Sampling(1.3, 10)))
    assert all(len(c.logprobs) == len(c.ids) for c in found)
    assert furthest(case.model, PROMPTS, found, temperature=1.3) < 1e-4


def test_nano_writes_what_it_writes_through_transformers():
    model = AutoModelForCausalLM.from_pretrained(NANO, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(NANO)
    prompts = [encode(tokenizer, messages(problem)) for problem in problems("train", 3)]
    ours, theirs = (kind(model, [model.config.eos_token_id], 2) for kind in (GraphSampler, Sampler))
    assert ids_of(ours(prompts, Sampling(0, LIMIT))) == ids_of(theirs(prompts, Sampling(0, LIMIT)))


def test_every_prompt_gets_its_samples_each_once(llama):
    found = list(GraphSampler(llama, [7], batch=8)(PROMPTS, Sampling(1.0, 8, samples=3)))
    assert sorted((c.prompt, c.sample) for c in found) == list(itertools.product(range(len(PROMPTS)), range(3)))


def test_the_limit_is_kept_and_a_completion_that_ends_right_at_it_is_not_truncated():
    case = greedy("llama")
    whole = min(case.expected, key=len)
    prompt = PROMPTS[case.expected.index(whole)]
    sampler = GraphSampler(case.model, case.ends)
    (fits,) = sampler([prompt], Sampling(0, len(whole)))
    (cut,) = sampler([prompt], Sampling(0, len(whole) - 1))
    assert (fits.ids, fits.truncated) == (whole, False)
    assert (cut.ids, cut.truncated) == (whole[:-1], True)


def test_no_prompts_give_no_completions_and_the_next_call_works():
    case = greedy("llama")
    sampler = GraphSampler(case.model, case.ends)
    assert list(sampler([], Sampling(1.0, 8))) == []
    assert ids_of(sampler(PROMPTS[:2], Sampling(0, LIMIT))) == case.expected[:2]


# --- when it comes out


def test_a_completion_is_handed_out_before_the_longer_ones_are_written():
    case = greedy("llama")
    sampler = GraphSampler(case.model, case.ends)
    lengths = []
    for completion in sampler(PROMPTS, Sampling(0, LIMIT)):
        lengths.append(len(completion.ids))
        assert sampler.usage.steps < lengths[-1] + 2 * CHUNK  # its last chunk, and the one that runs meanwhile
    assert lengths[0] + 2 * CHUNK < lengths[-1]


def test_a_slot_is_free_for_two_chunks_at_most_while_others_wait(llama):
    sampler = GraphSampler(llama, range(8), batch=6)
    found = list(sampler(PROMPTS, Sampling(1.0, 40, samples=6)))
    assert min(len(c.ids) for c in found) < CHUNK < 6 * CHUNK < max(len(c.ids) for c in found)
    assert 0 < sampler.usage.idle_slot_steps < len(found) * 2 * CHUNK
    assert sampler.usage.waiting_slot_steps < sum(len(c.ids) for c in found) + sampler.usage.idle_slot_steps


def test_a_prompt_is_read_once_for_all_of_its_samples(llama):
    sampler = GraphSampler(llama, [7], batch=5)
    read = []
    hook = sampler.shadow.model.get_decoder().register_forward_pre_hook(
        lambda _, __, inputs: read.append(inputs["input_ids"].shape), with_kwargs=True
    )
    list(sampler(PROMPTS, Sampling(1.0, 4, samples=4)))
    hook.remove()
    steps = [shape for shape in read if shape[1] == 1]
    assert sampler.usage.prompts_read == len(PROMPTS)
    assert sum(shape[0] for shape in read) - sum(shape[0] for shape in steps) == len(PROMPTS)
    assert len(steps) == sampler.usage.steps


def test_when_none_waits_any_more_the_batch_shrinks_and_every_row_goes_on_as_it_was(llama):
    ends, limit = range(8), 40
    sampler = GraphSampler(llama, ends, batch=64)
    found = list(sampler(PROMPTS, Sampling(1.0, limit, samples=6, seed=1)))
    slots = len(found)  # one for each
    assert sampler.usage.slot_steps < 0.6 * sampler.usage.steps * slots
    assert sampler.usage.slot_steps >= sum(len(c.ids) for c in found)
    assert sampler.usage.waiting_slot_steps == sampler.usage.idle_slot_steps == 0
    assert not any(token in ends for c in found for token in c.ids[:-1])
    assert all(c.ids[-1] in ends or len(c.ids) == limit for c in found)
    assert furthest(llama, PROMPTS, found) < 1e-4


def test_a_prompt_is_kept_until_the_last_of_its_responses_is_finished(llama, monkeypatch):
    monkeypatch.setattr(call, "AHEAD", 1)  # so that each prompt takes the pages of another one
    sampler = GraphSampler(llama, range(12), batch=4)
    found = list(sampler(PROMPTS, Sampling(1.0, LIMIT, samples=3)))
    assert sampler.usage.prompts_read == len(PROMPTS)
    assert furthest(llama, PROMPTS, found) < 1e-4


# --- one call after another


def test_a_call_that_is_given_up_half_way_leaves_nothing_behind(llama):
    sampling = Sampling(1.0, 12, samples=2)
    sampler = GraphSampler(llama, range(8), batch=4)
    given_up = sampler(PROMPTS, Sampling(1.0, 12, samples=2, seed=1))
    for _ in range(5):
        next(given_up)
    given_up.close()
    assert list(sampler(PROMPTS, sampling)) == list(GraphSampler(llama, range(8), batch=4)(PROMPTS, sampling))


def test_calls_may_grow_in_every_direction_and_become_small_again(llama):
    sampler = GraphSampler(llama, [7], batch=6)
    short, long, many = random_prompts(3, 1), random_prompts(4, 90, 200), random_prompts(*[2] * 9)
    rooms = []
    for prompts, limit in ((short, 4), (short, 12), (long, 4), (many, 4), (short[1:], 4)):
        sampling = Sampling(1.0, limit)
        assert ids_of(sampler(prompts, sampling)) == ids_of(GraphSampler(llama, [7], batch=6)(prompts, sampling))
        rooms.append(sampler.room)
    assert [a is not b for a, b in itertools.pairwise(rooms)] == [True, True, True, False]  # which is kept, once made


def test_the_weights_are_those_that_the_model_has_when_it_is_called():
    model = tiny("llama")
    sampler = GraphSampler(model, [7])
    before = ids_of(sampler(PROMPTS, Sampling(0, 8)))
    model.load_state_dict(tiny("llama", seed=1).state_dict())
    after = ids_of(sampler(PROMPTS, Sampling(0, 8)))
    assert after == [continued(model, prompt, 8, [7]) for prompt in PROMPTS]
    assert after != before


# --- the weights and the model


def adapted(**settings):
    """A model with an adapter that changes what it writes."""
    model = get_peft_model(tiny("qwen2"), LoraConfig(r=2, target_modules="all-linear", **settings)).eval()
    generator = torch.Generator().manual_seed(2)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            weight.data.normal_(0, 0.3, generator=generator)
    return model


def test_a_model_with_an_adapter_is_sampled_as_if_it_were_merged():
    model = adapted()
    found = in_order(GraphSampler(model, [7])(PROMPTS, Sampling(0, 6)))
    merged = copy.deepcopy(model).merge_and_unload()
    assert [c.ids for c in found] == [continued(merged, prompt, 6, [7]) for prompt in PROMPTS]
    assert furthest(merged, PROMPTS, found) < 1e-4
    assert found[0].ids != continued(tiny("qwen2"), PROMPTS[0], 6, [7])


def test_the_weights_that_an_adapter_makes_anew_are_not_all_kept_at_once(monkeypatch):
    model, merged, alive = adapted(), [], []
    own = shadow.weights

    def observed(model, dtype):
        kept = {weight.data_ptr() for weight in model.parameters()}
        for name, weight in own(model, dtype):
            if weight.data_ptr() not in kept:
                merged.append(weakref.ref(weight))
                alive.append(sum(one() is not None for one in merged))
            yield name, weight

    monkeypatch.setattr(shadow, "weights", observed)
    monkeypatch.setattr(shadow, "TOGETHER", 1)
    shadow.Shadow(model, torch.float32, fused=False)
    assert len(merged) == 14
    assert max(alive) <= 2  # one, and the next, which is made while it is still there


def test_an_adapter_whose_weights_do_not_simply_add_up_is_refused():
    with pytest.raises(NotCapturable, match="lora_magnitude_vector"):
        GraphSampler(adapted(use_dora=True), [7])


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # where the processor has no bfloat16
def test_a_bfloat16_copy_of_float32_weights_stays_near_them(llama):
    sampler = GraphSampler(llama, [7], dtype=torch.bfloat16)
    assert {weight.dtype for weight in sampler.shadow.model.parameters()} == {torch.bfloat16}
    assert 1e-4 < furthest(llama, PROMPTS, list(sampler(PROMPTS[:2], Sampling(1.0, CHUNK)))) < 0.1


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
def test_the_model_itself_is_left_as_it_was(llama):
    ids = torch.tensor([[0, 0, 0, 11, 12], [13, 14, 15, 16, 17]])
    mask = torch.tensor([[0, 0, 0, 1, 1], [1, 1, 1, 1, 1]])

    def padded():
        with torch.no_grad():
            return llama(ids, attention_mask=mask).logits[mask.bool()]

    weights = copy.deepcopy(llama.state_dict())
    before, config, kind = padded(), llama.config.to_dict(), llama.config._attn_implementation
    sampler = GraphSampler(llama, [7], dtype=torch.bfloat16)
    list(sampler(PROMPTS[:2], Sampling(1.0, 2)))
    assert (llama.config._attn_implementation, llama.config.to_dict()) == (kind, config)
    assert sampler.shadow.model.config._attn_implementation != kind
    assert torch.equal(padded(), before)
    assert all(torch.equal(weight, weights[name]) for name, weight in llama.state_dict().items())


# --- the randomness


def test_the_same_seed_gives_the_same_completions_and_another_seed_others(llama):
    sampler = GraphSampler(llama, [7], batch=5)
    one, again, other = (list(sampler(PROMPTS, Sampling(1.0, 8, seed=seed))) for seed in (1, 1, 2))
    assert one == again
    assert ids_of(one) != ids_of(other)


def test_the_samples_of_a_prompt_differ(llama):
    found = ids_of(GraphSampler(llama, [7], batch=5)(PROMPTS[2:3], Sampling(1.0, 8, samples=8)))
    assert len(set(map(tuple, found))) == 8


@pytest.mark.parametrize("cut", [{"top_k": 3}, {"top_p": 0.3}])
def test_only_tokens_that_are_allowed_are_drawn_with_log_probabilities_of_the_whole_distribution(llama, cut):
    temperature = 0.8
    found = list(GraphSampler(llama, [7], batch=12)(PROMPTS, Sampling(temperature, 8, samples=3, **cut)))
    ranks = []
    for one, logprobs in zip(found, distributions(llama, PROMPTS, found, temperature), strict=True):
        drawn = logprobs.gather(1, torch.tensor(one.ids)[:, None])  # (t, 1)
        likelier = logprobs > drawn + 1e-4
        ranks += likelier.sum(1).tolist()
        assert likelier.sum(1).max() < cut.get("top_k", 97)
        assert (logprobs.exp() * likelier).sum(1).max() < cut.get("top_p", 1.0)
    assert len(set(ranks)) > 2  # not always the likeliest
    assert furthest(llama, PROMPTS, found, temperature) < 1e-4


def test_tokens_come_as_often_as_the_softmax_at_the_temperature_says(llama):
    prompts, temperature, count = PROMPTS[4:5], 0.8, 1500
    drawn = list(GraphSampler(llama, [7])(prompts, Sampling(temperature, 1, samples=count)))
    expected = count * distributions(llama, prompts, drawn[:1], temperature)[0][0].exp()  # (vocabulary,)
    found = torch.tensor([one.ids[0] for one in drawn]).bincount(minlength=len(expected)).float()
    often = expected >= 5  # the others count as one
    expected = torch.cat([expected[often], expected[~often].sum()[None]])
    found = torch.cat([found[often], found[~often].sum()[None]])
    chi_square, freedom = ((found - expected) ** 2 / expected).sum(), torch.tensor(len(expected) - 1.0)
    assert freedom > 20
    assert torch.special.gammaincc(freedom / 2, chi_square / 2) > 1e-3  # the probability of a larger one


# --- which models, and which sampler

REFUSED = {
    "a window of 64 tokens": MistralConfig(sliding_window=64, head_dim=32),
    "layers of the kind sliding_attention": CONFIGS["qwen3"](use_sliding_window=True, max_window_layers=1, head_dim=32),
    "heads are 24 wide": CONFIGS["llama"](head_dim=24),
    "heads are 16 wide": CONFIGS["qwen2"](hidden_size=64, num_attention_heads=4, num_key_value_heads=4),
    "change with the length": CONFIGS["llama"](
        head_dim=32, rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    ),
}


def empty(config):
    """A model without memory for its weights."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


@pytest.mark.parametrize("reason", REFUSED)
def test_a_model_that_would_come_out_wrong_is_refused_with_a_reason(reason):
    config = REFUSED[reason]
    config.num_hidden_layers = 1
    with pytest.raises(NotCapturable, match=reason):
        GraphSampler(empty(config), [7])


def test_without_a_gpu_transformers_samples_and_graphs_cannot_be_asked_for(llama):
    for engine in ("auto", "transformers"):
        found = sampler_for(llama, [7], engine, batch=3)
        assert (type(found), found.end_tokens, found.batch) == (Sampler, [7], 3)
    with pytest.raises(NotCapturable, match=r"needs a CUDA GPU; use rollout\.engine=auto"):
        sampler_for(llama, [7], "graph")


def test_on_a_gpu_a_model_that_is_refused_is_sampled_through_transformers_with_a_note():
    weight = SimpleNamespace(is_cuda=True, device=torch.device("cuda"), dtype=torch.float32)  # all that is looked at
    model = SimpleNamespace(config=REFUSED["heads are 24 wide"], parameters=lambda: iter([weight]))
    notes = []
    assert type(sampler_for(model, [7], note=notes.append)) is Sampler
    assert len(notes) == 1
    assert "heads are 24 wide" in notes[0]
    with pytest.raises(NotCapturable, match=r"heads are 24 wide.*; use rollout\.engine=auto"):
        sampler_for(model, [7], "graph")
