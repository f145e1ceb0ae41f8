"""The samplers side by side on one GPU, and FSDP2 in a world of one beside one process: the same data and seeds.

    python -m benchmarks.gpu engines --model FOLDER --data train.jsonl.gz --json engines.json
    SIZE=toy MODEL=nano OUT=DIR PYTHON=.venv-vllm/bin/python bash benchmarks/gpu/engines.sh          # on a CPU

    graph        our sampler (on a CPU: transformers)
    colocate     vLLM in the training's process
    server       a vLLM server on the same GPU, which this starts and ends; weights travel through a folder
    graph-ahead, server-ahead    the same with rollout.ahead=1
    replicated, fsdp             `graph` for --layout-steps steps, as it is and as the one rank of an FSDP2 world; on a
                                 GPU their responses differ after the first update by what sums in another order change

All weigh tokens by p_trainer / p_sampler, so that the losses are alike. Each arm has a process of its own, one after
the other, and --budget seconds. An arm that cannot run here says why, and the others go on. The first step is left out
of the seconds. `reward` is the mean of the first and of the last five steps; --json has every step.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from benchmarks.gpu.apart import Line, apart, setting, table, write_json
from benchmarks.gpu.step import COMMON, summary
from microcoder.models import resolve
from microcoder.models.weights import load, load_shape, load_tokenizer
from microcoder.sampling.vllm import built_for_cpus

ALIKE = ["grpo.importance=token", "train.update=packed"]
ARMS = {
    "graph": [],
    "colocate": ["rollout.engine=vllm"],
    "server": ["rollout.engine=vllm", "rollout.server={url}"],
    "graph-ahead": ["rollout.ahead=1"],
    "server-ahead": ["rollout.engine=vllm", "rollout.server={url}", "rollout.ahead=1"],
    "replicated": [],
    "fsdp": ["run.layout=fsdp"],
}
LAYOUTS = ("replicated", "fsdp")
PROMPT = 1024  # tokens of a prompt at most, as COMMON has it
COLUMNS = [
    ("arm", "arm", ""),
    ("steps", "steps", "d"),
    ("reward", "first_reward", ".3f"),
    ("to", "last_reward", ".3f"),
    ("step s", "step_s", ".2f"),
    ("generation", "generation_s", ".2f"),
    ("judging", "judging_s", ".2f"),
    ("update", "update_s", ".2f"),
    ("other", "other_s", ".2f"),
    ("tokens/s", "tokens_per_s", ",.0f"),
    ("mismatch", "mismatch_mean", ".1e"),
    ("p99", "mismatch_p99", ".1e"),
    ("ESS", "effective_sample_size", ".4f"),
    ("stale", "staleness", ".2f"),
    ("GPU GiB", "gpu_gib", ".1f"),
    ("start s", "start_s", ".0f"),
]


def main() -> int:
    args = arguments()
    found: dict[str, Any] = {"setting": setting(), "words": settings(args, args.steps), "arms": {}}
    with tempfile.TemporaryDirectory() as temporary:
        out = (args.out or Path(temporary)).resolve()
        if not torch.cuda.is_available() and not unable():
            args.model = str(untied(args.model, out / "untied"))
            found["words"] = settings(args, args.steps)
        for name in args.arms:
            print(f"{name}: {' '.join(ARMS[name]) or 'as it is'}", flush=True)
            found["arms"][name] = one(args, name, out)
            if "failed" in found["arms"][name]:
                print(f"{name}: {found['arms'][name]['failed']}", flush=True)
            write_json(args.json, found)
        found["layouts"] = compared(out, found["arms"])
        write_json(args.json, found)
    print(shown(found["arms"]))
    for name, arm in found["arms"].items():
        if arm.get("steps"):
            print(f"{name}: reward by step", " ".join(f"{line['reward']:.3f}" for line in arm["steps"]))
    if found["layouts"]:
        print("fsdp beside replicated:", ", ".join(f"{name} {value}" for name, value in found["layouts"].items()))
    return 1 if any("failed" in arm for arm in found["arms"].values()) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model", default="nano", metavar="FOLDER", help="as transformers has it, with a chat template")
    add("--data", default="starter", metavar="FILE", help="problems of MicroCoder (default: starter)")
    add("--arms", nargs="+", default=list(ARMS), choices=list(ARMS), metavar="ARM", help=", ".join(ARMS))
    add("--steps", type=int, default=20)
    add("--layout-steps", type=int, default=4, help=f"of {' and '.join(LAYOUTS)}")
    add("--problems", type=int, default=64, help="of a step, half of them in an update")
    add("--samples", type=int, default=8)
    add("--limit", type=int, default=1024, help="tokens of a response")
    add("--seed", type=int, default=0)
    add("--server-memory", type=float, default=0.3, help="the share of the GPU that the server may take")
    add("--port", type=int, default=8765)
    add("--budget", type=float, default=600.0, metavar="SECONDS", help="of each arm")
    add("--set", nargs="*", action="extend", default=[], metavar="section.key=value", help="for all arms")
    add("--out", type=Path, metavar="DIR", help="keep logs and runs there")
    add("--json", type=Path, metavar="FILE", help="written anew after each arm and step")
    return parser.parse_args()


def settings(args: argparse.Namespace, steps: int) -> list[str]:
    """The settings of all arms."""
    return [
        f"model.name={args.model}",
        f"data.train={args.data}",
        *COMMON,
        *ALIKE,
        f"grpo.samples={args.samples}",
        f"train.seed={args.seed}",
        f"train.steps={steps}",
        f"train.train_batch_size={args.problems}",
        f"train.ppo_mini_batch_size={max(1, args.problems // 2)}",
        f"train.max_response_tokens={args.limit}",
        *args.set,
    ]


def one(args: argparse.Namespace, name: str, out: Path) -> dict[str, Any]:
    """An arm from its beginning to its end, or why there is none."""
    words = ARMS[name]
    if "rollout.engine=vllm" in words and (why := unable()):
        print(f"{name}: cannot run here: {why}", flush=True)
        return {"steps": [], "cannot": why}
    steps = args.layout_steps if name in LAYOUTS else args.steps
    spec: dict[str, Any] = {"save": name in LAYOUTS}
    if name == "fsdp":  # the one rank of a world
        world = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
        spec["environment"] = {**world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(args.port + 1)}

    def tell(lines: list[Line]) -> None:
        last = lines[-1]
        print(f"{name}: step {last['step']}, {last.get('step_s', 0):.1f} s, {last.get('reward')}", flush=True)

    try:
        with server(args, out / f"{name}-server.log") if "rollout.server={url}" in words else nullcontext("") as url:
            spec["words"] = settings(args, steps) + [word.format(url=url) for word in words]
            found = apart("benchmarks.gpu.ours", spec, out / name, steps, args.budget, tell)
    except RuntimeError as error:
        return {"steps": [], "failed": str(error)}
    result = summary(found)
    lines = result["steps"]
    if lines:
        rewards = [line["reward"] for line in lines]
        result["first_reward"], result["last_reward"] = (sum(part) / len(part) for part in (rewards[:5], rewards[-5:]))
    return result


def unable() -> str:
    """Why vLLM cannot run here; empty where it can."""
    if importlib.util.find_spec("vllm") is None:
        return "vllm is not installed"
    return "" if torch.cuda.is_available() or built_for_cpus() else "there is no GPU, and this vLLM is not for CPUs"


def untied(model: str, folder: Path) -> Path:
    """Write a model whose head has weights of its own: a vLLM server on a CPU keeps the first head of a tied one."""
    source = resolve(model)
    made, tokenizer = load(source, torch.float32), load_tokenizer(source)
    made.config.tie_word_embeddings = False
    made.lm_head.weight = torch.nn.Parameter(made.lm_head.weight.detach().clone())
    for each in (made, tokenizer):
        each.save_pretrained(folder)
    return folder


def nullcontext(value: str) -> Any:
    return contextlib.nullcontext(value)


def start(model: str, port: int, context: int, log: Path, memory: float = 0.3) -> subprocess.Popen[bytes]:
    """Start a vLLM server whose weights can be changed, in a process group of its own, and wait until it answers."""
    gpu, source = torch.cuda.is_available(), resolve(model)
    most = getattr(load_shape(source).config, "max_position_embeddings", None) or context
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", source.path]
    command += ["--host", "127.0.0.1", "--port", str(port), "--logprobs-mode", "processed_logprobs"]
    command += ["--max-model-len", str(min(most, context)), "--gpu-memory-utilization", str(memory)]
    command += (
        ["--dtype", "bfloat16"] if gpu else ["--dtype", "float32", "--enforce-eager", "--no-enable-chunked-prefill"]
    )
    log.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 300
    environment = {**os.environ, "VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with open(log, "wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment, start_new_session=True)
    while not healthy(f"http://127.0.0.1:{port}"):
        if process.poll() is not None or time.monotonic() > deadline:
            end(process)
            raise RuntimeError(f"the server did not start; the end of {log}:\n{log.read_text()[-2000:]}")
        time.sleep(0.5)
    return process


def end(process: subprocess.Popen[bytes], by: signal.Signals = signal.SIGTERM) -> None:
    """End a server and all that it has started, in the end by force."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, by)
        process.wait(20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def server(args: argparse.Namespace, log: Path) -> Iterator[str]:
    """The address of a vLLM server with the model, while it is there."""
    process = start(args.model, args.port, PROMPT + args.limit, log, args.server_memory)
    try:
        yield f"http://127.0.0.1:{args.port}"
    finally:
        end(process)


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return int(answer.status) == 200
    except OSError:
        return False


def compared(out: Path, arms: dict[str, Any]) -> dict[str, Any]:
    """How far the weights and the metrics of the two layouts are apart at their ends."""
    one, other = (arms.get(name, {}).get("steps", []) for name in LAYOUTS)
    if not one or not other:
        return {}
    same = sum(a["reward"] == b["reward"] and a["tokens"] == b["tokens"] for a, b in zip(one, other, strict=False))
    found: dict[str, Any] = {"steps with equal rewards and tokens": f"{same} of {len(one)}"}
    found["first grad_norm"] = f"{one[0]['grad_norm']:.6f} and {other[0]['grad_norm']:.6f}"
    files = [sorted((out / name / "run" / "checkpoints").glob("*/model.safetensors")) for name in LAYOUTS]
    if all(files):
        mine, its = (load_file(file[-1]) for file in files)
        apart_by = max(float((mine[name].float() - its[name].float()).abs().max()) for name in mine)
        found["largest difference of a weight"] = f"{apart_by:.2e}"
    return found


def shown(arms: dict[str, Any]) -> str:
    rows = [{**arm.get("mean", {}), **arm, "arm": name, "steps": len(arm["steps"])} for name, arm in arms.items()]
    cannot = [f"{name}: {arm['cannot']}" for name, arm in arms.items() if "cannot" in arm]
    return "\n".join([table(rows, COLUMNS), *cannot])


if __name__ == "__main__":
    sys.exit(main())
