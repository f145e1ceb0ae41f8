"""Judge a workload file with a peer's own code. `judge/speed.py` starts it as a process, in the peer's Python.

    python peers.py NAME PATH WORKLOAD.json RESULT.json [WORKERS]

PATH is a checkout of the peer, or "model". How each is called:

1. livecodebench: `evaluate_generations` of lcb_runner.evaluation.compute_code_generation_metrics, its own process pool
   (num_process_evaluate = WORKERS, timeout = the limit); accepted where every result is above 0, as it counts itself.
   Its runner has `datasets` loaded when it judges, which every fork pays for; livecodebench-bare is without.
2. deepcoder (rllm): `lcb_check_correctness_v2` of rllm.rewards.code_reward, which its RewardCodeFn calls; timeout = the
   limit (RewardCodeFn leaves it at 6).
3. deepcoder-taco: `check_correctness` of the same file with `taco.run_test`, its comparator for PrimeIntellect's data.
4. verl: `prime_code.compute_score(continuous=True)`, as `default_compute_score` calls it; it takes no limit (5 s for
   all tests, then 10 s each); accepted where the score is 1.
5. skyrl: `lcb_check_correctness` of skyrl_gym.envs.lcb.livecodebench, which its LCBEnv calls; timeout = the limit
   (LCBEnv leaves it at 6).
6. code_eval: `check_correctness` of evaluate's metrics/code_eval/execute.py, which lm-evaluation-harness's HumanEval
   calls, with its own limit of 3 s for all tests. It knows assertions only: stdin problems are asserted by a few lines
   of ours that feed each input to the program and compare tokens, and a result must be equal: it knows no tolerance.

Only the modules that judge are imported: the packages around them would load trainers. Nothing of theirs is changed.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import multiprocessing
import os
import sys
import time
import types
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

One = Callable[[dict[str, Any], str, int], bool]
NAMES = ("livecodebench", "livecodebench-bare", "deepcoder", "deepcoder-taco", "verl", "skyrl", "code_eval")


def bare(root: str, *names: str) -> None:
    """Make packages importable without running their __init__."""
    for name in names:
        module = types.ModuleType(name)
        module.__path__ = [str(Path(root, *name.split(".")))]
        sys.modules[name] = module


def load(name: str, path: str) -> One | None:
    """The function that judges one program; None where the peer has a pool of its own (livecodebench)."""
    if path == "model":
        models = importlib.import_module("models")
        model: One = models.verl if name == "verl" else models.livecodebench  # deepcoder's code came from there
        return model
    if name.startswith("livecodebench"):
        bare(path, "lcb_runner", "lcb_runner.evaluation")
        if name == "livecodebench":
            importlib.import_module("lcb_runner.benchmarks")  # its runner loads this first, and with it `datasets`
        importlib.import_module("lcb_runner.evaluation.compute_code_generation_metrics")
        return None
    if name.startswith("deepcoder"):
        parts = ("rllm", "rllm.rewards", "rllm.rewards.code_utils", "rllm.tools", "rllm.tools.code_tools")
        bare(path, *parts)
        reward = importlib.import_module("rllm.rewards.code_reward")
        importlib.import_module("pandas")  # it stands in the prelude of every program: better loaded once
        if name == "deepcoder-taco":
            taco = importlib.import_module("rllm.rewards.code_utils.taco")
            return lambda sample, code, limit: bool(
                reward.check_correctness(_values(sample), code, taco.run_test, timeout_per_test=limit)[0]
            )
        return lambda sample, code, limit: bool(reward.lcb_check_correctness_v2(_rows(sample), code, timeout=limit)[0])
    if name == "verl":
        _pyext()
        bare(path, "verl", "verl.utils", "verl.utils.reward_score")
        prime = importlib.import_module("verl.utils.reward_score.prime_code")
        return lambda sample, code, limit: float(prime.compute_score(code, sample, continuous=True)[0]) == 1.0
    if name == "skyrl":
        bare(path, "skyrl_gym", "skyrl_gym.envs", "skyrl_gym.envs.lcb")
        lcb = importlib.import_module("skyrl_gym.envs.lcb.livecodebench")
        importlib.import_module("pandas")  # as for deepcoder; and its guard forbids what importing it needs
        return lambda sample, code, limit: bool(lcb.lcb_check_correctness(_rows(sample), code, timeout=limit))
    if name == "code_eval":
        sys.path.insert(0, str(Path(path, "metrics", "code_eval")))
        execute = importlib.import_module("execute")
        return lambda sample, code, limit: bool(execute.check_correctness(_asserted(sample, code), 3.0, 0, 0)["passed"])
    raise SystemExit(f"no peer is called {name!r}; known are {', '.join(NAMES)}")


def _rows(sample: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for text, want in zip(sample["inputs"], sample["outputs"], strict=True):
        row: dict[str, Any] = {"input": text, "output": want, "testtype": "stdin", "metadata": {}}
        if "fn_name" in sample:
            row |= {"testtype": "functional", "metadata": {"func_name": sample["fn_name"]}}
        rows.append(row)
    return rows


def _values(sample: dict[str, Any]) -> dict[str, Any]:
    if "fn_name" not in sample:
        return sample
    inputs = [[json.loads(line) for line in text.split("\n")] for text in sample["inputs"]]
    return {**sample, "inputs": inputs, "outputs": [json.loads(want) for want in sample["outputs"]]}


def _asserted(sample: dict[str, Any], code: str) -> str:
    """A program that fails unless `code` passes the sample's tests."""
    if "fn_name" not in sample:
        return f"code, inputs, outputs = {code!r}, {sample['inputs']!r}, {sample['outputs']!r}\n{_FEED}"
    values, name = _values(sample), sample["fn_name"]
    call = f"called = {name} if {name!r} in globals() else Solution().{name}\n"
    pairs = zip(values["inputs"], values["outputs"], strict=True)
    return "\n".join([code, call, *(f"assert called(*{args!r}) == {want!r}" for args, want in pairs)])


_FEED = """
import io, sys
for text, want in zip(inputs, outputs):
    sys.stdin, sys.stdout = io.TextIOWrapper(io.BytesIO(text.encode())), io.StringIO()
    try:
        exec(compile(code, "program", "exec"), {"__name__": "__main__"})
    except SystemExit:
        pass
    assert sys.stdout.getvalue().split() == want.split()
"""


def _pyext() -> None:
    """pyext does not install on Python 3.11 and later; verl uses one call of it, a module made from text."""
    if importlib.util.find_spec("pyext"):
        return

    class RuntimeModule:
        @staticmethod
        def from_string(name: str, doc: str, source: str) -> types.ModuleType:
            module = types.ModuleType(name, doc)
            exec(source, module.__dict__)
            return module

    sys.modules["pyext"] = module = types.ModuleType("pyext")
    module.RuntimeModule = RuntimeModule  # type: ignore[attr-defined]


ONE: One | None = None  # what a worker calls; set before the workers are forked


def _judge(number: int, sample: dict[str, Any], code: str, limit: int) -> tuple[int, bool]:
    assert ONE is not None
    try:
        return number, ONE(sample, code, limit)
    except Exception as error:  # the peer's own failure counts as its verdict: not accepted
        print(f"candidate {number}: {error!r}", file=sys.stderr)
        return number, False


def run(name: str, path: str, work: dict[str, Any], workers: int) -> dict[str, Any]:
    global ONE
    started = time.perf_counter()
    ONE = load(name, path)
    jobs, limit = work["candidates"], int(work["limit"])
    problems = work["problems"]
    if ONE is None:
        metrics = sys.modules["lcb_runner.evaluation.compute_code_generation_metrics"]
        samples = {key: {"input_output": json.dumps(sample)} for key, sample in problems.items()}
        ready = time.perf_counter()
        results, _ = metrics.evaluate_generations(
            [samples[job["problem"]] for job in jobs],
            [[job["code"]] for job in jobs],
            num_process_evaluate=workers,
            timeout=limit,
        )
        accepted = {job["id"]: all(r > 0 for r in results[i][0]) for i, job in enumerate(jobs)}
    else:
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as pool:
            for future in [pool.submit(time.sleep, 0.2) for _ in range(workers)]:
                future.result()
            ready = time.perf_counter()
            futures = [
                pool.submit(_judge, i, problems[job["problem"]], job["code"], limit) for i, job in enumerate(jobs)
            ]
            accepted = {jobs[i]["id"]: ok for i, ok in (f.result() for f in as_completed(futures))}
    return {"start_s": ready - started, "wall_s": time.perf_counter() - ready, "accepted": accepted}


def main() -> None:
    name, path, source, target = sys.argv[1:5]
    workers = int(sys.argv[5]) if len(sys.argv) > 5 else 2
    work = json.loads(Path(source).read_text())
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    result = run(name, path, work, workers)
    Path(target).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
