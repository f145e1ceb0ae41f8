"""TRL's own GRPOTrainer with CodeReward: nano on starter problems, in TRL's way from the first to the last line."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faulty_judge import Faulty
from rewards_page import titled

from microcoder.data.dataset import for_trl
from microcoder.models import resolve
from microcoder.models.weights import load_tokenizer
from microcoder.rewards import AsyncCodeReward, CodeReward
from microcoder.starter import problems

pytestmark = pytest.mark.usefixtures("one_thread")


ARGS = (
    'GRPOConfig("runs/trl", max_steps=2, per_device_train_batch_size=8, num_generations=4, max_completion_length=64, '
    'learning_rate=1e-4, logging_steps=1, report_to="none", save_strategy="no", use_cpu=True, disable_tqdm=True, '
    "dataloader_pin_memory=False, bf16=False, gradient_checkpointing=False, seed=1)"
)


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """The folder of someone who has made a training set."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dataset").mkdir()
    rows = [for_trl(problem, n) for n, problem in enumerate(problems("train", 8, depths=(1,)))]
    pq.write_table(pa.Table.from_pylist(rows), "dataset/trl.parquet")


def small(text, reward):
    """The page's block for nano and two steps."""
    source = resolve("nano")
    changes = {
        'GRPOConfig("runs/trl")': ARGS,
        '"Qwen/Qwen2.5-Coder-0.5B-Instruct"': f"{source.path!r}, processing_class=tokenizer",
        "reward_funcs=CodeReward()": "reward_funcs=reward",
    }
    for written, ours in changes.items():
        assert written in text
        text = text.replace(written, ours)
    names = {"reward": reward, "tokenizer": load_tokenizer(source)}
    exec(text, names)
    return [line for line in names["trainer"].state.log_history if "reward" in line]


@pytest.mark.parametrize("kind", [CodeReward, AsyncCodeReward])
def test_two_steps_with_the_block_of_the_page(reader, kind):
    lines = small(titled("trl"), kind(judge={"workers": 2}))
    assert len(lines) == 2
    for line in lines:
        assert line["rewards/code_reward/mean"] == pytest.approx(line["code_reward/accepted"])
        shares = [value for name, value in line.items() if name.startswith("code_reward/")]
        assert len(shares) == 9 and math.isclose(sum(shares), 1.0)
    assert any(line["reward"] > 0 for line in lines)  # nano solves some of these


def test_a_completion_on_which_the_judge_fails_does_not_train(reader):
    for line in small(titled("trl"), CodeReward(judge=Faulty())):
        assert line["code_reward/internal_error"] == 1.0 and line["reward"] is None
        assert line["grad_norm"] == 0.0
