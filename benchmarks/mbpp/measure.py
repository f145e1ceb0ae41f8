"""One process of `score`: one model and its samplers, made ready once; each run's weights are put into it in turn."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from functools import partial
from typing import Any

import torch

from benchmarks.mbpp.results import TIME_LIMIT_S, UNTRAINED, accuracies, score_file, score_words
from microcoder import Judge, Problem
from microcoder.collect import Responding, Response
from microcoder.config import Config, usable_cores
from microcoder.files import read_problems
from microcoder.models import resolve
from microcoder.models.weights import end_tokens, load_tokenizer
from microcoder.prompts import messages
from microcoder.runs.disk import write_whole
from microcoder.sampling import Sampling, encode, sampler_for
from microcoder.training.step import evaluation, load_model

LIMIT, LIMITS = 192, {"humaneval": 256}  # tokens in a response: of any set, of this one
LONG = 512  # tokens: longer prompts (four of test's) have a sampler of their own, or they would size everybody's cache
MEMORY = 0.6  # of the GPU's, for the caches of all processes together


def measure(todo: list[tuple[str, str]], base: str, args: Namespace) -> None:
    """Score each (run, set), and write it down at once."""
    config, source = Config(), resolve(base)
    tokenizer = load_tokenizer(source)
    model = load_model(config, source).eval().to("cuda" if torch.cuda.is_available() else "cpu")
    options = {"batch": args.batch, "memory": MEMORY / args.together, "note": print}
    samplers = [sampler_for(model, end_tokens(model, tokenizer), **options) for _ in range(2)]
    workers = max(1, usable_cores() // args.together)
    loaded = UNTRAINED  # which comes first, if it has no score yet
    with Judge(workers=workers, time_limit_s=TIME_LIMIT_S, queue=1 << 20) as judge:
        for name, which in todo:
            if name != loaded:
                trained = load_model(config, resolve(str(args.out / "runs" / name)))
                model.load_state_dict(trained.state_dict())
                loaded = name
            path = score_file(args.out, name, which)
            path.parent.mkdir(parents=True, exist_ok=True)
            found = {"run": name, "set": which, **_score(which, samplers, tokenizer, judge, args)}
            write_whole(path, json.dumps(found, indent=1).encode() + b"\n")
            print(f"{name}, {which}: {score_words(found)}", flush=True)


def _score(which: str, samplers: list[Any], tokenizer: Any, judge: Judge, args: Namespace) -> dict[str, Any]:
    started = time.monotonic()
    problems = [problem for problem in read_problems(args.data / f"{which}.jsonl") if isinstance(problem, Problem)]
    prompts = [encode(tokenizer, messages(problem)) for problem in problems]
    limit = args.limit or LIMITS.get(which, LIMIT)
    sampling = Sampling(args.temperature, limit, args.tries)
    decode = partial(tokenizer.decode, skip_special_tokens=True)
    responses: list[Response] = []
    for long, sampler in enumerate(samplers):
        numbers = [n for n, prompt in enumerate(prompts) if (len(prompt) > LONG) == long]
        sample = partial(sampler, sampling=sampling)
        responses += Responding(numbers, problems, prompts, sample, decode, judge).all()[0] if numbers else []
    marks: dict[str, str] = {}
    for row in responses:
        marks[row.problem.id] = marks.get(row.problem.id, "") + ("?" if row.faulty else str(int(row.accepted)))
    found = evaluation(responses, args.tries)
    return {
        "temperature": args.temperature,
        "tries": args.tries,
        "limit": limit,
        "problems": len(problems),
        "accuracy": float(accuracies(marks).mean()),
        "pass_at_k": found["test_pass_at_k"],
        "length": found["test_length"],
        "truncated_share": found["test_truncated_share"],
        "diversity": found["test_diversity"],
        "no_code_share": sum(row.verdict.verdict == "no_code" for row in responses) / len(responses),
        "judge_faults": found["test_judge_faults"],
        "seconds": round(time.monotonic() - started, 1),
        "accepted": marks,  # by problem, a mark for each try
    }
