"""Which checkpoints are kept, whether there is room for the next one, and a model for use elsewhere."""

from __future__ import annotations

import pytest
from safetensors.torch import load_file
from train_runs import resumed, trained, weights

from microcoder.models import resolve
from microcoder.models.weights import load
from microcoder.runs import RunError, checkpoints, read_metrics
from microcoder.training.card import export

pytestmark = pytest.mark.long

TESTED = ("data.test=starter", "data.test_size=4", "train.eval_tries=1", "train.eval_every=1", "train.save_every=1")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Four steps, of which the newest checkpoint and the best one are kept."""
    folder = tmp_path_factory.mktemp("runs") / "kept"
    trained(folder, *TESTED, "train.steps=4", "train.keep_checkpoints=1", "train.keep_best=true", "train.lr=3e-3")
    return folder


def test_the_last_and_the_best_checkpoint_are_kept(run):
    accuracy = {line["step"]: line["test_accuracy"] for line in read_metrics(run) if line["step"]}
    best = min(step for step in accuracy if accuracy[step] == max(accuracy.values()))
    assert checkpoints(run) == sorted({best, 4})


def test_the_best_checkpoint_is_kept_by_a_run_that_was_moved(tmp_path):
    words = (*TESTED, "train.keep_checkpoints=1", "train.keep_best=true", "train.lr=1e-1")  # so that it gets worse
    trained(tmp_path / "here" / "run", *words, "train.steps=2")
    (tmp_path / "here").rename(tmp_path / "there")
    lines = resumed(tmp_path / "there" / "run", *words, "train.steps=4")
    accuracy = {line["step"]: line["test_accuracy"] for line in lines if line["step"]}
    best = min(step for step in accuracy if accuracy[step] == max(accuracy.values()))
    assert best < 3 and checkpoints(tmp_path / "there" / "run") == [best, 4]


def test_an_export_is_whole_in_bfloat16_and_has_a_card_with_the_run_s_figures(run, tmp_path):
    assert export(run, tmp_path / "model").name == "checkpoint-4"
    found, of = load_file(tmp_path / "model" / "model.safetensors"), weights(run)
    assert all(value.equal(of[name].bfloat16()) for name, value in found.items())
    card = (tmp_path / "model" / "README.md").read_text()
    last = next(line for line in read_metrics(run) if line["step"] == 4)
    assert "after 4 steps" in card and f"| 4 | {last['test_accuracy']:.1%} |" in card
    modes = {file.name: file.stat().st_mode for file in (tmp_path / "model").iterdir()}
    assert modes["model.safetensors"] == modes["README.md"]  # whoever may read the card may read the weights
    with pytest.raises(RunError, match="exists already"):
        export(run, tmp_path / "model")


def test_an_export_takes_the_best_checkpoint_or_names_those_that_there_are(run, tmp_path):
    assert export(run, tmp_path / "best", "best").name == f"checkpoint-{checkpoints(run)[0]}"
    with pytest.raises(RunError, match="it has those of step"):
        export(run, tmp_path / "third", "77")


def test_an_adapter_is_merged_into_an_export(tmp_path):
    import torch

    trained(tmp_path / "run", "train.steps=1", "model.lora_rank=2", "train.lr=1e-2")
    export(tmp_path / "run", tmp_path / "model")
    found = load(resolve(str(tmp_path / "model")), torch.float32).state_dict()
    start = load(resolve("nano"), torch.float32).state_dict()
    name = next(name for name in start if name.endswith("q_proj.weight"))
    assert not (tmp_path / "model" / "adapter_config.json").exists()
    assert not found[name].equal(start[name].bfloat16().float())
