"""Does T(D) find the best fixed temperature? Three models, a grid of training runs each, and what the rule chooses.

    python -m benchmarks.testbed temperature --out FOLDER --jobs 8 --json FILE          # a GPU: hours
    python -m benchmarks.testbed temperature --out FOLDER --toy --json FILE             # one core: an hour or two

The models differ in the share of traces, which alone are right more often than a guess, in their slips, and in how sure
they are: one is too sure, as models are after fine-tuning, and one not sure enough, as weak models are. So the best
fixed temperature should differ, which the grid shows or does not.

1. Each model is pretrained once, and trained at each temperature with each seed. A run that is there is not made again.
2. The rule chooses for each model several times, each time by other problems (--draws): so it is seen how steady it is.
3. `before` is the rule that T(D) had before this one, in short: D* is the mean of D over steps 9 to 12 of a run at 1.0,
   and the lowest temperature whose first D lies above it is taken. Both are read from the runs of the grid.
4. The accuracy of a run is the mean of its evaluations after the first half of its steps, at train.eval_temperature.

The same program with the same tests is judged once: there are 25 pairs of an answer and what is right.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.testbed import measure
from microcoder.config import Config, load
from microcoder.runs import read_info, read_metrics
from microcoder.training import calibration, launch
from microcoder.training.plan import probe_words
from microcoder.training.ranks import Silent

TAUGHT = 0.6  # share of right ones among the traces of a model, at the least: copying may come late in pretraining
PROBED = ("accuracy", "signal", "diversity")
GRID = (0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)


class Bed(NamedTuple):
    """A model of the testbed."""

    trace: float
    slip: float
    sharp: float


BEDS = {"rare": Bed(0.05, 0.002, 1.5), "some": Bed(0.15, 0.02, 1.0), "frequent": Bed(0.40, 0.06, 0.6)}
SHARED = ["grpo.preset=grpo_plus", "grpo.samples=8", "train.eval_tries=4", "judge.time_limit_s=1", "judge.workers=1",
          "judge.remember=10000", "train.keep_checkpoints=1", "data.train_size=20000"]  # fmt: skip
FULL = [*SHARED, "data.difficulty=[2,8]", "data.test_size=300", "train.max_response_tokens=112", "train.steps=300",
        "train.train_batch_size=64", "train.ppo_mini_batch_size=32", "train.lr=1e-4", "train.eval_every=30",
        "train.save_every=300", "rollout.memory=0.05"]  # fmt: skip
TOY = [*SHARED, "data.test_size=60", "train.max_response_tokens=64", "train.steps=24", "train.train_batch_size=8",
       "train.ppo_mini_batch_size=8", "train.lr=5e-4", "train.eval_every=12", "train.save_every=24"]  # fmt: skip
PRETRAINED = {"full": ["--size", "8m", "--most", "8"], "toy": ["--size", "tiny", "--most", "4", "--minutes", "2"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--toy", action="store_true", help="models and runs for one core")
    parser.add_argument("--grid", type=numbers, default=GRID, help="temperatures (0.4,0.6,...,1.6)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each temperature (3)")
    parser.add_argument("--draws", type=int, default=5, help="choices of the rule for each model (5)")
    parser.add_argument("--problems", type=int, default=64, help="what each choice samples at a temperature (64)")
    parser.add_argument("--models", nargs="+", choices=BEDS, default=list(BEDS))
    parser.add_argument("--pretrain-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side (1)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--only-report", action="store_true", help="train nothing; report the seeds that are complete")
    args = parser.parse_args()
    if 1.0 not in args.grid:
        parser.error("the grid needs 1.0, which the rule is compared with")
    if not args.only_report:
        for name in args.models:
            pretrain(args, name)
        work = [(args, name, t, seed) for seed in range(args.seeds) for name in args.models for t in args.grid]
        each(args.jobs, train, work)
        each(args.jobs, ask, [(args, name, draw) for name in args.models for draw in range(args.draws)])
    rows = [row(args, name) for name in args.models]
    show(args.grid, [each for each in rows if each])
    if args.json:
        args.json.write_text(json.dumps({"toy": args.toy, "grid": args.grid, "models": rows}, indent=1) + "\n")
    return 0


def numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def each(jobs: int, do: Any, work: Sequence[tuple[Any, ...]]) -> None:
    if jobs == 1:
        for words in work:
            do(*words)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(do, *words) for words in work]:
            done.result()


def pretrain(args: argparse.Namespace, name: str) -> None:
    folder, bed = args.out / name, BEDS[name]
    if (folder / "model" / "training.json").exists():
        return
    size = PRETRAINED["toy" if args.toy else "full"]
    problems = ["--train", "5000", "--test", "150"] if args.toy else []
    words = ["--out", str(folder), *size, *problems, "--trace", str(bed.trace), "--slip", str(bed.slip),
             "--sharp", str(bed.sharp), "--seed", str(args.pretrain_seed)]  # fmt: skip
    subprocess.run([sys.executable, "-m", "benchmarks.testbed", "pretrain", *words], check=True)
    limit = 56 if args.toy else 112
    asked = argparse.Namespace(
        model=str(folder / "model"), problems=folder / "test.jsonl", limit=limit, first=60, tries=8
    )
    asked.temperature = bed.sharp
    traces = [answer.right for answer in measure.of_model(asked) if answer.style == "trace"]
    if measure.mean(traces) < TAUGHT:
        sys.exit(
            f"{name}: of {len(traces)} traces {measure.mean(traces):.0%} are right, so nothing can be learnt; delete "
            f"{folder} and pretrain it with another --pretrain-seed"
        )


def settings(args: argparse.Namespace, name: str, *more: str) -> Config:
    folder = (args.out / name).resolve()
    data = [f"model.name={folder}/model", f"data.train={folder}/train.jsonl", f"data.test={folder}/test.jsonl"]
    return load(None, [*(TOY if args.toy else FULL), *data, *more])


def train(args: argparse.Namespace, name: str, temperature: float, seed: int) -> None:
    """Make one run, unless it is there."""
    path = run_of(args, name, temperature, seed)
    if finished(path):
        return
    config = settings(args, name, f"grpo.temperature={temperature}", f"train.seed={seed}")
    launch.launch(config, path, resume=path.exists())
    print(f"{name}, T = {temperature:g}, seed {seed}: {accuracy(path):.1%}", flush=True)


def run_of(args: argparse.Namespace, name: str, temperature: float, seed: int) -> Path:
    return Path(args.out / name / "runs" / f"{temperature:g}-{seed}")


def finished(path: Path) -> bool:
    return path.exists() and read_info(path)["status"] == "finished"


def ask(args: argparse.Namespace, name: str, draw: int) -> dict[str, Any]:
    """Have the rule choose, by other problems for each draw; what it samples is kept in the cache."""
    config = settings(args, name, f"train.seed={draw}")
    found = calibration.calibrate(config, Silent(), args.grid, args.problems).record()
    path = args.out / name / f"choice-{draw}.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{name}, draw {draw}: {found['reason']}", flush=True)
    return found


def accuracy(path: Path) -> float:
    """The mean of a run's evaluations in the second half of its steps."""
    lines = read_metrics(path)
    last = lines[-1]["step"]
    return statistics.fmean(
        line["test_accuracy"] for line in lines if "test_accuracy" in line and line["step"] > last / 2
    )


def row(args: argparse.Namespace, name: str) -> dict[str, Any]:
    """One model: accuracy by temperature and seed, the best, what the rules choose; {} where no seed is complete."""
    paths = {t: partial(run_of, args, name, t) for t in args.grid}
    seeds = [seed for seed in range(args.seeds) if all(finished(path(seed)) for path in paths.values())]
    if not seeds:
        return {}
    scores = {t: [accuracy(path(seed)) for seed in seeds] for t, path in paths.items()}
    means = {t: statistics.fmean(values) for t, values in scores.items()}
    best = [t for t in args.grid if means[t] == max(means.values())]  # several, where they are equal
    choices = [json.loads(path.read_text()) for path in sorted((args.out / name).glob("choice-*.json"))]
    chosen = [choice["temperature"] for choice in choices]
    old = [before(args, name, seed) for seed in seeds]
    config = settings(args, name)

    def off(chosen: Sequence[float]) -> list[int]:
        place = sorted(args.grid).index
        return [min((place(t) - place(one) for one in best), key=abs) for t in chosen]

    return {
        "model": name,
        **BEDS[name]._asdict(),
        "seeds": seeds,
        "start": statistics.fmean(read_metrics(paths[1.0](seed))[0]["test_accuracy"] for seed in seeds),
        "accuracy": {f"{t:g}": values for t, values in scores.items()},
        "best": best,
        "chosen": chosen,
        "steps_off": off(chosen),
        "before": old,
        "before_off": off(old),
        "points": {  # of accuracy
            "best": max(means.values()),
            "chosen": statistics.fmean(means[t] for t in chosen) if chosen else None,
            "before": statistics.fmean(means[t] for t in old),
            "1.0": means[1.0],
        },
        "cost": probe_words(config, args.grid, args.problems),
        "probes": [probed(choices, t) for t in args.grid] if choices else [],
    }  # fmt: skip


def probed(choices: Sequence[Mapping[str, Any]], temperature: float) -> dict[str, float]:
    """The mean over draws of what was found at a temperature; NaN where it was not sampled."""
    found = [probe for choice in choices for probe in choice["probes"] if probe["temperature"] == temperature]
    return {name: statistics.fmean(probe[name] for probe in found) if found else math.nan for name in PROBED}


def before(args: argparse.Namespace, name: str, seed: int) -> float:
    """The choice of the rule that T(D) used until now, in short: see 3 above."""
    runs = {t: read_metrics(run_of(args, name, t, seed)) for t in args.grid}
    series = {t: [line["diversity"] for line in lines if line["step"]] for t, lines in runs.items()}
    pilot = series[1.0][:12]
    target = statistics.fmean(pilot[8:])
    above = [t for t in sorted(args.grid) if series[t][0] > target]
    return float(above[0] if above else max(args.grid, key=lambda t: series[t][0]))


def show(grid: Sequence[float], rows: Sequence[Mapping[str, Any]]) -> None:
    print(f"\n{'accuracy at T':24}" + "".join(f"{t:>8g}" for t in grid))
    for each in rows:
        cells = "".join(f"{statistics.fmean(each['accuracy'][f'{t:g}']):8.1%}" for t in grid)
        print(f"{each['model']:10} (before: {each['start']:.1%}){cells}")
        for name in PROBED:
            values = "".join(f"{probe[name]:8.3f}" for probe in each["probes"])
            print(f"  untrained: {name:13}{values}")
    print(
        "\nmodel      seeds  best         chosen by T(D) (each draw)      before    accuracy: best, T(D), before, 1.0"
    )
    for each in rows:
        points = each["points"]
        chosen = " ".join(f"{t:g}" for t in each["chosen"])
        old = " ".join(f"{t:g}" for t in each["before"])
        best = " ".join(f"{t:g}" for t in each["best"])
        shown = ", ".join("-" if value is None else f"{value:.1%}" for value in points.values())
        print(f"{each['model']:10} {len(each['seeds']):5}  {best:12} {chosen:30}  {old:8}  {shown}")
    if rows and all(each["chosen"] for each in rows):
        off = [abs(steps) for each in rows for steps in each["steps_off"]]
        mean = {name: statistics.fmean(each["points"][name] for each in rows) for name in rows[0]["points"]}
        print(f"\nwithin a step of the grid: {sum(n <= 1 for n in off)} of {len(off)} choices")
        print("mean accuracy: " + ", ".join(f"{name} {value:.1%}" for name, value in mean.items()))
        print(f"cost: {rows[0]['cost']}")


if __name__ == "__main__":
    sys.exit(main())
