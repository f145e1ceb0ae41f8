"""Batch sizes: the arithmetic of a step, and refusals whose numbers work when they are typed in."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from train_runs import settings
from transformers import GPT2Config, LlamaConfig, Qwen2Config

from microcoder.config import load
from microcoder.training import ranks
from microcoder.training.plan import Batches, PlanError, batches, order, settled


def plan(problems, mini, micro, samples=4, devices=1):
    config = settings(
        f"train.train_batch_size={problems}",
        f"train.ppo_mini_batch_size={mini}",
        f"train.micro_batch_size={micro}",
        f"grpo.samples={samples}",
    )
    return batches(config, devices)


def test_the_paper_s_step_in_the_engine_s_numbers():
    found = plan(64, 32, 8, samples=8, devices=4)
    assert (found.responses, found.updates, found.passes) == (512, 2, 8)
    assert found.words() == (
        "a step = 64 problems x 8 samples = 512 responses = 2 updates x 8 passes x 8 responses x 4 devices"
    )


def test_no_mini_batch_is_one_update_and_a_pass_is_no_larger_than_it():
    found = plan(2, 0, 100)
    assert (found.mini, found.updates, found.micro, found.passes) == (2, 1, 8, 1)
    assert found.words() == "a step = 2 problems x 4 samples = 8 responses = 1 update x 1 pass x 8 responses"


def test_packed_passes_are_counted_in_tokens_and_need_no_size_that_divides():
    found = batches(settings("train.update=packed", "train.pass_tokens=5000", "train.micro_batch_size=7"))
    assert found.words() == (
        "a step = 2 problems x 4 samples = 8 responses = 1 update x 8 responses in packed passes of up to 5,000 tokens"
    )
    assert found.passes == 1


LLAMA, OTHER = LlamaConfig(), GPT2Config()
WINDOWED = Qwen2Config(use_sliding_window=True, sliding_window=64, max_window_layers=0, num_hidden_layers=2)


@pytest.mark.parametrize(
    ("words", "model", "gpu", "way"),
    [
        ([], LLAMA, True, "packed"),
        ([], None, True, "packed"),  # not known yet
        ([], LLAMA, False, "padded"),
        ([], OTHER, True, "padded"),
        ([], WINDOWED, True, "padded"),
        (["model.attention=eager"], LLAMA, True, "padded"),
        (["grpo.importance=token"], LLAMA, False, "packed"),  # which padded passes do not have
        (["train.update=padded"], LLAMA, True, "padded"),
        (["train.update=packed"], LLAMA, False, "packed"),
    ],
)
def test_auto_is_packed_on_a_gpu_for_models_that_can_be(words, model, gpu, way):
    assert settled(settings(*words), model, gpu).train.update == way


@pytest.mark.parametrize(("model", "why"), [(OTHER, "not gpt2"), (WINDOWED, "sliding_attention")])
def test_a_model_that_cannot_be_packed_is_refused_where_that_is_asked_for(model, why):
    with pytest.raises(PlanError, match=rf"train\.update=packed: .*{why}; set train\.update=auto or padded"):
        settled(settings("train.update=packed"), model, True)


def test_a_process_that_feeds_a_gpu_keeps_a_core_for_itself(monkeypatch):
    found = []
    for cuda in (False, True):
        monkeypatch.setattr(ranks, "_cuda", lambda cuda=cuda: cuda)
        found += [ranks.share(workers) for workers in (16, 1)]
    assert found == [16, 1, 15, 1]


sizes = st.integers(1, 40)


@given(sizes, st.integers(0, 40), sizes, st.integers(2, 9), st.integers(1, 6))
def test_every_response_is_in_one_pass_of_one_update_on_one_device(problems, mini, micro, samples, devices):
    try:
        found = plan(problems, mini, micro, samples, devices)
    except PlanError:
        return
    assert found.updates * found.mini == problems
    assert found.updates * found.passes * found.micro * devices == problems * samples
    assert problems % devices == 0  # whole groups for each
    assert found.micro <= micro


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"problems": 6, "mini": 4, "micro": 8}, r"ppo_mini_batch_size to one of 1, 2, 3, 6$"),
        ({"problems": 6, "mini": 0, "micro": 8, "devices": 4}, r"set it to 4 or 8$"),
        ({"problems": 3, "mini": 3, "micro": 8, "devices": 4}, r"set it to 12$"),
        ({"problems": 6, "mini": 3, "micro": 8, "samples": 3, "devices": 2}, r"ppo_mini_batch_size=6$"),
        ({"problems": 2, "mini": 0, "micro": 3}, r"micro_batch_size=3 does not .* one of 1, 2, 4, 8$"),
    ],
)
def test_sizes_that_do_not_divide_are_refused_with_some_that_do(given, words):
    with pytest.raises(PlanError, match=words):
        plan(**given)


def test_settings_of_the_loss_that_do_not_go_together_are_refused():
    with pytest.raises(PlanError, match=r"\[grpo\]: dual_clip belongs to clip ppo"):
        batches(load(None, ["grpo.clip=cispo", "grpo.dual_clip=3"]))
    with pytest.raises(PlanError, match="set ratio to token"):
        batches(load(None, ["grpo.preset=dppo", "grpo.ratio=sequence"]))


REMEDIES = {  # the refusal: the setting that it names
    "is no multiple of": "mini",
    "in whole groups": "problems",
    "share evenly": "mini",
    "does not divide": "micro",
}


@given(sizes, st.integers(0, 40), sizes, st.integers(2, 9), st.integers(1, 6), st.data())
def test_typing_in_what_a_refusal_suggests_ends_in_a_plan(problems, mini, micro, samples, devices, data):
    chosen = {"problems": problems, "mini": mini, "micro": micro}
    met = []
    while True:
        try:
            plan(**chosen, samples=samples, devices=devices)
            break
        except PlanError as error:
            (complaint,) = [words for words in REMEDIES if words in str(error)]
            assert complaint not in met  # what was typed in has settled it for good
            met.append(complaint)
            numbers = re.findall(r"\d+", re.split(r"set it to |one of |=", str(error))[-1])
            chosen[REMEDIES[complaint]] = int(data.draw(st.sampled_from(numbers)))


# ---- which problems a step gets


def counts(problems):
    return Batches(problems, samples=4, mini=problems, micro=4, devices=1)


def test_an_epoch_has_every_problem_once_and_each_is_shuffled_anew():
    found = order(6, counts(2), steps=6, seed=0)
    epochs = [found[:6], found[6:]]
    assert [sorted(epoch) for epoch in epochs] == [list(range(6))] * 2
    assert epochs[0] != epochs[1]
    assert found != order(6, counts(2), steps=6, seed=1)


def test_what_is_left_of_an_epoch_is_dropped_so_no_step_has_a_problem_twice():
    found = order(5, counts(2), steps=40, seed=0)
    steps = [found[n : n + 2] for n in range(0, 80, 2)]
    assert all(first != second for first, second in steps)
    assert len(Counter(found)) == 5  # another one is left out each time


def test_a_longer_run_begins_like_a_shorter_one():
    assert order(5, counts(2), steps=9, seed=3)[:10] == order(5, counts(2), steps=5, seed=3)


def test_fewer_problems_than_a_step_needs_are_refused_with_the_most_that_work():
    with pytest.raises(PlanError, match=r"train_batch_size=4 .* only 3 .* set train.train_batch_size=3"):
        order(3, counts(4), steps=1, seed=0)
    assert sorted(order(3, counts(3), steps=1, seed=0)) == [0, 1, 2]
