"""The Triton kernels against plain operations, in Triton's interpreter.

Triton decides when it is imported whether it interprets, so all checks run once in a process of their own (this file as
a program), which prints what it found; the tests say what that must be.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys

import pytest
import torch
from model_folders import ROOT
from tiny_models import random_prompts, tiny
from torch.nn import functional
from transformers.models.llama import modeling_llama
from transformers.models.qwen3 import modeling_qwen3

from microcoder.sampling import GraphSampler, Sampling, call, plain
from microcoder.sampling.plain import PAGE, Pools, Rows
from microcoder.sampling.shadow import Shadow

kernels = pytest.importorskip("microcoder.sampling.kernels", reason="the kernels need Triton: pip install triton")
triton, tl = kernels.triton, kernels.tl

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


@pytest.fixture(scope="module")
def found():
    """What each check found, by its name."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    return json.loads(subprocess.check_output([sys.executable, __file__], env=environment))


def rows_of(count, **settings):
    rows = Rows(torch.zeros(7, count, dtype=torch.int64))
    for name, values in {"slot": range(count), **settings}.items():
        getattr(rows, name)[:] = torch.tensor(values)
    return rows


def furthest(some, others):
    """The largest difference between tensors and others."""
    differences = [(a.double() - b.double()).abs().max() for a, b in zip(some, others, strict=True)]
    return float(torch.stack(differences).max())  # which is nan if one of them is


# --- attention

WIDTH = 32
CASES = [(1, False), (3, False), (3, True), (5, True)]  # query heads to each key head, with rotation or without
PREFIXES = [0, 31, 32, 33, 64, 70, 5, 128]  # places that are read come in blocks of 32, in pages of 64
LENGTHS = [0, 33, 7, 63, 64, 100, 12, 128]
DONE = [0, 0, 0, 0, 0, 0, 1, 1]  # the last one has no page for another token


@check
def attention():
    return {
        f"{group}, {rotated}, {splits}": attended(group, rotated, splits)
        for group, rotated in CASES
        for splits in kernels.SPLITS
    }


def attended(group, rotated, splits):
    kv_heads, count = 2, len(PREFIXES)
    rows = rows_of(count, prefix_length=PREFIXES, length=LENGTHS, done=DONE, slot=[4, 0, 7, 2, 6, 1, 5, 3])
    table = torch.randperm(40)[: 4 * count].view(count, 4).int()  # prompts of up to two pages, and two of their own
    table[7, :1] = table[2, :1]  # rows 2 and 3 share a prompt
    pools = Pools.of(torch.randn(40, 3, 2, kv_heads, PAGE, WIDTH), table)
    ours = copy.deepcopy(pools)
    states = torch.randn(count, 1, (group + 2) * kv_heads, WIDTH).transpose(1, 2)  # views of one product
    q, k, v = states.split([group * kv_heads, kv_heads, kv_heads], 1)
    q[3] *= 60  # scores whose exp is too large a number
    angles = tuple(torch.randn(2, count, 1, WIDTH)) if rotated else None
    got = kernels.attend(q, k, v, angles, ours, 1, rows, 0.2, splits)
    if angles is not None:
        q, k = modeling_llama.apply_rotary_pos_emb(q, k, *angles)
    expected = plain.attend(q, k, v, None, pools, 1, rows, 0.2)
    live = rows.done == 0
    return {
        "attended": furthest([got[live]], [expected[live]]),
        "stored": furthest(ours.keys + ours.values, pools.keys + pools.values),
        "finite": bool(got.isfinite().all()),
    }


@pytest.mark.parametrize("splits", kernels.SPLITS)
@pytest.mark.parametrize(("group", "rotated"), CASES)
def test_attention_is_the_plain_one_whether_or_not_it_has_to_rotate_or_is_split(found, group, rotated, splits):
    case = found["attention"][f"{group}, {rotated}, {splits}"]
    assert case["attended"] < 1e-4
    assert case["stored"] < 1e-6  # the newest keys and values, and nothing else: not those of a row that is done
    assert case["finite"]


def test_few_rows_are_split_into_many_programs():
    assert [kernels._splits(programs) for programs in (1024, 256, 255, 32, 31, 1)] == [1, 1, 4, 4, 16, 16]


def test_long_texts_are_read_in_large_blocks_and_ahead_where_there_is_shared_memory(monkeypatch):
    small, large = torch.device("cuda", 0), torch.device("cuda", 1)
    monkeypatch.setattr(kernels, "_shared_memory", lambda device: 99 << 10 if device == small else 227 << 10)
    assert [kernels._tuning(1, 2112, device) for device in (small, large)] == [(64, 2, 2), (64, 2, 3)]
    assert kernels._tuning(1, 2048, large) == kernels.TUNING[1]
    assert kernels._tuning(4, 2112, large) == kernels.TUNING[4]


# --- the next token

LIMIT = 40


def picked(pick, logits, rows, temperature=0.0, allowed=None, ends=()):
    """(tokens, log-probabilities) that were written, after `rows` were moved on; -1 and 1 where nothing was."""
    count = int(rows.slot.max()) + 1
    written, logprobs = torch.full((count, LIMIT), -1, dtype=torch.int32), torch.ones(count, LIMIT)
    pick(
        logits, allowed, rows, torch.tensor(ends, dtype=torch.int32), written, logprobs, torch.tensor(temperature),
        torch.tensor(LIMIT), torch.Generator(),
    )  # fmt: skip
    return written, logprobs


@check
def greedy():
    """Rows that go on, that are done, whose token is an end token, that come to the limit, and equal logits."""
    logits = torch.randn(7, 5003) * 3  # neither a multiple of the block nor below it
    for n, places in enumerate([[4900], [7], [4999], [4096], [17, 1041, 4113], [900, 4100, 30], [5002]]):
        logits[n, places] = 20.0
    settings = {
        "token": [3] * 7,
        "position": [5, 6, 7, 8, 9, 10, 11],
        "slot": [6, 2, 0, 4, 1, 3, 5],
        "length": [0, 1, LIMIT - 1, 30, 31, 32, LIMIT - 2],
        "done": [0, 0, 0, 1, 0, 0, 0],
    }
    rows, ours = rows_of(7, **settings), rows_of(7, **settings)
    written, logprobs = picked(plain.pick, logits, rows, ends=[1, 7])
    ours_written, ours_logprobs = picked(kernels.pick, logits, ours, ends=[1, 7])
    return {
        "tokens": ours.token.tolist(),
        "done": ours.done.tolist(),
        "same": torch.equal(ours.state, rows.state) and torch.equal(ours_written, written),
        "logprobs": furthest([ours_logprobs], [logprobs]),
    }


def test_the_likeliest_token_is_picked_and_the_first_of_equals(found):
    assert found["greedy"]["tokens"] == [4900, 7, 4999, 3, 17, 30, 5002]
    assert found["greedy"]["logprobs"] < 1e-5


def test_an_end_token_and_the_limit_end_a_row_and_a_row_that_is_done_stays_as_it_is(found):
    assert found["greedy"]["done"] == [0, 1, 1, 1, 0, 0, 0]
    assert found["greedy"]["same"]  # as the plain operations leave everything


@triton.jit
def _uniforms(seed, out, LANES: tl.constexpr):
    """Those of the first block of the vocabulary, at position 0, where the seed is the key."""
    lane = tl.arange(0, LANES)
    u0, u1, u2, u3 = tl.rand4x(tl.load(seed), lane, n_rounds=7)
    tl.store(out + lane, u0)
    tl.store(out + LANES + lane, u1)
    tl.store(out + 2 * LANES + lane, u2)
    tl.store(out + 3 * LANES + lane, u3)


@check
def drawing():
    logits, heat = torch.randn(8, 4096), 0.7
    rows = rows_of(8, seed=torch.randint(2**62, (8,)).tolist())
    written, logprobs = picked(kernels.pick, logits, rows, heat)
    uniforms = torch.empty(8, 4096)
    for n in range(8):
        _uniforms[(1,)](rows.seed[n : n + 1], uniforms[n], LANES=1024)
    whole = torch.log_softmax(logits / heat, -1)
    return {
        "drawn": rows.token.tolist(),
        "expected": (whole - (-uniforms.log()).log()).argmax(-1).tolist(),
        "likeliest": logits.argmax(-1).tolist(),
        "logprobs": furthest([logprobs[:, 0]], [whole.gather(1, written[:, :1].long())[:, 0]]),
    }


def test_a_draw_is_the_likeliest_after_gumbel_noise_at_the_temperature(found):
    assert found["drawing"]["drawn"] == found["drawing"]["expected"] != found["drawing"]["likeliest"]
    assert found["drawing"]["logprobs"] < 1e-5


@check
def noise():
    """Tokens drawn from equal logits: two rows, the same two elsewhere among others, and rows of other noise."""

    def drawn(seeds, positions, **settings):
        rows = rows_of(len(seeds), seed=seeds, position=positions, **settings)
        picked(kernels.pick, torch.zeros(len(seeds), 3 * 4096), rows, 1.0)  # three blocks
        return rows.token.tolist()

    return {
        "two": drawn([2**61 + 1, 5], [0, 9]),
        "elsewhere": drawn([8, 5, 6, 2**61 + 1], [1, 9, 3, 0], slot=[3, 0, 2, 1], length=[1, 2, 3, 4])[1::2],
        "others": drawn([2**61 + 2, 2**60 + 1, 2**61 + 1, 2**61 + 1], [0, 0, 1, 2]),
    }


def test_the_noise_depends_on_the_seed_and_the_position_only(found):
    first, second = found["noise"]["two"]
    assert found["noise"]["elsewhere"] == [second, first]
    drawn = {first, second, *found["noise"]["others"]}
    assert len(drawn) == 6
    assert max(drawn) >= 4096  # the noise of one block is not that of another


@check
def cutting():
    logits = torch.randn(16, 97)
    keep = [11, 50, 96]
    allowed = torch.full_like(logits, float("-inf"))
    allowed[:, keep] = logits[:, keep]
    rows, likeliest = rows_of(16, seed=list(range(16))), rows_of(4)
    written, logprobs = picked(kernels.pick, logits, rows, 1.5, allowed)
    picked(kernels.pick, logits[:4], likeliest, 0.0, allowed[:4])
    whole = torch.log_softmax(logits / 1.5, -1)
    return {
        "drawn": sorted(set(rows.token.tolist())),
        "likeliest": likeliest.token.tolist() == allowed[:4].argmax(-1).tolist(),
        "logprobs": furthest([logprobs[:, 0]], [whole.gather(1, written[:, :1].long())[:, 0]]),
    }


def test_only_allowed_tokens_are_drawn_with_log_probabilities_of_the_whole_distribution(found):
    assert found["cutting"]["drawn"] == [11, 50, 96]
    assert found["cutting"]["likeliest"]
    assert found["cutting"]["logprobs"] < 1e-5


@check
def frequencies():
    count, heat = 64, 0.25
    expected = count * torch.tensor([0.15, 0.5, 0.1, 0.25])
    logits = heat * expected.log()
    rows = rows_of(count, seed=torch.randint(2**62, (count,)).tolist())
    picked(kernels.pick, logits.expand(count, -1).contiguous(), rows, heat)
    chi_square = ((rows.token.bincount(minlength=4) - expected) ** 2 / expected).sum()
    return float(torch.special.gammaincc(torch.tensor(3 / 2), chi_square / 2))  # the probability of a larger one


def test_tokens_come_as_often_as_the_softmax_at_the_temperature_says(found):
    assert found["frequencies"] > 1e-3


# --- the small ones

NORMED = [(32, torch.float32), (48, torch.float32), (160, torch.float32), (48, torch.bfloat16)]


@check
def norms():
    """The largest difference, as a share of the largest value."""
    results = {}
    for width, dtype in NORMED:
        x, weight = (torch.randn(2, 3, 2 * width) * 5)[..., :width], torch.randn(width)
        got = kernels.rms_norm(x, weight, 1e-5, dtype)
        x, weight = x.double(), weight.double()
        expected = x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * weight
        results[f"{width}, {got.dtype}"] = furthest([got], [expected]) / float(expected.abs().max())
    return results


@pytest.mark.parametrize(("width", "dtype"), NORMED)
def test_the_norm_is_x_over_its_root_mean_square_times_the_weight(found, width, dtype):
    assert found["norms"][f"{width}, {dtype}"] < (1e-6 if dtype == torch.float32 else 2**-7)


@check
def sums():
    """Of the norm with something added: how far the norm is from one of the sum, and x from the sum."""
    x, more, weight = torch.randn(2, 3, 48) * 5, torch.randn(2, 3, 48).bfloat16(), torch.randn(48)
    expected = x + more.float()
    got = kernels.rms_norm(x, weight, 1e-5, torch.float32, more)
    with pytest.raises(ValueError, match="must be contiguous"):
        kernels.rms_norm(x.transpose(0, 1), weight, 1e-5, torch.float32, more)
    return [furthest([got], [kernels.rms_norm(expected, weight, 1e-5, torch.float32)]), furthest([x], [expected])]


def test_what_is_added_before_a_norm_is_added_in_place(found):
    assert found["sums"] == [0, 0]


@check
def rotation():
    results = {}
    for count in (1, 2):  # angles for all rows, or for each
        q, k, v = torch.randn(2, 3, 8, WIDTH).transpose(1, 2).split([5, 2, 1], 1)
        cos, sin = torch.randn(2, count, 3, WIDTH)
        expected = [*modeling_llama.apply_rotary_pos_emb(q, k, cos, sin), v.clone()]
        kernels.rotate(q, k, cos, sin)
        results[str(count)] = furthest([q, k, v], expected)
    return results


@pytest.mark.parametrize("angles", ["1", "2"])
def test_rotation_in_place_is_that_of_transformers(found, angles):
    assert found["rotation"][angles] < 1e-5


@check
def gate():
    both = torch.randn(3, 2, 2 * 1030) * 3  # more than a block
    return furthest([kernels.silu_times(both)], [functional.silu(both[..., :1030]) * both[..., 1030:]])


def test_the_gate_is_silu_of_one_half_times_the_other(found):
    assert found["gate"] < 1e-5


# --- all of them in a model

PLACES = {"llama": modeling_llama, "qwen3": modeling_qwen3}
NORMS = {"llama": 5, "qwen3": 9}  # two layers with two norms each, or four, and the last one


@check
def models():
    return {family: through_kernels(family) for family in PLACES}


def through_kernels(family):
    model, prompts = tiny(family, num_attention_heads=2, num_key_value_heads=1), random_prompts(1, 2, 5)
    original = PLACES[family].apply_rotary_pos_emb
    by_hand, ours = (GraphSampler(model, [7]) for _ in range(2))
    ours.ops, ours.shadow = kernels, Shadow(model, torch.float32, fused=True)
    replaced = [name.rpartition(".")[2] for name, part in ours.shadow.model.named_modules() if "forward" in vars(part)]

    def compared(prompts, limit):
        both = [
            sorted(sampler(prompts, Sampling(0, limit)), key=lambda completion: completion.prompt)
            for sampler in (by_hand, ours)
        ]
        return {
            "ids": [[completion.ids for completion in some] for some in both],
            "logprobs": furthest(*([torch.tensor(completion.logprobs) for completion in some] for some in both)),
        }

    before = compared(prompts, 6)
    layers = model.model.layers
    for weight in (layers[0].self_attn.k_proj.weight, layers[1].mlp.up_proj.weight):
        weight.data.normal_(0, 0.2)
    after = compared(prompts[1:2], 3)
    restored = [PLACES[family].apply_rotary_pos_emb is original]
    with pytest.raises(IndexError):
        ours.shadow.hidden(torch.tensor([[1000]]), torch.tensor([[0]]), None)  # no such token
    ours.shadow.waiting.append(torch.full((1, 1, model.config.hidden_size), 99.0))  # of a call that failed in its midst
    again = compared(prompts[1:2], 3)
    return {
        "replaced": {name: replaced.count(name) for name in sorted(set(replaced))},
        "rotating": ours.shadow.rotary is not None,
        "before": before,
        "after": after,
        "again": again == after,
        "restored": [*restored, PLACES[family].apply_rotary_pos_emb is original],
    }


@pytest.mark.parametrize("family", PLACES)
def test_every_part_of_a_model_that_has_a_kernel_uses_it(found, family):
    replaced = dict(found["models"][family]["replaced"])
    assert sum(replaced.pop(name) for name in list(replaced) if name.endswith("norm")) == NORMS[family]
    layers = {"0": 1, "1": 1}
    assert replaced == {"embed_tokens": 1, "k_proj": 2, "mlp": 2, "q_proj": 2, "rotary_emb": 1, "v_proj": 2, **layers}
    assert found["models"][family]["rotating"]


@pytest.mark.parametrize("family", PLACES)
def test_through_the_kernels_a_model_writes_the_same(found, family):
    by_hand, ours = found["models"][family]["before"]["ids"]
    assert ours == by_hand
    assert found["models"][family]["before"]["logprobs"] < 1e-4


@pytest.mark.parametrize("family", PLACES)
def test_new_weights_reach_the_layers_that_were_joined(found, family):
    by_hand, ours = found["models"][family]["after"]["ids"]
    assert ours == by_hand != [found["models"][family]["before"]["ids"][0][1][:3]]
    assert found["models"][family]["after"]["logprobs"] < 1e-4


@pytest.mark.parametrize("family", PLACES)
def test_what_a_failed_call_left_waiting_is_not_added(found, family):
    assert found["models"][family]["again"]


@pytest.mark.parametrize("family", PLACES)
def test_what_transformers_rotates_with_is_its_own_again_after_a_call_and_after_one_that_failed(found, family):
    assert found["models"][family]["restored"] == [True, True]


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    call.CHUNK = 2  # fewer steps after the last token
    print(json.dumps({function.__name__: function() for function in CHECKS}))
