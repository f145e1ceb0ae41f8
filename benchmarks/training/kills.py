"""Kill a training on several ranks at random moments, go on with it, and compare it with one that nobody disturbed.

    python -m benchmarks.training kills --kills 10 --layout fsdp
    .venv-vllm/bin/python -m benchmarks.training kills --kills 10 --server        # after make test-vllm; on a CPU

Each time a rank, or the process that started them, is killed (SIGKILL) at some moment after the start or after a step;
then all others must end, and `--resume` goes on. With --server one process trains, and it or the vLLM server that it
samples from is killed; a server that was killed is started again. In the end weights and metrics must be those of the
undisturbed run, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from safetensors.torch import load_file

from microcoder.runs import checkpoints, latest_checkpoint, read_metrics
from microcoder.training.ranks import GRACE_S

SETTINGS = (
    "data.test=none",
    "data.difficulty=[1,1]",
    "data.train_size=12",
    "grpo.samples=4",
    "train.train_batch_size=2",
    "train.max_response_tokens=32",
    "train.lr=1e-4",
    "train.save_every=1",
    "judge.workers=1",
)


def begin(folder: Path, *settings: str, launcher: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a run in `folder`, or go on with the one that is there. `launcher`: words for Python before our module."""
    command = [sys.executable, *launcher, "-m", "microcoder.cli", "train"]
    if (folder / "config.toml").exists():
        command += [str(folder), "--resume"]
    else:
        command += ["demo", f"train.folder={folder.parent}", f"train.name={folder.name}", *SETTINGS, *settings]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def ranks_of(process: subprocess.Popen[str]) -> dict[int, psutil.Process]:
    """The ranks that a run has started so far."""
    found = {}
    try:
        for child in psutil.Process(process.pid).children():
            if "RANK" in (environment := child.environ()):
                found[int(environment["RANK"])] = child
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        pass  # it has just ended
    return found


def kill(process: subprocess.Popen[str], target: int | str, ranks: dict[int, psutil.Process]) -> dict[str, Any]:
    """Kill a rank or the "parent"; say how long it took until nothing was left, and what was printed."""
    killed = time.monotonic()
    if target == "parent":
        process.kill()
    else:
        ranks[int(target)].send_signal(signal.SIGKILL)
    said, _ = process.communicate(timeout=10 * GRACE_S)
    _, left = psutil.wait_procs(list(ranks.values()), timeout=10 * GRACE_S)
    return {
        "target": target,
        "ended_s": round(time.monotonic() - killed, 1),
        "left": len(left),
        "status": process.returncode,
        "said": [line for line in said.splitlines() if line.strip()][-1:],
    }


def difference(one: Path, other: Path) -> str:
    """What two runs differ in; empty where weights and metrics are the same, clocks apart."""
    a, b = (latest_checkpoint(path) for path in (one, other))
    if a is None or b is None or a.name != b.name:
        return f"checkpoints: {a and a.name} and {b and b.name}"
    first, second = (load_file(path / "model.safetensors") for path in (a, b))
    if not all(first[name].equal(second[name]) for name in first):
        return "weights"
    return "" if _timeless(one) == _timeless(other) else "metrics"


def _timeless(run: Path) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if not name.endswith("_s")} for line in read_metrics(run)]


def disturbed(folder: Path, kills: int, draw: random.Random, longest: float, *settings: str) -> list[dict[str, Any]]:
    """A run that is killed `kills` times, each up to `longest` seconds after some more steps, and then finishes."""
    found: list[dict[str, Any]] = []
    while len(found) < kills:
        process, before = begin(folder, *settings), len(read_metrics(folder))
        while process.poll() is None and len(ranks_of(process)) < 2:
            time.sleep(0.05)
        steps = draw.choice([0, 1, 1, 2])  # to be made first; 0: it may still be loading
        while process.poll() is None and len(read_metrics(folder)) < before + steps:
            time.sleep(0.05)
        moment = draw.uniform(0, longest)
        until = time.monotonic() + moment
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        ranks = ranks_of(process)
        if process.poll() is not None or len(ranks) < 2:  # it was faster
            process.communicate()
            break
        report = kill(process, draw.choice([0, 1, "parent"]), ranks)
        found.append({**report, "after": [steps, round(moment, 1)], "checkpoints": checkpoints(folder)})
        print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    finish(folder, *settings)
    return found


def disturbed_with_server(
    folder: Path, kills: int, draw: random.Random, longest: float, model: Path, port: int, *settings: str
) -> list[dict[str, Any]]:
    """As `disturbed`, with one process and the server that it samples from."""
    from benchmarks.gpu.engines import end, start

    found: list[dict[str, Any]] = []
    log = folder.with_suffix(".server.log")
    server = start(str(model), port, 256, log)
    try:
        while len(found) < kills:
            process, before = begin(folder, *settings), len(read_metrics(folder))
            steps, moment = draw.choice([0, 1, 1, 2]), draw.uniform(0, longest)
            while process.poll() is None and len(read_metrics(folder)) < before + steps:
                time.sleep(0.05)
            until = time.monotonic() + moment
            while process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            if process.poll() is not None:  # it was faster
                process.communicate()
                break
            target = draw.choice(["server", "server", "training"])
            if target == "server":
                end(server, signal.SIGKILL)
                killed = time.monotonic()
                said, _ = process.communicate(timeout=600)
                seconds, last = round(time.monotonic() - killed, 1), " ".join(said.split())
                report = {"target": target, "ended_s": seconds, "left": 0, "status": process.returncode}
                report["said"] = last[last.find("Error:") :][:200] if "Error:" in last else last[-200:]
                server = start(str(model), port, 256, log)
            else:
                report = kill(process, "parent", {})
            found.append({**report, "after": [steps, round(moment, 1)], "checkpoints": checkpoints(folder)})
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
        finish(folder, *settings)
    finally:
        end(server)
    return found


def finish(folder: Path, *settings: str) -> None:
    process = begin(folder, *settings)
    said, _ = process.communicate(timeout=900)
    if process.returncode:
        raise SystemExit(f"{folder} could not be gone on with:\n{said}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--layout", default="replicated", help="run.layout")
    parser.add_argument("--server", action="store_true", help="one process, and a vLLM server")
    parser.add_argument("--port", type=int, default=8766, help="of that server")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--longest", type=float, default=5.0, help="seconds after a step or the start")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    settings: tuple[str, ...] = (f"train.steps={args.steps}", "run.processes=2", f"run.layout={args.layout}")
    with tempfile.TemporaryDirectory(prefix="microcoder-kills-") as folder:
        whole, broken, draw = Path(folder) / "whole", Path(folder) / "broken", random.Random(args.seed)
        if args.server:
            from benchmarks.gpu.engines import end, start, untied

            model = untied("nano", Path(folder) / "model")
            sampled = (f"rollout.server=http://127.0.0.1:{args.port}", "rollout.engine=vllm", "train.update=packed")
            settings = (f"train.steps={args.steps}", f"model.name={model}", *sampled)
            server = start(str(model), args.port, 256, Path(folder) / "server.log")
            try:
                finish(whole, *settings)
            finally:
                end(server)
            kills = disturbed_with_server(broken, args.kills, draw, args.longest, model, args.port, *settings)
        else:
            finish(whole, *settings)
            kills = disturbed(broken, args.kills, draw, args.longest, *settings)
        apart = difference(whole, broken)
    slowest = max((one["ended_s"] for one in kills), default=0.0)
    what = "a server" if args.server else args.layout
    result = {"layout": what, "kills": kills, "slowest_s": slowest, "difference": apart, "grace_s": GRACE_S}
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"{len(kills)} kills, {what}: all processes had ended within {slowest} s (allowed: {GRACE_S} s)")
        print(f"weights and metrics: {'other ' + apart if apart else 'those of the undisturbed run, bit for bit'}")
    return 1 if apart or any(one["left"] for one in kills) else 0
