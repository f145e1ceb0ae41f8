"""TRL's own GRPOTrainer with CodeReward: nano on starter problems, in TRL's way from the first to the last line."""

from __future__ import annotations

import math

import pytest
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

from microcoder.data.dataset import for_trl
from microcoder.models import resolve
from microcoder.models.weights import load_tokenizer
from microcoder.rewards import AsyncCodeReward, CodeReward
from microcoder.starter import problems

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path_factory.mktemp("data") / "trl.parquet"
    found = problems("train", 8, depths=(1,))
    pq.write_table(pa.Table.from_pylist([for_trl(problem, n) for n, problem in enumerate(found)]), path)
    return load_dataset("parquet", data_files=str(path), split="train")


def trained(folder, dataset, reward):
    source = resolve("nano")
    args = GRPOConfig(
        str(folder), max_steps=2, per_device_train_batch_size=8, num_generations=4, max_completion_length=64,
        learning_rate=1e-4, logging_steps=1, report_to="none", save_strategy="no", use_cpu=True, disable_tqdm=True,
        dataloader_pin_memory=False, bf16=False, gradient_checkpointing=False, seed=1,
    )  # fmt: skip
    trainer = GRPOTrainer(
        source.path, reward_funcs=reward, train_dataset=dataset, args=args, processing_class=load_tokenizer(source)
    )
    trainer.train()
    return [line for line in trainer.state.log_history if "reward" in line]


@pytest.mark.parametrize("kind", [CodeReward, AsyncCodeReward])
def test_two_steps_with_a_reward_function(tmp_path, dataset, kind):
    lines = trained(tmp_path, dataset, kind(judge={"workers": 2}))
    assert len(lines) == 2
    for line in lines:
        assert line["rewards/code_reward/mean"] == pytest.approx(line["code_reward/accepted"])
        shares = [value for name, value in line.items() if name.startswith("code_reward/")]
        assert len(shares) == 9 and math.isclose(sum(shares), 1.0)
    assert any(line["reward"] > 0 for line in lines)  # nano solves some of these
