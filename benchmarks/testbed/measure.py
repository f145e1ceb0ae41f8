"""Measure a testbed model before training, or a run after it: styles, accuracy at L and 2L by k, and the gates.

    python -m benchmarks.testbed measure FOLDER/model --problems FOLDER/test.jsonl --limit 112
    python -m benchmarks.testbed measure --run studies-out/testbed/runs/truncation.none.0 --limit 112

A model is sampled up to 2L; a response that is longer than L is cut at L and counts as wrong there. Of a run the
responses of its last evaluation are read, which must have been sampled up to 2L, and the styles of its steps.

The gates of a model (those of a study stand in truncation.toml, and are checked over all of its runs):

1. Of the responses that are cut at L and do not loop, at least 60% are right at 2L.
2. At least half of the groups have signal at L.
3. At least 3% of the responses are cut, do not loop, are wrong at L, and stand in a group with signal: what a
   conditional mask with rho = 1 would take out. A smaller rho takes out that share of it.
4. Between 3% and 60% of the responses are traces: their share is free to rise and to fall.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.testbed.tasks import BANDS, STYLES, style_of
from microcoder.collect import Responding, load_sampler
from microcoder.config import load
from microcoder.judge.remote import open_judge
from microcoder.models import ModelError, resolve
from microcoder.runs import RunError, read_metrics, read_rollouts, steps
from microcoder.runs.rollouts import read_statements
from microcoder.sampling import Sampling
from microcoder.study.measures import styles
from microcoder.training.problems import ProblemsError, load_problems, with_prompts

CONTINUED, SIGNAL, MASKED, TRACES = 0.6, 0.5, 0.03, (0.03, 0.6)


class Answer(NamedTuple):
    problem: str
    k: int
    style: str
    tokens: int
    right: bool


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", help="a model: its folder, or a run")
    parser.add_argument("--run", type=Path, help="instead of a model: a run with evaluations")
    parser.add_argument("--problems", type=Path, help="test.jsonl, with a model")
    parser.add_argument(
        "--limit", type=int, default=112, metavar="L", help="tokens in a response (112); tested up to 2L"
    )
    parser.add_argument("--tries", type=int, default=8, help="responses of a problem (8)")
    parser.add_argument("--first", type=int, default=300, metavar="N", help="so many problems (300)")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    if (args.model is None) == (args.run is None):
        parser.error("name a model, or a run: --run RUN")
    if args.model and not args.problems:
        parser.error("name the problems: --problems FOLDER/test.jsonl")
    try:
        answers = of_run(args.run) if args.run else of_model(args)
    except (ModelError, RunError, ProblemsError, OSError) as error:
        parser.error(str(error))
    found = {**table(answers, args.limit), "gates": gates(answers, args.limit)}
    show(found, args.limit)
    if args.run:
        found["steps"] = dynamics(args.run)
        show_dynamics(found["steps"])
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def of_model(args: argparse.Namespace) -> list[Answer]:
    """Sample a model on problems up to 2L, and judge what it wrote."""
    config = load(None, [f"data.test={args.problems}", f"data.test_size={args.first}", "judge.time_limit_s=1"])
    model = load_sampler(resolve(args.model))
    loaded, prompts = with_prompts(load_problems(config.data, "test"), model.tokenizer, config)
    sampler = partial(model.sampler, sampling=Sampling(args.temperature, 2 * args.limit, args.tries))
    with open_judge({**config.judge.options(), "queue": 1 << 16}) as judge:
        numbers = list(range(len(prompts)))
        responses, _ = Responding(numbers, loaded.problems, prompts, sampler, model.text, judge).all()
    return [
        Answer(row.problem.id, int(row.problem.difficulty_score or 0), style_of(row.text), len(row.ids), row.accepted)
        for row in responses
    ]


def of_run(run: Path) -> list[Answer]:
    """Read the responses of a run's last evaluation."""
    last = max(steps(run, test=True), default=0)
    rows = read_rollouts(run, last, test=True)
    lines = {name: text.count("\n") - 1 for name, text in read_statements(run, last, test=True).items()}
    return [
        Answer(row["problem"], lines[row["problem"]], style_of(row["completion"]), row["length"], right(row))
        for row in rows
    ]


def right(row: Mapping[str, Any]) -> bool:
    return bool(row["verdict"] == "accepted")


def table(answers: Sequence[Answer], limit: int) -> dict[str, Any]:
    """Return shares of styles, and accuracy at L and 2L by style, by k, and by both."""
    groups: dict[str, list[Answer]] = {"all": list(answers)}
    for style in (*STYLES, "other"):
        groups[style] = [each for each in answers if each.style == style]
    for k in sorted({each.k for each in answers}):
        groups[f"k {k}"] = [each for each in answers if each.k == k]
    for band in BANDS:
        groups[f"traces, k {band[0]}-{band[-1]}"] = [a for a in answers if a.style == "trace" and a.k in band]
    rows = {}
    for name, group in groups.items():
        if group:
            rows[name] = {
                "share": len(group) / len(answers),
                "tokens": statistics.fmean(each.tokens for each in group),
                "at L": mean(in_time(each, limit) for each in group),
                "at 2L": mean(each.right for each in group),
            }
    return {"answers": len(answers), "rows": rows}


def in_time(answer: Answer, limit: int) -> bool:
    return answer.right and answer.tokens <= limit


def gates(answers: Sequence[Answer], limit: int) -> dict[str, float]:
    """Measure the four gates of a model. Loops are told by their style here, by their tokens in training."""
    groups = defaultdict(list)
    for each in answers:
        groups[each.problem].append(each)
    signal = {name for name, group in groups.items() if len({in_time(each, limit) for each in group}) > 1}
    cut = [each for each in answers if each.tokens > limit and each.style != "loop"]
    return {
        "continued": mean(each.right for each in cut),
        "signal": len(signal) / len(groups),
        "masked": sum(each.problem in signal for each in cut) / len(answers),
        "traces": mean(each.style == "trace" for each in answers),
    }


def dynamics(run: Path) -> list[dict[str, Any]]:
    """Return the styles of each evaluation's step, beside the metrics that matter here."""
    shares = styles(run)
    names = ("test_accuracy", "test_accuracy_cut", "test_continued_share", "length_mean", "no_signal_share",
             "masked_signal_share")  # fmt: skip
    lines = [line for line in read_metrics(run) if "test_accuracy" in line]
    return [
        {"step": line["step"], **{name: line.get(name) for name in names}, **shares.get(line["step"], {})}
        for line in lines
    ]


def show(found: Mapping[str, Any], limit: int) -> None:
    print(f"{found['answers']} responses\n{'':20} {'share':>7} {'tokens':>7} {f'at {limit}':>8} {f'at {2 * limit}':>8}")
    for name, row in found["rows"].items():
        print(f"{name:20} {row['share']:7.1%} {row['tokens']:7.0f} {row['at L']:8.1%} {row['at 2L']:8.1%}")
    continued, signal, masked, traces = found["gates"].values()
    for words, value, holds in (
        ("1. cut, not looping, right when continued", continued, continued >= CONTINUED),
        ("2. groups with signal", signal, signal >= SIGNAL),
        ("3. masked with an advantage, at rho = 1", masked, masked >= MASKED),
        ("4. traces", traces, TRACES[0] <= traces <= TRACES[1]),
    ):
        print(f"{words:42} {value:6.1%}  {'holds' if holds else 'fails'}")


def show_dynamics(lines: Sequence[Mapping[str, Any]]) -> None:
    names = list(lines[-1]) if lines else []
    print("\n" + " ".join(f"{name.replace('_share', ''):>14.14}" for name in names))
    for line in lines:
        cells = (line.get(name) for name in names)
        print(" ".join(f"{'' if cell is None else format(cell, '.3g'):>14}" for cell in cells))


def mean(values: Iterable[bool]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


if __name__ == "__main__":
    sys.exit(main())
