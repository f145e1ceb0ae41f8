"""One fixture of rollouts through TRL's trainer gives the advantages, loss and gradients of `grpo` called directly."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import torch
from rollout_fixture import (
    LIMIT,
    NANO,
    PROBLEMS,
    SAMPLES,
    TEMPERATURE,
    direct_advantages,
    direct_update,
    distance,
    fixture,
    logprobs_of,
    start_logprobs,
)
from torch.nn.utils.rnn import pad_sequence
from train_runs import settings
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOTrainer

from microcoder.config import PRESETS
from microcoder.grpo import Stage
from microcoder.models.weights import quiet
from microcoder.training.plan import batches
from microcoder.training.trl import SUMS, TrlStageTrainer
from microcoder.training.update import alike

quiet()


class Scripted(TrlStageTrainer):
    """The fixture takes the place of sampling and judging; all else is the trainer's."""

    def respond(self, numbers, problems, prompts, sampling, straggler_s, turns):
        groups = fixture()
        rows, seconds = [row for n in numbers for row in groups[n]], {"generation_s": 0.0, "judging_s": 0.0}
        return SimpleNamespace(all=lambda: (rows, seconds))


class Spy(TrainerCallback):
    """For each update: the weights before it, what it was made of, its gradients."""

    def __init__(self):
        self.weights, self.passes, self.gradients = [], [], []

    def on_step_begin(self, args, state, control, model=None, **_):
        self.weights.append({name: value.detach().clone() for name, value in model.named_parameters()})
        self.passes.append([])

    def on_pre_optimizer_step(self, args, state, control, model=None, **_):
        self.gradients.append({name: value.grad.clone() for name, value in model.named_parameters()})


def stage_trainer(tmp_path, *more, temperature=TEMPERATURE):
    config = settings(f"train.max_response_tokens={LIMIT}", "train.max_grad_norm=1e9", "train.steps=1", *more)
    prompts = [group[0].prompt for group in fixture()]
    stage = Stage(1, temperature, LIMIT)
    trainer = Scripted(config, stage, batches(config), NANO, PROBLEMS, prompts, None, str(tmp_path))
    trainer.remove_callback(PrinterCallback)
    return trainer


# ---- the same through the trainer


@pytest.mark.parametrize(("updates", "micro"), [(1, 1), (1, 8), (2, 4)])
@pytest.mark.parametrize("preset", PRESETS)
def test_advantages_loss_and_gradients_are_those_of_grpo(tmp_path, monkeypatch, preset, updates, micro):
    trainer = stage_trainer(
        tmp_path,
        f"grpo.preset={preset}",
        "grpo.rho=0.5",
        "train.train_batch_size=4",
        f"train.ppo_mini_batch_size={4 // updates}",
        f"train.micro_batch_size={micro}",
        "train.lr=1e-4",
    )
    spy, compute_loss = Spy(), trainer._compute_loss

    def noting(model, inputs):
        spy.passes[-1].append(inputs)
        return compute_loss(model, inputs)

    monkeypatch.setattr(trainer, "_compute_loss", noting)
    trainer.add_callback(spy)
    trainer.train()

    config, rows = trainer.config, trainer.batch.responses
    number = {tuple(row.ids): n for n, row in enumerate(rows)}
    advantages = direct_advantages(rows, config)
    totals, dealt, counted = dict.fromkeys(SUMS, 0.0), [], 0
    assert len(spy.gradients) == updates
    for weights, passes, gradients in zip(spy.weights, spy.passes, spy.gradients, strict=True):
        members = []
        for inputs in passes:
            assert len(inputs["advantages"]) <= micro
            for ids, mask, advantage in zip(
                inputs["completion_ids"], inputs["completion_mask"].bool(), inputs["advantages"], strict=True
            ):
                members.append(number[tuple(ids[mask].tolist())])
                assert advantage == advantages[members[-1]]
        tokens = passes[0]["update_tokens"]
        sums, expected = direct_update(
            [rows[n] for n in members], advantages[members], weights, config, tokens, len(rows) // updates
        )
        assert distance(gradients, expected) < 1e-5
        for name, value in sums.items():
            totals[name] += value
        dealt += members
        counted += tokens
    assert counted == sum(len(row.ids) for row in rows)
    everyone, live = set(range(len(rows))), set(advantages.nonzero()[:, 0].tolist())
    assert len(set(dealt)) == len(dealt)
    assert set(dealt) == everyone if config.grpo.kl else live <= set(dealt) < everyone
    found = trainer.sums()
    for name in SUMS:
        assert found[name] == pytest.approx(totals[name], rel=1e-5, abs=1e-6)
    if updates == 2 and preset not in ("cispo", "dppo"):  # or it would be a test of ratios that are all 1
        assert totals["clip_low"] + totals["clip_high"] > 0


def test_the_fixture_has_every_kind_of_row():
    config = settings("grpo.preset=microcoder", "grpo.rho=0.5")
    rows = [row for group in fixture() for row in group]
    masked = (direct_advantages(rows, config) == 0) & (direct_advantages(rows, settings("grpo.mask=none")) != 0)
    cut = [row.truncated for row in rows]
    assert 0 < int(masked.sum()) < sum(cut) < len(rows)
    assert len({tuple(row.ids) for row in rows}) == len(rows)


def padded(rows):
    """(ids, attention, response mask) of a batch, prompts padded on the left and responses on the right."""
    sides = ("left", [row.prompt for row in rows]), ("right", [row.ids for row in rows])
    ids, masks = [], []
    for side, lists in sides:
        ids.append(pad_sequence([torch.tensor(one) for one in lists], batch_first=True, padding_side=side))
        masks.append(pad_sequence([torch.ones(len(one)).long() for one in lists], batch_first=True, padding_side=side))
    return torch.cat(ids, 1), torch.cat(masks, 1), masks[1]


TRLS = {  # TRL's settings; its bound of cispo is one of the ratio, ours of ratio - 1
    "gspo": {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon_low": 3e-4, "epsilon_high": 4e-4},
    "cispo": {"loss_type": "cispo", "importance_sampling_level": "token", "epsilon_low": 1.0, "epsilon_high": 1.1},
}


@pytest.mark.parametrize("preset", TRLS)
def test_gradients_are_those_of_trls_own_loss(tmp_path, monkeypatch, preset):
    more = ["grpo.eps_high=0.1"] if preset == "cispo" else []
    trainer = stage_trainer(tmp_path, f"grpo.preset={preset}", *more)
    for name in ("_compute_loss", "_get_per_token_logps_and_entropies"):
        monkeypatch.setattr(TrlStageTrainer, name, getattr(GRPOTrainer, name))
    for name, value in TRLS[preset].items():
        assert hasattr(trainer, name)
        setattr(trainer, name, value)
    rows = [row for group in fixture() for row in group if row.ids]
    ids, attention, mask = padded(rows)
    advantages = direct_advantages(rows, trainer.config)
    old = pad_sequence([start_logprobs()[tuple(row.ids)][0] for row in rows], batch_first=True)
    draw, start = torch.Generator().manual_seed(0), mask.shape[1]
    with torch.no_grad():  # the policy has moved since
        for weight in trainer.model.parameters():
            weight += 0.02 * torch.randn(weight.shape, generator=draw) * weight.std()
    weights = {name: value.detach().clone() for name, value in trainer.model.named_parameters()}
    inputs = {
        "prompt_ids": ids[:, :-start], "prompt_mask": attention[:, :-start], "completion_ids": ids[:, -start:],
        "completion_mask": mask, "advantages": advantages, "old_per_token_logps": old,
        "num_items_in_batch": mask.sum(),
    }  # fmt: skip
    trainer.current_gradient_accumulation_steps = 1
    trainer._compute_loss(trainer.model, inputs).backward()
    theirs = {name: value.grad.clone() for name, value in trainer.model.named_parameters()}
    sums, ours = direct_update(rows, advantages, weights, trainer.config, int(mask.sum()), len(rows))
    assert distance(theirs, ours) < 1e-5
    assert sums["clip_low"] + sums["clip_high"] > 0


@pytest.mark.parametrize("temperature", [0.7, 1.3])
def test_trls_fused_logprobs_are_ours(tmp_path, temperature):
    trainer = stage_trainer(tmp_path, temperature=temperature)
    rows = [group[n % SAMPLES] for n, group in enumerate(fixture())]
    ids, attention, mask = padded(rows)
    found = []
    for kind in (TrlStageTrainer, GRPOTrainer):
        trainer.model.zero_grad()
        logprobs, _, _ = kind._get_per_token_logps_and_entropies(trainer, trainer.model, ids, attention, mask.size(1))
        (logprobs * mask).sum().backward()
        gradients = {name: value.grad.clone() for name, value in trainer.model.named_parameters()}
        found.append((logprobs[mask.bool()].detach(), gradients))
    (ours, our_gradients), (theirs, their_gradients) = found
    alone = torch.cat([logprobs_of(trainer.model, row, temperature)[0] for row in rows])
    torch.testing.assert_close(ours, alone, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert distance(their_gradients, our_gradients) < 1e-5


# ---- the pin

OVERRIDDEN = {
    "_compute_loss",
    "_generate_and_score_completions",
    "_get_per_token_logps_and_entropies",
    "_prepare_inputs",
    "_save_checkpoint",
    "create_accelerator_and_postprocess",
    "create_model_card",
    "training_step",
    "log",
}


class Saving(TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        control.should_save = True


def test_every_method_of_trl_that_is_overridden_is_still_called_by_it(tmp_path, monkeypatch):
    ours = {name for name in vars(TrlStageTrainer) if not name.startswith("__")}
    assert {name for name in ours if hasattr(GRPOTrainer, name)} == OVERRIDDEN
    callers = {name: set() for name in OVERRIDDEN}

    def noting(name, method):
        def wrapper(*args, **kwargs):
            callers[name].add(sys._getframe(1).f_globals["__name__"].partition(".")[0])
            return method(*args, **kwargs)

        return wrapper

    for name in OVERRIDDEN:
        monkeypatch.setattr(TrlStageTrainer, name, noting(name, getattr(TrlStageTrainer, name)))
    trainer = stage_trainer(tmp_path, "train.ppo_mini_batch_size=1")  # two updates: TRL wants old log-probabilities
    trainer.add_callback(Saving())
    trainer.train()
    assert [name for name, found in callers.items() if not found & {"trl", "transformers"}] == []
    assert not list(tmp_path.rglob("README.md"))


def test_passes_without_gradient_are_made_of_rows_of_like_length_without_padding():
    mask = torch.tensor([[0, 1, 1, 1, 0], [1, 1, 1, 1, 1], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0]])  # prompt 2, response 3
    parts = [(pick.tolist(), start, end) for pick, start, end in alike(mask, 3, None, 2)]
    assert parts == [([2, 3], 1, 4), ([0, 1], 0, 5)]
    assert [part[0].tolist() for part in alike(mask, 3, torch.tensor([1, 3]), 2)] == [[3, 1]]
    assert list(alike(mask, 3, torch.tensor([], dtype=torch.long), 2)) == []
