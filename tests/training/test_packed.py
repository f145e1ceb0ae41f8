"""Responses packed behind their prompts: the same log-probabilities and gradients as rows of their own."""

from __future__ import annotations

import math
import queue
import time
from typing import Any

import pytest
import torch
from tiny_models import random_prompts, tiny
from train_runs import resumed, same, timeless, trained, weights

from microcoder.collect import Collector
from microcoder.grpo import token_logprobs
from microcoder.training.packed import fill, inputs, pack, share_prompts
from microcoder.training.plan import PlanError
from microcoder.training.trl import TrlStageTrainer
from microcoder.training.update import PackedUpdates


def rows_of(groups: list[tuple[int, list[int]]]) -> list[tuple[list[int], list[int]]]:
    """(length of the prompt, lengths of the responses) -> rows of random tokens."""
    out = []
    for n, (prompt, responses) in enumerate(groups):
        first, *others = random_prompts(prompt, *responses, seed=n)
        out += [(first, other) for other in others]
    return out


def by_rows(model: Any, rows: list[tuple[list[int], list[int]]]) -> list[torch.Tensor]:
    """The log-probabilities of each response, from a call of its own."""
    out = []
    for prompt, response in rows:
        logits = model(torch.tensor([[*prompt, *response]]), use_cache=False).logits[:, len(prompt) - 1 : -1]
        out.append(token_logprobs(logits, torch.tensor([response]), 0.7)[0])
    return out


def in_one(model: Any, rows: list[tuple[list[int], list[int]]]) -> list[torch.Tensor]:
    packed = pack(rows, "cpu")
    found = packed.unpacked(model(**inputs(packed)))
    assert (found[~packed.mask] == 0).all()
    return [found[n, :length] for n, length in enumerate(packed.lengths)]


def shared(family: str, **changes: Any) -> Any:
    model = tiny(family, **changes)
    share_prompts(model, 0.7)
    return model


GROUPS = [(9, [4, 7, 1]), (3, [5]), (1, [2, 3]), (12, [6, 6])]


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("recompute", [False, True])
def test_gradients_are_those_of_single_rows(family: str, recompute: bool) -> None:
    rows = rows_of(GROUPS)
    weights = [
        torch.randn(len(response), generator=torch.Generator().manual_seed(len(response))) for _, response in rows
    ]
    found = []
    for model, run in ((tiny(family), by_rows), (shared(family), in_one)):
        model.train()
        if recompute and run is in_one:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        logprobs = run(model, rows)
        sum((part * weight).sum() for part, weight in zip(logprobs, weights, strict=True)).backward()
        gradient = torch.cat([weight.grad.flatten() for weight in model.parameters()])
        found.append((torch.cat(logprobs).detach(), gradient))
    (plain, expected), (packed, gradient) = found
    torch.testing.assert_close(packed, plain, rtol=1e-5, atol=1e-5)
    assert (gradient - expected).norm() < 1e-5 * expected.norm()


def test_a_response_does_not_see_the_others() -> None:
    model = shared("qwen2")
    one, other = (rows_of([(6, [5, 4])]), rows_of([(6, [5, 4])]))
    other[0] = (other[0][0], [3] * 5)
    with torch.no_grad():
        assert torch.equal(in_one(model, one)[1], in_one(model, other)[1])


def test_without_packing_the_model_attends_as_before() -> None:
    plain, model = tiny("qwen3"), shared("qwen3")
    ids = torch.tensor(random_prompts(7, 7))
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1], [1] * 7])
    with torch.no_grad():
        expected, found = (m(ids, attention_mask=mask).logits[:, 2:] for m in (plain, model))
    torch.testing.assert_close(found, expected)


def test_passes_keep_to_the_budget_and_groups_together() -> None:
    rows = rows_of([(10, [5, 5, 5]), (4, [3, 3]), (2, [40]), (2, [1])])
    passes = fill(rows, 20)
    assert [n for part in passes for n in part] == list(range(len(rows)))
    assert passes == [[0, 1], [2], [3, 4], [5], [6]] or passes == [[0, 1], [2, 3], [4], [5], [6]]
    for part in passes:
        packed = pack([rows[n] for n in part], "cpu")
        assert packed.ids.numel() <= 20 or len(part) == 1


def test_a_prompt_is_there_once() -> None:
    packed = pack(rows_of([(10, [5, 5, 5])]), "cpu")
    assert packed.ids.numel() == 9 + 15 and packed.prompts == 9
    assert packed.positions[0].tolist() == [*range(9), *range(9, 14), *range(9, 14), *range(9, 14)]


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("grpo.preset=grpo",), ("model.lora_rank=4", "train.lr=5e-3")])
def test_a_run_with_packed_passes_is_the_padded_one_up_to_rounding(tmp_path: Any, options: tuple[str, ...]) -> None:
    lines = {}
    for how in ("padded", "packed"):
        lines[how] = trained(tmp_path / how, f"train.update={how}", "train.pass_tokens=200", *options)
    for one, other in zip(lines["padded"], lines["packed"], strict=True):
        assert other["reward"] == one["reward"] and other["tokens"] == one["tokens"]
        for name in one.keys() & {"loss", "grad_norm", "kl"}:
            assert other[name] == pytest.approx(one[name], rel=2e-3, abs=1e-6), name


def test_an_update_is_made_of_whole_problems_and_the_first_needs_no_old_log_probabilities(tmp_path: Any) -> None:
    options = ("train.update=packed", "train.ppo_mini_batch_size=1", "train.train_batch_size=3", "train.steps=1")
    seen = []
    deal = PackedUpdates.deal

    def watched(self: Any, responses: Any) -> Any:
        found = deal(self, responses)
        seen.append((list(responses), found))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PackedUpdates, "deal", watched)
        (line,) = trained(tmp_path / "run", *options)
    assert line["updates"] == 3
    ((responses, updates),) = seen
    for n, update in enumerate(updates):
        group = responses[4 * n : 4 * n + 4]
        assert update.tokens == sum(len(row.ids) for row in group)
        trained_on = [row for part in update.passes for row in part.rows]
        assert [id(row) for row in trained_on] == [id(row) for row in group if row.advantage]
        assert update.first == (n == 0)


@pytest.mark.long
def test_a_packed_run_that_is_resumed_is_the_one_that_was_never_stopped(tmp_path: Any) -> None:
    whole = trained(tmp_path / "whole", "train.update=packed")
    trained(tmp_path / "run", "train.update=packed", "train.steps=1")
    again = resumed(tmp_path / "run", "train.update=packed")
    assert timeless(again) == timeless(whole)
    assert same(weights(tmp_path / "run"), weights(tmp_path / "whole"))


@pytest.mark.long
def test_tokens_may_be_weighed_by_what_the_sampler_thought_of_them(tmp_path: Any) -> None:
    lines = {
        how: trained(tmp_path / how, "train.update=packed", f"grpo.importance={how}") for how in ("none", "sequence")
    }
    for one, other in zip(*lines.values(), strict=True):
        assert other["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-3)  # here they think the same
        assert 0 < one["mismatch_mean"] <= one["mismatch_p99"] < 1e-3 and one["mismatch_ess"] > 0.999
    with pytest.raises(PlanError, match=r"train\.update=packed"):
        trained(tmp_path / "padded", "grpo.importance=token", "train.update=padded")


def test_weights_are_the_ratio_of_a_token_or_of_a_response_up_to_the_cap() -> None:
    gap = torch.tensor([[0.5, -0.5, 1.0], [0.2, 0.1, 0.0]])
    updates = PackedUpdates(None, None, None, None, importance="token", cap=2.0)  # type: ignore[arg-type]
    torch.testing.assert_close(updates._weights(gap, gap > -1), gap.exp().clamp(max=2.0))
    updates.importance = "sequence"
    torch.testing.assert_close(updates._weights(gap, gap > -1), torch.tensor([[2.0] * 3, [math.exp(0.3)] * 3]))


def test_an_attention_by_name_is_refused_beside_packed_passes(tmp_path: Any) -> None:
    with pytest.raises(PlanError, match=r"model\.attention=eager"):
        trained(tmp_path / "run", "train.update=packed", "model.attention=eager")


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [("grpo.preset=grpo_plus",), ("grpo.preset=grpo",), ("grpo.preset=microcoder", "model.lora_rank=4")],
)
def test_an_update_that_begins_before_all_is_judged_is_the_same(
    tmp_path: Any, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("train.update=packed", "train.pass_tokens=200", "train.ppo_mini_batch_size=1", *options)
    whole = trained(tmp_path / "whole", *options)
    monkeypatch.setattr(TrlStageTrainer, "flows", True)
    waits: list[Any] = []
    settle = Collector.settle

    def one_by_one(self: Any, wait: bool = False) -> Any:
        """After sampling, two thirds of the verdicts at once, so that groups are judged in part; then one at a time."""
        first = self._generated and not any(self is one for one in waits)
        if not first and not wait:
            return
        while self._done.qsize() < len(self._asked):
            time.sleep(0.01)
        every, self._done = self._done, queue.SimpleQueue()
        held = [every.get() for _ in range(every.qsize())]
        for n, future in enumerate(held):
            (self._done if (n % 3 if first else n == 0) else every).put(future)
        waits.append(self)
        yield from settle(self, wait)
        self._done = every

    monkeypatch.setattr(Collector, "settle", one_by_one)
    flowing = trained(tmp_path / "flowing", *options)
    assert len(waits) > len(set(map(id, waits))) > 1
    for one, other in zip(whole, flowing, strict=True):
        assert other["reward"] == one["reward"] and other["tokens"] == one["tokens"]
        for name in one.keys() & {"loss", "grad_norm", "kl", "clip_low", "clip_high", "mismatch_mean"}:
            assert other[name] == pytest.approx(one[name], rel=2e-3, abs=1e-6), name
