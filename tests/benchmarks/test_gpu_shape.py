"""A step at a model's shape: the work that is counted, the coin, a toy run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks.gpu import shape
from microcoder.runs.disk import read_lines
from microcoder.schema import Problem

TOY = [
    "data.train_size=4",
    "grpo.samples=2",
    "train.steps=2",
    "train.train_batch_size=4",
    "train.max_response_tokens=8",
]


def test_the_work_of_two_responses_by_hand():
    model = SimpleNamespace(num_hidden_layers=3, num_attention_heads=2, head_dim=5, hidden_size=99)
    rows = [{"problem": "p", "advantage": gain, "length": length} for gain, length in ((1.0, 2), (-1.0, 1), (0.0, 50))]
    # prompt of 3 once: 1 + 2 + 3 positions; first response: 4 + 5; second: 4; the third has no advantage
    assert shape.forward(model, 1000, rows, {"p": 3}) == (2 * 1000 * 6 + 4 * 3 * 10 * (6 + 9 + 4), 6)


def test_a_coin_accepts_every_other_program():
    coin = shape.Coin()
    assert [coin.submit(Problem("p"), "x").result().accepted for _ in range(4)] == [True, False, True, False]


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--problems", "1"], "2 problems at least"), (["--problems", "9", "--updates", "4"], "take 12")],
)
def test_sizes_that_cannot_be_are_refused(monkeypatch, capsys, words, said):
    monkeypatch.setattr("sys.argv", ["shape", *words])
    with pytest.raises(SystemExit):
        shape.arguments()
    assert said in capsys.readouterr().err


def test_a_toy_shape_is_written_once_and_trained(tmp_path):
    words = [*shape.COMMON, *TOY, "train.ppo_mini_batch_size=2"]
    spec = {"shape": "tiny", "model": str(tmp_path / "model"), "words": words}
    spec |= {"folder": str(tmp_path), "lines": str(tmp_path / "lines")}
    shape.inside(spec)
    begun, *steps = read_lines(tmp_path / "lines")
    assert begun["step"] == 0 and begun["weights"] > 100_000 and begun["plan_gib"] > 0
    assert [line["step"] for line in steps] == [1, 2]
    for line in steps:
        assert line["verdicts"] == {"accepted": 4, "wrong_answer": 4}
        assert line["tflops"] == pytest.approx(line["work"] / line["update_s"] / 1e12)
    live = [line for line in steps if line["grad_norm"]]
    assert live and all(line["trained_tokens"] > 0 and line["mismatch_mean"] < 1e-4 for line in live)
    found = shape.summary({"lines": [begun, *steps], "gpu_gib": 3.25})
    assert found["mean"]["work"] == steps[1]["work"] and "step" not in found["mean"]
    assert "in use on the GPU 3.2, the plan" in shape.memory_words(found)
    written = (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns
    assert shape.write_model("tiny", tmp_path / "model")[0] == begun["weights"]
    assert (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns == written


def test_a_process_that_never_began_still_has_a_table():
    found = shape.summary({"lines": [], "failed": "exit status 1"})
    assert shape.table(found["steps"], shape.COLUMNS).startswith("step") and shape.memory_words(found)
