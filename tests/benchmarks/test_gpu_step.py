"""A step by MicroCoder and by plain TRL: arms, their processes, the reward, a toy run of TRL, the table."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.gpu import apart, step
from microcoder.config import load
from microcoder.judge import Judge
from microcoder.runs.disk import read_lines
from microcoder.schema import Problem, Test

ROOT = Path(__file__).parents[2]


def test_an_arm_is_a_name_or_a_kind_with_words():
    assert step.arm("packed") == ("packed", ("ours", ["train.update=packed"]))
    assert step.arm("mine=trl dtype=bfloat16") == ("mine", ("trl", ["dtype=bfloat16"]))
    with pytest.raises(ValueError, match="there are packed, padded, trl, trl-kept"):
        step.arm("nosuch")
    with pytest.raises(ValueError, match="'fast' is no name=value"):
        step.arm("mine=trl fast")
    assert dict(map(step.value, ["a=true", "b=16", "c=float32"])) == {"a": True, "b": 16, "c": "float32"}


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--steps", "1"], "2 at least"), (["--problems", "3"], "take 4")],
)
def test_sizes_that_cannot_be_are_refused(monkeypatch, capsys, words, said):
    monkeypatch.setattr("sys.argv", ["step", *words])
    with pytest.raises(SystemExit):
        step.arguments()
    assert said in capsys.readouterr().err


def test_the_settings_of_every_arm_can_be_loaded(monkeypatch):
    monkeypatch.setattr("sys.argv", ["step"])
    args = step.arguments()
    for words in step.ARMS:
        _, (kind, words) = step.arm(words)
        config = load(None, step.spec(args, kind, words)["words"] if kind == "ours" else step.settings(args))
        assert (config.grpo.kl, config.grpo.eps, config.grpo.eps_high, config.grpo.mask) == (0, 0.2, 0.2, "none")


def test_steps_are_timed_from_end_to_end_and_the_first_is_left_out():
    parts = {"step_s": 0.1, "update_s": 1.0, "generation_s": 0.5}
    lines = [{"step": n, "at": at, **parts} for n, at in enumerate((5, 9, 12, 17))]
    found = step.summary({"lines": lines, "started": 2.0, "seconds": 20.0, "gpu_gib": None})
    assert [one["step_s"] for one in found["steps"]] == [4, 3, 5] and found["start_s"] == 3
    assert found["mean"]["step_s"] == 4 and found["mean"]["other_s"] == 2.5
    slow = {**found, "mean": {**found["mean"], "step_s": 12}}
    shown = step.shown({"a": found, "b": slow, "c": {"steps": [], "failed": "no"}}).splitlines()
    assert [line.split()[:4] for line in shown] == [
        ["arm", "steps", "step", "s"],
        ["a", "2", "4.00", "1.00"],
        ["b", "2", "12.00", "3.00"],
        ["c", "0"],
    ]


CHILD = """
import json, sys, time
spec = json.load(open(sys.argv[1]))
from benchmarks.gpu.apart import Lines
for n in range(spec["steps"]):
    Lines(spec["lines"]).write(n, tokens=7)
print("the end")
time.sleep(spec["then"])
"""


def run_child(tmp_path, monkeypatch, budget=60.0, **spec):
    (tmp_path / "child.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path}")
    told = []
    return apart.apart("child", spec, tmp_path / "arm", 2, budget, told.append), told


@pytest.mark.long
def test_a_process_that_has_made_its_steps_but_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "GRACE_S", 0.2)
    found, told = run_child(tmp_path, monkeypatch, steps=3, then=600)
    assert "failed" not in found and [line["step"] for line in told[-1]] == [0, 1, 2]
    assert found["lines"][2]["tokens"] == 7 and found["lines"][2]["at"] <= time.time()


@pytest.mark.long
def test_a_process_that_stops_early_is_reported_with_the_end_of_its_log(tmp_path, monkeypatch):
    found, _ = run_child(tmp_path, monkeypatch, steps=2, then=0)
    assert "exit status 0, 1 of 2 steps done" in found["failed"] and "the end" in found["failed"]


def test_a_process_that_is_over_its_budget_is_stopped(tmp_path, monkeypatch):
    found, _ = run_child(tmp_path, monkeypatch, budget=0.1, steps=0, then=600)
    assert "stopped after its budget of 0.1 s, 0 of 2 steps done" in found["failed"]


def test_the_reward_is_the_judges_verdict_and_the_same_program_is_judged_once(tmp_path):
    from benchmarks.gpu import plain

    tests = {"p": [Test("[1]", "1")], "q": [Test("[1]", "2")]}
    problems = [Problem(name, "function", entry_point="f", tests=found) for name, found in tests.items()]
    texts = [f"```python\ndef f(x):\n    return {value}\n```" for value in (1, 1, 2, 2)]
    clock = plain.Clock(apart.Lines(tmp_path / "lines"), 2)
    asked = []
    with Judge(workers=1) as judge:
        submit = judge.submit
        judge.submit = lambda *pair: asked.append(pair) or submit(*pair)  # type: ignore[method-assign]
        reward = plain.reward_of(judge, problems, clock)
        chat = [[{"role": "assistant", "content": text}] for text in texts]
        assert reward(chat, [0, 0, 0, 1], [[1], [1, 2], [3], []]) == [1.0, 1.0, 0.0, 1.0]
    assert len(asked) == 3 and clock.spent["judging"] > 0
    assert clock.figures == {"tokens": 4, "length_mean": 1.0, "accuracy": 0.75, "no_signal_share": 0.5}
    fault = plain.figures([1.0, None, 0.0, 1.0], [0, 0, 1, 1], [1, 1, 1, 1])  # the judge's: neither right nor wrong
    assert fault["accuracy"] == 2 / 3 and fault["no_signal_share"] == 0.5


TOY = ["data.train_size=6", "grpo.samples=2", "train.steps=2", "train.train_batch_size=4", "judge.workers=1"]
TOY += ["train.ppo_mini_batch_size=2", "train.max_response_tokens=8", *step.COMMON]


def test_plain_trl_makes_the_steps_of_a_configuration(tmp_path, monkeypatch):
    from benchmarks.gpu import plain
    from microcoder.training.plan import batches, order

    config, figures, judged = load(None, TOY), plain.figures, []
    monkeypatch.setattr(plain, "figures", lambda *given: judged.append(given[1]) or figures(*given))
    asked = {"per_device_train_batch_size": 2, "gradient_checkpointing": False}
    trainer = plain.run(config, asked, str(tmp_path), apart.Lines(tmp_path / "lines"), vllm=False)
    lines = read_lines(tmp_path / "lines")
    assert [line["step"] for line in lines] == [0, 1, 2] and trainer.state.global_step == 4  # two updates a step
    ours = order(6, batches(config), 2, config.train.seed)
    assert judged == [[n for n in part for _ in range(2)] for part in (ours[:4], ours[4:])]  # MicroCoder's problems
    for line in lines[1:]:
        assert 8 <= line["tokens"] <= 64  # of 4 problems x 2 samples
        parts = [line[name] for name in (*step.PARTS, "other_s")]
        assert sum(parts) == pytest.approx(line["step_s"]) and min(parts) >= 0
        assert min(line["generation_s"], line["scoring_s"], line["update_s"]) > 0


def test_a_batch_that_does_not_divide_an_update_is_refused(tmp_path):
    from benchmarks.gpu import plain

    with pytest.raises(ValueError, match="per_device_train_batch_size=3 does not divide the 4 of an update; take 2"):
        plain.settings(load(None, TOY), {"per_device_train_batch_size": 3}, str(tmp_path), vllm=False, longest=9)


def test_a_prompt_with_other_tokens_is_refused():
    from benchmarks.gpu import plain
    from microcoder.models import resolve
    from microcoder.models.weights import load_tokenizer
    from microcoder.prompts import messages
    from microcoder.sampling import encode

    problem = Problem("p", statement="Print 1.", tests=[Test("", "1")])
    tokenizer = load_tokenizer(resolve("nano"))
    ids = encode(tokenizer, messages(problem))
    plain.asked_of(tokenizer, problem, ids)
    with pytest.raises(ValueError, match="the prompt of p has other tokens"):
        plain.asked_of(tokenizer, problem, ids[1:])
