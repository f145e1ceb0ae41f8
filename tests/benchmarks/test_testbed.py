"""The testbed: its tasks, the model that it pretrains, its measures, and the study that is run on it."""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.testbed import caricature, measure, pretrain, tasks
from benchmarks.testbed.measure import Answer
from microcoder.config import load
from microcoder.files import read_problems
from microcoder.grpo import ends_in_repetition, repeat_tokens
from microcoder.judge import Judge
from microcoder.judge.extract import code_block
from microcoder.runs import write_rollouts
from microcoder.study.plan import find_scale, load_study

STUDY = Path(tasks.__file__).parent / "truncation.toml"
LIMIT = 112  # of the scale


@pytest.fixture(scope="module")
def tokenizer():
    return pretrain.make_tokenizer()


def task(k, seed=0):
    return next(tasks.tasks("train", random.Random(seed), [k]))


# ---- tasks


def test_a_task_is_followed_line_by_line():
    found = tasks.Task(3, ("*4", "+2"))
    assert found.values() == [3, 2, 4]
    assert found.statement == "Start with x = 3, modulo 5.\na: *4\nb: +2\nPrint x after line b."


def test_splits_share_no_problem_and_every_k_is_in_both():
    train, test = tasks.problems("train", 3000), tasks.problems("test", 600, seed=1)
    assert not {each.statement for each in train} & {each.statement for each in test}
    assert len({each.id for each in train}) == 3000
    assert {each.difficulty_score for each in train} == {each.difficulty_score for each in test} == set(range(2, 17))
    assert {each.difficulty for each in test} == {"2-4", "5-8", "9-12", "13-16"}
    assert tasks.problems("train", 50) == train[:50]


def test_more_problems_than_there_are_is_refused():
    with pytest.raises(ValueError, match=r"1000 test problems were asked for, but there are only \d+ with k of \[2\]"):
        tasks.problems("test", 1000, steps=[2])


def test_the_judge_accepts_the_right_answer_of_a_task_and_no_other():
    with Judge(workers=1) as judge:
        for problem in tasks.problems("test", 5):
            for solution in problem.solutions:
                assert judge.submit(problem, code=solution["code"]).result().verdict == solution["verdict"]


def test_traces_without_slips_are_right_and_guesses_as_often_as_asked_for():
    rng = random.Random(0)
    drawn = tasks.tasks("train", rng)
    guesses = []
    for _ in range(2000):
        each = next(drawn)
        right = f"print({each.values()[-1]})"
        assert code_block(tasks.answer(each, "trace", rng, slip=0.0)).strip() == right
        guesses.append(code_block(tasks.answer(each, "direct", rng, guess=0.3)).strip() == right)
    assert sum(guesses) / 2000 == pytest.approx(0.3, abs=0.04)
    slipped = tasks.answer(task(16), "trace", rng, slip=1.0)
    assert slipped != tasks.answer(task(16), "trace", rng, slip=0.0)


# ---- tokens


@pytest.mark.parametrize("k", [2, 8, 16])
def test_a_style_is_the_first_token_and_a_line_of_a_trace_has_twelve(tokenizer, k):
    rng = random.Random(1)
    words = {style: tokenizer(pretrain.reply(task(k), style, rng, 0.5, 0.0))["input_ids"] for style in tasks.STYLES}
    assert [tokenizer.decode(ids[:1]) for ids in words.values()] == list(tasks.STYLES)
    assert (len(words["direct"]), len(words["trace"])) == (12, 12 * k + 12)
    assert (len(words["trace"]) <= LIMIT) == (k <= 8) and len(words["trace"]) <= 2 * LIMIT


def test_a_loop_is_found_by_the_literal_test_and_a_trace_is_not(tokenizer):
    for style, loops in (("loop", True), ("trace", False)):
        ids = tokenizer(tasks.answer(task(16), style, random.Random(0), slip=0.0))["input_ids"]
        assert len(ids) > LIMIT
        assert ends_in_repetition(ids[:LIMIT], repeat_tokens(LIMIT)) is loops


def test_any_text_comes_back_from_its_tokens(tokenizer):
    assert tokenizer.decode(tokenizer("Zürich: x² ≠ 7\n\tok")["input_ids"]) == "Zürich: x² ≠ 7\n\tok"


# ---- pretraining


def test_lines_encoded_one_by_one_are_the_tokens_of_the_whole(tokenizer):
    rng = random.Random(3)
    drawn = tasks.tasks("train", rng)
    texts = [pretrain.ask(next(drawn)) for _ in range(20)]
    texts += [pretrain.reply(next(drawn), style, rng, 0.5, 0.1) for style in tasks.STYLES for _ in range(20)]
    whole = tokenizer(texts, add_special_tokens=False)["input_ids"]
    known: dict[str, list[int]] = {}
    assert pretrain.encode(tokenizer, texts[:30], known) + pretrain.encode(tokenizer, texts[30:], known) == whole


@pytest.mark.parametrize("steps", [400, 40_000])
def test_the_largest_k_is_read_after_a_third_of_the_training(tokenizer, steps):
    args = argparse.Namespace(seed=0, most=8, batch=2, guess=0.25, slip=0.0, device="cpu")
    clock = pretrain.Clock(steps, None)
    source = pretrain.batches(tokenizer, tasks.priors(0.15, 0.05), args, clock)

    def longest() -> int:
        return max(next(source).ids.shape[1] for _ in range(2 * pretrain.CHUNK))

    before = longest()
    clock.step = steps // 3
    assert longest() > before


def test_the_weight_of_the_first_token_turns_read_shares_into_the_asked_ones(tokenizer):
    torch.manual_seed(0)
    model = pretrain.build("tiny", tokenizer)
    batch = pretrain.collate([([5, 6, 7], [8, 9], 3.0), ([5, 6], [8, 9, 10], 0.5)], tokenizer.pad_token_id, "cpu")
    assert batch.labels.tolist() == [[-100, -100, -100, 8, 9], [-100, -100, 8, 9, 10]]
    logs = torch.log_softmax(model(batch.ids).logits, -1)
    first = 3.0 * logs[0, 2, 8] + 0.5 * logs[1, 1, 8]
    others = logs[0, 3, 9] + logs[1, 2, 9] + logs[1, 3, 10]
    assert pretrain.loss_of(model, batch).item() == pytest.approx(
        -(first + others).item() / (2 * pretrain.SCALE), rel=1e-5
    )


def test_a_folder_has_a_model_and_problems_that_training_can_use(tmp_path, monkeypatch, capsys):
    words = ["--size", "tiny", "--most", "4", "--steps", "3", "--train", "12", "--test", "6", "--device", "cpu"]
    monkeypatch.setattr("sys.argv", ["pretrain", "--out", str(tmp_path), *words])
    assert pretrain.main() == 0
    assert "3 updates" in capsys.readouterr().out
    assert {each.difficulty_score for each in read_problems(tmp_path / "train.jsonl")} == {2, 3, 4}
    monkeypatch.setattr(
        "sys.argv",
        [
            "measure",
            str(tmp_path / "model"),
            "--problems",
            str(tmp_path / "test.jsonl"),
            "--limit",
            "8",
            "--tries",
            "2",
        ],
    )
    assert measure.main() == 0
    assert "12 responses" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trace", "0.9", "--loop", "0.2"], "their sum must lie within 0 and 1"),
        (["--most", "17"], "the largest k is 17; it must lie between 2 and 16"),
    ],
)
def test_what_cannot_be_pretrained_is_refused(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.setattr("sys.argv", ["pretrain", "--out", str(tmp_path / "new"), *words])
    with pytest.raises(SystemExit) as stopped:
        pretrain.main()
    assert stopped.value.code == 2 and said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


# ---- measures


def test_accuracy_at_both_limits_and_the_gates_are_counted_by_hand():
    answers = [
        Answer("a", 2, "direct", 12, True),
        Answer("a", 2, "trace", 36, True),
        Answer("a", 2, "direct", 12, False),
        Answer("b", 9, "trace", 120, True),
        Answer("b", 9, "trace", 120, False),
        Answer("b", 9, "direct", 12, True),
        Answer("c", 16, "loop", 224, False),
        Answer("c", 16, "trace", 204, True),
        Answer("c", 16, "direct", 12, False),
    ]
    rows = measure.table(answers, 112)["rows"]
    assert (rows["all"]["at L"], rows["all"]["at 2L"]) == (3 / 9, 5 / 9)
    assert (rows["trace"]["share"], rows["trace"]["at L"], rows["trace"]["at 2L"]) == (4 / 9, 1 / 4, 3 / 4)
    assert (rows["k 16"]["at L"], rows["k 16"]["at 2L"], rows["traces, k 13-16"]["at 2L"]) == (0, 1 / 3, 1)
    # cut: two traces of b, one of c; c has no signal at 112
    assert measure.gates(answers, 112) == {"continued": 2 / 3, "signal": 2 / 3, "masked": 2 / 9, "traces": 4 / 9}


def test_styles_are_told_by_the_first_word():
    texts = ["trace\na: add 3", "direct\n```", "loop", "tracer", "", " \n"]
    assert Counter(map(tasks.style_of, texts)) == {"trace": 1, "direct": 1, "loop": 1, "other": 3}


def test_a_run_is_measured_by_its_last_evaluation_and_the_styles_of_its_steps(tmp_path, monkeypatch, capsys):
    problems = {f"p{k}": task(k).statement for k in (2, 9)}

    def row(n, k, completion, length, verdict):
        return {"row": n, "problem": f"p{k}", "completion": completion, "length": length, "verdict": verdict}

    rows = [
        row(0, 2, "trace\n", 36, "accepted"),
        row(1, 9, "trace\n", 120, "accepted"),
        row(2, 9, "loop", 224, "no_code"),
    ]
    for step in (0, 5):
        write_rollouts(tmp_path, step, rows[step // 5 :], problems, test=True)  # the last one is without the first row
    write_rollouts(tmp_path, 5, rows, problems)
    lines = [{"step": step, "test_accuracy": 0.5, "length_mean": 9.0} for step in (0, 5)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr("sys.argv", ["measure", "--run", str(tmp_path), "--json", str(tmp_path / "found.json")])
    assert measure.main() == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["rows"]["k 9"] == {"share": 1.0, "tokens": 172.0, "at L": 0.0, "at 2L": 0.5}
    assert found["gates"]["continued"] == 1.0
    assert [line.get("trace_share") for line in found["steps"]] == [None, 2 / 3]
    assert "2 responses" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a model, or a run: --run RUN"),
        (["bed/model"], "name the problems: --problems FOLDER/test.jsonl"),
        (["--run", "nowhere"], "nowhere holds no answers of an evaluation yet"),
        (["./bed/model", "--problems", "bed/test.jsonl"], "there is no folder ./bed/model"),
    ],
)
def test_what_cannot_be_measured_is_refused(monkeypatch, capsys, words, said):
    monkeypatch.setattr("sys.argv", ["measure", *words])
    with pytest.raises(SystemExit) as stopped:
        measure.main()
    assert stopped.value.code == 2 and said in capsys.readouterr().err


# ---- the study


@pytest.mark.parametrize(("scale", "limit"), [("testbed", LIMIT), ("testbed-small", 60)])
def test_the_study_can_be_run_at_its_scales_and_its_gates_concern_its_claims(scale, limit):
    found = load_study(STUDY, find_scale(scale))
    assert (found.name, [claim.number for claim in found.claims[:6]]) == ("truncation", [25, 26, 27, 28, 29, 30])
    general, peaks = found.gates[:4], found.gates[4]
    assert all(gate.concerns(claim) for gate in general for claim in found.claims)
    assert (peaks.claims, peaks.at_most) == ((25, 27, 28), 0.75 * 300)
    configs = {arm.name: load(None, list(arm.settings)) for arm in found.arms}
    assert {name: (each.grpo.mask, each.grpo.rho) for name, each in configs.items() if each.grpo.mask != "none"} == {
        "mask-20": ("conditional", 0.2),
        "mask-50": ("conditional", 0.5),
        "mask-100": ("conditional", 1.0),
        "no-repeat-test": ("conditional", 1.0),
        "all": ("all", configs["all"].grpo.rho),
        "mask-apart": ("conditional", 1.0),
        "all-apart": ("all", configs["all"].grpo.rho),
    }
    assert [name for name, each in configs.items() if not each.grpo.masked_in_group] == ["mask-apart", "all-apart"]
    train = configs["none"].train
    assert (train.max_response_tokens, train.eval_max_response_tokens) == (limit, 2 * limit)
    assert train.steps == 300


# ---- temperatures


def test_muon_in_float32_is_pytorchs_but_for_its_rounding():
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Parameter(torch.ones(24, 40)) for _ in range(2))
    options = {"lr": 0.02, "weight_decay": 0.01}
    optimizers = [pretrain.Muon([ours], **options), torch.optim.Muon([theirs], **options)]
    for _ in range(3):
        ours.grad = torch.randn(24, 40)
        theirs.grad = ours.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-3)
    assert (ours - 1).abs().max() > 0.005


def test_a_sharper_model_has_the_same_answers_at_a_higher_temperature(tokenizer):
    model, ids = pretrain.build("tiny", tokenizer).eval(), torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        before = model(ids).logits
        pretrain.sharpen(model, 1.5)
        torch.testing.assert_close(model(ids).logits / 1.5, before)


def test_the_caricature_learns_traces_where_it_can_sample_them():
    test = caricature.draw(np.random.default_rng(1), 500)
    start = caricature.Policy.of(0.15, 0.02, 1.0)
    after = {t: caricature.train(start, t, 16, 0.05, np.random.default_rng(0)) for t in (1.0, 1.8)}
    before, cool, hot = (float(each.right(0.6, *test).mean()) for each in (start, after[1.0], after[1.8]))
    assert before + 0.2 < cool and hot < before + 0.1
    assert caricature.Policy.of(0.15, 0.02, 1.5).right(1.5, *test) == pytest.approx(start.right(1.0, *test))
