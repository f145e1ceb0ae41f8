"""A Ray session for one stage: Ray up, TransferQueue up, our plugin there; and all of it gone again.

A stage is a restart, for verl's processes keep the temperature and the limit that they began with.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...config import Config, usable_cores
from ...files import write_problems
from ...prompts import messages
from ...schema import Problem
from .settings import cpus

PLUGIN = "microcoder.training.verl.plugin"


class ClusterError(ValueError):
    """A cluster that cannot train; the message says what to do."""


def environment(config: Config) -> dict[str, str]:
    """Of every process, this one included; before verl is imported, for it looks at the platform once."""
    quiet = {"VERL_LOGGING_LEVEL": "ERROR", "TQ_LOGGING_LEVEL": "ERROR", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    found = {"TRANSFER_QUEUE_ENABLE": "1", "TOKENIZERS_PARALLELISM": "false", **quiet}
    return found if config.cluster.gpus_per_node else found | {"VERL_PLATFORM": "cpu", "OMP_NUM_THREADS": "1"}


@contextmanager
def session(config: Config, settings: Any) -> Iterator[None]:
    """Open a Ray session with verl's `settings`."""
    import ray
    import transfer_queue
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

    variables = {**get_ppo_ray_runtime_env(settings)["env_vars"], **environment(config)}
    options: dict[str, Any] = {"address": config.cluster.address or "local"}
    if not config.cluster.address:
        options["num_cpus"] = max(usable_cores(), cpus(config))
        options["include_dashboard"] = False
        if not config.cluster.gpus_per_node:
            options["num_gpus"] = config.cluster.processes  # verl counts its processes in GPUs, whatever they train on
    ray.init(**options, runtime_env={"env_vars": variables}, log_to_driver=False, logging_level="ERROR")
    try:
        enough(config, ray.cluster_resources())
        fault = ray.get(ray.remote(check).remote())
        if fault:
            raise ClusterError(f"verl's processes do not know our plugin: {fault}; on every node: make verl")
        transfer_queue.init(settings.transfer_queue)
        try:
            yield
        finally:
            transfer_queue.close()
    finally:
        ray.shutdown()


def check() -> str:
    """What is wrong with our plugin in this process, which has only imported verl; nothing where it is there."""
    import verl  # noqa: F401

    if getattr(sys.modules.get(PLUGIN), "COMPLETE", False):
        return ""
    try:
        importlib.import_module(PLUGIN)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "the entry points verl.plugins have no microcoder: not installed, or hidden by VERL_USE_EXTERNAL_PLUGINS"


def enough(config: Config, there: dict[str, float]) -> None:
    """Raise ClusterError if Ray's resources are not enough."""
    wanted = config.cluster.processes
    if there.get("GPU", 0) < wanted:
        on_cpus = "" if config.cluster.gpus_per_node else "; without any, start Ray with --num-gpus=1 on each machine"
        raise ClusterError(
            f"the Ray cluster has {there.get('GPU', 0):g} GPUs, but cluster.nodes={config.cluster.nodes} and "
            f"cluster.gpus_per_node={config.cluster.gpus_per_node} ask for {wanted}{on_cpus}"
        )
    if there.get("CPU", 0) < (least := cpus(config)):
        raise ClusterError(
            f"the Ray cluster has {there.get('CPU', 0):g} CPUs; start it with --num-cpus={least} or more"
        )


def train(config: Config, run: Any, observer: Any) -> None:
    """Train on verl, with the arguments of `training.train`."""
    os.environ.update(environment(config))
    warnings.filterwarnings("ignore", category=UserWarning)  # verl counts up the engines that are not installed
    from .trainer import train as begin

    (run.path / "logs").mkdir(exist_ok=True)
    with open(run.path / "logs" / "verl.log", "a", encoding="utf-8") as log, redirect_stdout(log):  # it prints a lot
        begin(config, run, observer)


def base_folder() -> str:
    """Return the folder of verl's own settings."""
    spec = importlib.util.find_spec("verl")
    if spec is None or spec.origin is None:
        raise ClusterError("verl is not installed here: make verl, then .venv-verl/bin/microcoder train ...")
    return str(Path(spec.origin).parent / "trainer" / "config")


Split = tuple[Sequence[Problem], list[list[int]]]  # problems and their prompts


def write_files(
    folder: Path, train: Split, numbers: Sequence[int], test: Split, eval_limit: int, style: str = "code"
) -> None:
    """`numbers`: the problem of each row of the run. A test's limit is `eval_limit` tokens; 0: that of the others.

    others.parquet has every training problem once, for dynamic sampling. Its rows are numbered -1, -2, ..., so that
    their seeds are no others' and stay what they are when a run gets more steps.
    """
    folder.mkdir(exist_ok=True)
    _write(folder / "train.parquet", [_row(n, train, at, style) for n, at in enumerate(numbers)])
    _write(folder / "others.parquet", [_row(-1 - at, train, at, style) for at in range(len(train[0]))])
    rows = [_row(n, test, n, style, limit=eval_limit, test=True) for n in range(len(test[0]))]
    _write(folder / "test.parquet", rows or [_row(0, train, 0, style)])  # verl wants a row, and never asks for this one
    write_problems(folder / "problems.jsonl", (replace(each, id=name) for name, each in named(train, test).items()))


def named(train: Split, test: Split) -> dict[str, Problem]:
    """All problems by names that tell the splits apart: files of both may count from 1."""
    return {_name(problem, test=split is test): problem for split in (train, test) for problem in split[0]}


def _name(problem: Problem, test: bool) -> str:
    return f"{'test' if test else 'train'}/{problem.id}"


def _row(index: int, split: Split, at: int, style: str, limit: int = 0, test: bool = False) -> dict[str, Any]:
    problem, prompt = split[0][at], split[1][at]
    name = _name(problem, test)
    return {
        "data_source": "microcoder",
        "prompt": messages(problem, style),
        "reward_model": {"style": "rule", "ground_truth": name},
        "extra_info": {"index": index, "problem": name, "prompt_ids": prompt, "limit": limit, "test": test},
    }


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)
