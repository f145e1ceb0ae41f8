"""What a bench costs beside its sampler: tokens a second of the sampler alone, and of a bench that keeps and judges.

    python -m benchmarks.evaluation generate
    python -m benchmarks.evaluation generate --model smollm2-135m --suite mbpp --data mbpp.jsonl --limit 256  # on a GPU

The same prompts, chunks and seeds, hence the same tokens, in turn, several times; the best time of each counts. On a
CPU the judge needs the very cores that the model runs on, so a bench without judging is measured too. How fast the
sampler itself is, `benchmarks.sampling` measures.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from microcoder.config import load
from microcoder.evaluation.catalog import load_suite
from microcoder.evaluation.folder import ResultFolder, conditions
from microcoder.evaluation.harness import run
from microcoder.evaluation.local import LocalModel
from microcoder.prompts import messages
from microcoder.sampling import Sampling, encode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="nano")
    parser.add_argument("--suite", default="starter")
    parser.add_argument("--data", metavar="FILE")
    parser.add_argument("--tries", type=int, default=4)
    parser.add_argument("--limit", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    config = load(None, [])
    judge = config.judge.options()
    suite, model = load_suite(args.suite, data=args.data), LocalModel(args.model, config.rollout, print)
    ask = model.ask(
        {
            "suite": suite.name, "digest": suite.digest, "style": suite.style, "tries": args.tries, "temperature": 0.6,
            "chat": {}, "top_p": 1.0, "top_k": 0, "limits": (args.limit,), "seed": 0, "judge": conditions(judge),
        }
    )  # fmt: skip
    prompts = [encode(model.tokenizer, messages(problem, ask.style)) for problem in suite.problems]

    def sampler() -> tuple[int, float]:
        started, tokens = time.monotonic(), 0
        for first in range(0, len(prompts), ask.chunk):
            sampling = Sampling(0.6, args.limit, args.tries, seed=first)
            tokens += sum(len(one.ids) for one in model.sampler(prompts[first : first + ask.chunk], sampling))
        return tokens, time.monotonic() - started

    def kept() -> tuple[int, float]:
        with tempfile.TemporaryDirectory() as folder, ResultFolder(folder, ask) as place:
            started = time.monotonic()
            for sample in model.samples(ask, suite.problems, []):
                place.add(sample)
            return _tokens(place), time.monotonic() - started

    def judged() -> tuple[int, float]:
        with tempfile.TemporaryDirectory() as folder, ResultFolder(folder, ask) as place:
            took = run(suite, place, lambda known: model.samples(ask, suite.problems, known), judge)["took"]
            return _tokens(place), took["writing_s"]

    ways = {"the sampler alone": sampler, "a bench that only keeps": kept, "a bench that keeps and judges": judged}
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, way in ways.items():
            tokens, seconds = way()
            speeds[name].append(tokens / seconds)
    best = {name: max(values) for name, values in speeds.items()}
    print(f"{args.model} on {suite.name}: {len(prompts)} problems x {args.tries} tries, engine {model.engine}\n")
    print("| | tokens/s | share of the sampler's |\n|---|---|---|")
    for name, speed in best.items():
        print(f"| {name} | {speed:,.0f} | {speed / best['the sampler alone']:.0%} |")
    if args.json:
        args.json.write_text(json.dumps({"engine": model.engine, "tokens_per_s": speeds}, indent=1) + "\n")
    return 0


def _tokens(folder: ResultFolder) -> int:
    return sum(sample.tokens or 0 for sample in folder.samples.values())
