"""The judge as a scorer for evaluation frameworks: lm-evaluation-harness and inspect_ai.

    lm_eval.simple_evaluate("hf", model_args={"pretrained": ...}, tasks=[lm_eval_task("problems.parquet")])
    inspect_ai.eval(inspect_task("problems.parquet"), model="openai/...")

1. All completions of an evaluation are queued together: lm-eval's own `code_eval` judges document after document.
2. Logs hold the prompt, the completion and the verdict of each sample. Tests stay out of them; inspect_ai's have the
   judge's message too, with what was expected as far as the first difference.
3. A sample on which the judge is at fault has no score. lm-eval counts it in `judge_fault`, inspect_ai as unscored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..prompts import messages
from ..schema import Problem, SchemaError, nearest
from ..stats import pass_at_k
from .reward import CodeReward, Problems, problem_of
from .shared import JudgeSetting

NAME = "microcoder"


def lm_eval_task(
    problems: Problems,
    *,
    samples: int = 1,
    k: Sequence[int] = (1,),
    style: str = "code",
    judge: JudgeSetting = "here",
    shape: str = "all",
    generation: Mapping[str, Any] | None = None,
    name: str = NAME,
) -> Any:
    """Return a task of lm-evaluation-harness, for the `tasks` of its `simple_evaluate`.

    Args:
        problems: A file of problems, or Problems.
        samples: Completions for each problem. Where there are more than 1, they are drawn at temperature 1.
        k: The metrics are `pass@K` for each of these. With another shape than `"all"` it is the mean `reward`.
        style: The style of the prompts; see `data.style`.
        judge: As in CodeReward.
        shape: As in CodeReward.
        generation: What lm-eval calls `generation_kwargs`, in the place of ours.
        name: The task's name in the results.
    """
    try:
        from datasets import Dataset
        from lm_eval.api.task import ConfigurableTask
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}; lm-evaluation-harness is needed: pip install lm_eval") from None
    if samples < 1 or not all(1 <= one <= samples for one in k):
        raise ValueError(f"k is {tuple(k)}; each must be 1 or more, and at most samples, which is {samples}")
    reward = CodeReward(problems, judge=judge, shape=shape)
    rows = [{"id": problem.id, "prompt": _asked(problem, style)} for problem in reward.problems.values()]
    names = [f"pass@{one}" for one in k] if shape == "all" else ["reward"]

    def judged(responses: Sequence[Sequence[str]], docs: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        """Judge the responses to all documents at the same time."""
        asked = [reward.problems[doc["id"]] for doc, texts in zip(docs, responses, strict=True) for _ in texts]
        verdicts = reward.verdicts(asked, [text for texts in responses for text in texts])
        found = iter(
            {"reward": reward.score(problem, verdict), "verdict": verdict.verdict}
            for problem, verdict in zip(asked, verdicts, strict=True)
        )
        return [[next(found) for _ in texts] for texts in responses]

    def scores(doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, float]:
        """Return the metrics of a document. lm-eval takes the mean over the documents that have one."""
        rewards = [found["reward"] for found in results[0]]
        known = [value for value in rewards if value is not None]
        found = {"judge_fault": (len(rewards) - len(known)) / len(rewards)}
        if shape == "all":
            right = sum(value == 1 for value in known)
            found |= {f"pass@{one}": pass_at_k(len(known), right, one) for one in k if one <= len(known)}
        elif known:
            found["reward"] = sum(known) / len(known)
        return found

    drawn = {"do_sample": True, "temperature": 1.0} if samples > 1 else {"do_sample": False, "temperature": 0.0}
    mean = {"aggregation": "mean"}
    return ConfigurableTask(
        config={
            "task": name,
            "custom_dataset": lambda **_: {"test": Dataset.from_list(rows)},
            "test_split": "test",
            "output_type": "generate_until",
            "doc_to_text": lambda doc: doc["prompt"],
            "doc_to_target": lambda doc: "",
            "generation_kwargs": {"until": [], "max_gen_toks": 2048, **drawn, **(generation or {})},
            "repeats": samples,
            "filter_list": [{"name": "judge", "filter": [{"function": "custom", "filter_fn": judged}]}],
            "process_results": scores,
            "metric_list": [{"metric": one, "higher_is_better": True, **mean} for one in names]
            + [{"metric": "judge_fault", "higher_is_better": False, **mean}],
            "metadata": {"version": 1},
        }
    )


def inspect_scorer(problems: Problems | None = None, *, judge: JudgeSetting = "here", shape: str = "all") -> Any:
    """Return a scorer of inspect_ai, for tasks of your own.

    Args:
        problems: A file of problems, or Problems. A sample's id is that of its problem. Not needed where the target or
            the metadata of each sample (`problem`) is the problem as JSON text.
        judge: As in CodeReward.
        shape: As in CodeReward.
    """
    inspect = _inspect()
    reward = CodeReward(problems, judge=judge, shape=shape)

    def found(state: Any, target: Any) -> Problem:
        ident, given = str(state.sample_id), state.metadata.get("problem") or target.text
        if ident in reward.problems:
            return reward.problems[ident]
        if given:
            return problem_of(given)
        raise SchemaError(f"sample {ident!r} is not among the problems{nearest(ident, reward.problems)}")

    @inspect.scorer.scorer(metrics=[inspect.scorer.accuracy(), inspect.scorer.stderr()], name=NAME)
    def code() -> Any:
        async def score(state: Any, target: Any) -> Any:
            problem = found(state, target)
            (verdict,) = await reward.averdicts([problem], [state.output.completion])
            value = reward.score(problem, verdict)
            said = {"answer": verdict.verdict, "explanation": verdict.message, "metadata": {"verdict": verdict.verdict}}
            if value is None:
                return inspect.scorer.Score.unscored(reason="judge_fault", **said)
            return inspect.scorer.Score(value=value, **said)

        return score

    return code()


def inspect_task(
    problems: Problems, *, style: str = "code", judge: JudgeSetting = "here", shape: str = "all", **given: Any
) -> Any:
    """Return a task of inspect_ai: each problem is a sample, the model is asked once, the judge scores.

    Args:
        problems: A file of problems, or Problems.
        style: The style of the prompts; see `data.style`.
        judge: As in CodeReward.
        shape: As in CodeReward.
        **given: Further arguments of inspect_ai's `Task`, such as `epochs` or `solver`.
    """
    inspect = _inspect()
    reward = CodeReward(problems)  # it reads the file; the scorer is given the problems
    samples = [inspect.dataset.Sample(id=one.id, input=_asked(one, style)) for one in reward.problems.values()]
    scorer = inspect_scorer(reward.problems, judge=judge, shape=shape)
    return inspect.Task(dataset=samples, scorer=scorer, **({"name": NAME} | given))


def _asked(problem: Problem, style: str) -> str:
    return "\n\n".join(message["content"] for message in messages(problem, style))


def _inspect() -> Any:
    try:
        import inspect_ai
        import inspect_ai.dataset
        import inspect_ai.scorer
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}; inspect_ai is needed: pip install inspect_ai") from None
    return inspect_ai
