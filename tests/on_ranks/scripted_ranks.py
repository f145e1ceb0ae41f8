"""What each of two ranks does in `test_layouts.py`: train on the fixture of rollouts in one layout after the other.

    python -m torch.distributed.run --nproc_per_node=2 tests/on_ranks/scripted_ranks.py FOLDER CASE ...

A case is calibrate, or layout,setting=value,...; the weights after its steps are written to FOLDER/CASE.safetensors.
Without torch.distributed.run it is the same on a single device.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import save_file

sys.path.append(str(Path(__file__).parents[1]))
from rollout_fixture import LIMIT, NANO, PROBLEMS, TEMPERATURE, fixture
from train_runs import settings
from transformers import PrinterCallback

from microcoder.grpo import Stage
from microcoder.models.weights import quiet
from microcoder.sampling import Sampling
from microcoder.sampling.graph import GraphSampler
from microcoder.sampling.shadow import weights
from microcoder.training.calibration import calibrate
from microcoder.training.plan import batches
from microcoder.training.ranks import Silent, devices, first, gathered, together
from microcoder.training.trl import TrlStageTrainer

STEPS = 2
BASE = (f"train.max_response_tokens={LIMIT}", f"train.steps={STEPS}", "train.train_batch_size=4", "grpo.rho=0.5")


class ScriptedRank(TrlStageTrainer):
    """The fixture takes the place of sampling and judging; all else is the trainer's."""

    def respond(self, numbers: Any, problems: Any, prompts: Any, sampling: Any, straggler_s: float, turns: int) -> Any:
        groups = fixture()
        rows, seconds = [row for n in numbers for row in groups[n]], {"generation_s": 0.0, "judging_s": 0.0}
        for row in rows:
            row.logprobs = [-1.0] * len(row.ids)
        return SimpleNamespace(all=lambda: (rows, seconds))


def main(folder: Path, cases: list[str]) -> None:
    quiet()
    together()
    for case in cases:
        if case == "calibrate":
            calibration()
            continue
        layout, *more = case.split(",")
        config = settings(*BASE, "train.lr=1e-4", f"run.layout={layout}", *more)
        prompts = [group[0].prompt for group in fixture()]
        stage, counts = Stage(1, TEMPERATURE, LIMIT), batches(config, devices())
        trainer = ScriptedRank(config, stage, counts, NANO, PROBLEMS, prompts, None, str(folder / case))
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        model = trainer.accelerator.unwrap_model(trainer.model_wrapped)
        found = {name: value.clone() for name, value in weights(model)}
        if trainer.sharded:
            copies(trainer, model, found)
        if first():
            save_file(found, folder / f"{case}.safetensors")
        together()


def calibration() -> None:
    """T(D) with two ranks: each samples a part of the problems, and all choose from what all have found."""
    found = calibrate(settings(), Silent(), grid=(0.8, 1.2), count=4)
    everywhere = gathered([(found.temperature, found.probes)])
    assert len(everywhere) == devices() and all(each == everywhere[0] for each in everywhere)
    assert [probe.temperature for probe in found.probes] == [0.8, 1.2]


def copies(trainer: Any, model: Any, whole: dict[str, torch.Tensor]) -> None:
    """The sampler's copy has the weights. The sampler of GPUs, which can run on a CPU, has a bfloat16 one, and samples
    from it on each rank by itself: one of them makes a call more.
    """
    trainer.refresh()
    held = dict(trainer.sampler.model.named_parameters())
    assert all(torch.equal(value, held[name]) for name, value in whole.items())
    sampler = GraphSampler(model, [1], dtype=torch.bfloat16, own=True)
    sampler.refresh(model)
    held = dict(sampler.shadow.model.named_parameters())
    assert all(torch.equal(value.bfloat16(), held[name]) for name, value in whole.items())
    for _ in range(1 + first()):
        assert len(list(sampler([[5, 6, 7]], Sampling(1.0, 4, 2)))) == 2


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
