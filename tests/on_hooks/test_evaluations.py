"""lm-evaluation-harness and inspect_ai end to end, with a model whose completions are in a file."""

from __future__ import annotations

import json

import inspect_ai
import lm_eval
import pytest
from faulty_judge import Faulty
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager
from rewards_page import titled

import microcoder as mc
from microcoder.rewards.reward import CodeReward
from microcoder.rewards.scorers import inspect_scorer, inspect_task, lm_eval_task

ONE = {"workers": 1}
NO_OTHERS = TaskManager(include_defaults=False)  # it reads thousands of files otherwise
PROBLEMS = "dataset/problems.parquet"
RIGHT, HALF, WRONG = "print(2 * int(input()))", "print(2)", "print(3)"


@pytest.fixture
def completions(reader):
    """A file of completions for each problem, as a model would have written them."""

    def written(**codes):
        rows = {name: [f"So:\n```python\n{code}\n```" for code in several] for name, several in codes.items()}
        (reader / "completions.json").write_text(json.dumps(rows))
        return reader / "completions.json"

    return written


class FromFile(LM):
    """A model of lm-eval that answers from a file."""

    def __init__(self, path):
        super().__init__()
        texts = json.loads(path.read_text())
        self.left = {"Double it.": texts["double"], "Say one.": texts["one"]}
        self.asked = []

    def generate_until(self, requests, disable_tqdm=False):
        self.asked += [request.args for request in requests]
        return [self.left[request.args[0].partition("\n")[0]].pop(0) for request in requests]

    def loglikelihood(self, requests):
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


def evaluated(model, task):
    return lm_eval.simple_evaluate(model, tasks=[task], bootstrap_iters=0, task_manager=NO_OTHERS)


def test_lm_eval_scores_completions(completions):
    model = FromFile(completions(double=[RIGHT], one=["print(2)"]))
    found = evaluated(model, lm_eval_task(PROBLEMS, judge=ONE))
    results = found["results"]["microcoder"]
    assert (results["pass@1,judge"], results["judge_fault,judge"]) == (0.5, 0.0)
    (text, how), _ = model.asked
    assert text.startswith("Double it.") and how["until"] == [] and how["do_sample"] is False
    logged = {sample["doc"]["id"]: sample for sample in found["samples"]["microcoder"]}
    assert logged["double"]["filtered_resps"] == [[{"reward": 1.0, "verdict": "accepted"}]]
    assert logged["one"]["filtered_resps"] == [[{"reward": 0.0, "verdict": "wrong_answer"}]]
    assert "62674" not in json.dumps(logged, default=str)  # the tests stay out of what is written


def test_lm_eval_counts_pass_at_k_over_several_completions(completions):
    model = FromFile(completions(double=[RIGHT, WRONG, WRONG], one=["print(1)"] * 3))
    found = evaluated(model, lm_eval_task(PROBLEMS, samples=3, k=(1, 2), judge=ONE))["results"]["microcoder"]
    assert found["pass@1,judge"] == pytest.approx((1 / 3 + 1) / 2)
    assert found["pass@2,judge"] == pytest.approx((2 / 3 + 1) / 2)


def test_lm_eval_takes_shapes(completions):
    model = FromFile(completions(double=[HALF], one=["print(1)"]))
    found = evaluated(model, lm_eval_task(PROBLEMS, shape="share", judge=ONE))["results"]["microcoder"]
    assert found["reward,judge"] == 0.75


def test_lm_eval_counts_faults_of_the_judge_and_not_as_failures(completions, monkeypatch):
    monkeypatch.setattr(CodeReward, "opened", lambda self: Faulty())
    found = evaluated(FromFile(completions(double=[RIGHT], one=["print(1)"])), lm_eval_task(PROBLEMS))
    results = found["results"]["microcoder"]
    assert results["judge_fault,judge"] == 1.0 and "pass@1,judge" not in results


def test_lm_eval_refuses_a_k_that_cannot_be_counted(reader):
    with pytest.raises(ValueError, match=r"k is \(1, 5\); each must be 1 or more, and at most samples, which is 3"):
        lm_eval_task(PROBLEMS, samples=3, k=(1, 5))


def scripted(*codes):
    """inspect_ai's own model of given answers. With a usage it does not ask for a tokenizer from the network."""
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    texts = [f"```python\n{code}\n```" for code in codes]
    outputs = [ModelOutput.from_content("mockllm/model", text).model_copy(update={"usage": usage}) for text in texts]
    return get_model("mockllm/model", custom_outputs=outputs)


def inspected(reader, task, *codes):
    (log,) = inspect_ai.eval(
        task, model=scripted(*codes), display="none", log_dir=str(reader / "logs"), max_connections=1
    )
    assert log.status == "success", log.error
    return log


def metrics(log):
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


def test_inspect_ai_scores_completions(reader):
    log = inspected(reader, inspect_task(PROBLEMS, judge=ONE), RIGHT, RIGHT)
    assert metrics(log)["accuracy"] == 0.5
    scores = {sample.id: sample.scores["microcoder"] for sample in log.samples}
    assert {name: (score.value, score.answer) for name, score in scores.items()} == {
        "double": (1.0, "accepted"), "one": (0.0, "runtime_error"),
    }  # fmt: skip
    assert "EOFError" in scores["one"].explanation
    assert "62674" not in log.samples[0].model_dump_json()


def test_inspect_ai_leaves_faults_of_the_judge_unscored(reader, monkeypatch):
    monkeypatch.setattr(CodeReward, "opened", lambda self: Faulty())
    log = inspected(reader, inspect_task(PROBLEMS), RIGHT, RIGHT)
    scores = log.results.scores[0]
    assert (scores.scored_samples, scores.unscored_samples) == (0, 2)
    assert log.samples[0].scores["microcoder"].reason == "judge_fault"


def test_the_scorer_alone_takes_problems_from_samples(reader):
    problem = json.dumps(mc.Problem("p", tests=[mc.Test("2", "4"), mc.Test("1", "2")]).to_dict())
    samples = [Sample(input="Double it.", target=problem), Sample(input="Double it.", metadata={"problem": problem})]
    task = inspect_ai.Task(dataset=samples, scorer=inspect_scorer(judge=ONE, shape="share"))
    log = inspected(reader, task, RIGHT, HALF)
    assert sorted(sample.scores["microcoder"].value for sample in log.samples) == [0.5, 1.0]


def test_the_blocks_of_the_page(completions, reader, monkeypatch):
    names = {"from_file": FromFile(completions(double=[RIGHT], one=["print(1)"]))}
    exec(titled("lm-eval").replace('"hf", model_args=model', "from_file"), names)
    assert names["results"]["results"]["microcoder"]["pass@1,judge"] == 1.0
    exec(titled("inspect_ai"), names)
    assert metrics(inspected(reader, names["my_problems"](), RIGHT, "print(1)"))["accuracy"] == 1.0
