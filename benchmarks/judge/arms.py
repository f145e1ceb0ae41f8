"""The arms of the benchmark: each judges a list of candidates and says how long it took and what it accepted."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.shared import processes, workload
from benchmarks.shared.workload import Candidate
from microcoder.schema import Problem, Solution, Test

WORKERS = 2
MODELLED = ("livecodebench", "deepcoder", "verl")
VARIANTS = ("livecodebench-bare", "deepcoder-taco", "skyrl", "code_eval")  # only with a path


@dataclass
class Outcome:
    """One arm's run over one workload."""

    wall_s: float
    start_s: float  # imports and pools, before the clock starts
    accepted: dict[str, bool]
    verdicts: dict[str, str] = field(default_factory=dict)  # where the arm names a kind
    messages: dict[str, str] = field(default_factory=dict)  # and says why


@dataclass(frozen=True)
class Peer:
    """A checkout of a peer, or a model of it where `path` is "model"."""

    name: str
    path: str
    python: str

    @property
    def label(self) -> str:
        return f"model of {self.name}" if self.path == "model" else self.name

    def run(self, candidates: list[Candidate]) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="peer-") as folder:
            source, target, log = (Path(folder, name) for name in ("work.json", "result.json", "log"))
            source.write_text(json.dumps(peer_work(candidates)))
            script = str(Path(__file__).parent / "peers" / "peers.py")
            command = [self.python, script, self.name, self.path, str(source), str(target), str(WORKERS)]
            processes.adopt_orphans()
            others = processes.family()  # that keep the machine busy
            with log.open("wb") as sink:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd=folder, start_new_session=True
                )
                try:
                    process.wait()
                finally:
                    if left := processes.end_family(others):  # or they would spin into the next arm's time
                        print(f"{self.label} left {left} processes running", file=sys.stderr)
            if not target.exists():
                tail = log.read_text(errors="replace")[-2000:]
                raise SystemExit(f"{self.label} ({self.path}) failed in {self.python}:\n{tail}")
            result = json.loads(target.read_text())
        return Outcome(result["wall_s"], result["start_s"], result["accepted"])


@dataclass(frozen=True)
class Ours:
    """The judge of this repository; `reuse` keeps one process for a candidate's tests."""

    reuse: bool = False

    @property
    def name(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        return "microcoder-reuse" if self.reuse else "microcoder"

    def run(self, candidates: list[Candidate]) -> Outcome:
        from microcoder import Judge

        begun = time.perf_counter()
        with Judge(workers=WORKERS, reuse=self.reuse) as judge:
            for _ in judge.map(_warm()):
                pass
            ready = time.perf_counter()
            pairs = ((c.problem, c.solution) for c in candidates)
            found = {solution.id: verdict for solution, verdict in judge.map(pairs)}
            wall = time.perf_counter() - ready
        verdicts = {name: verdict.verdict for name, verdict in found.items()}
        messages = {name: f"{verdict.verdict}, {verdict.message}" for name, verdict in found.items()}
        return Outcome(wall, ready - begun, {k: v == "accepted" for k, v in verdicts.items()}, verdicts, messages)


@dataclass(frozen=True)
class Rewarded:
    """The judge as a reward for other trainers: `CodeReward`, asked for all completions in one call."""

    name = label = "microcoder-reward"

    def run(self, candidates: list[Candidate]) -> Outcome:
        from microcoder.rewards import CodeReward
        from microcoder.rewards.shared import close_judges

        begun = time.perf_counter()
        warm = _warm()
        problems = {c.problem.id: c.problem for c in candidates} | {problem.id: problem for problem, _ in warm}
        reward = CodeReward(problems, judge={"workers": WORKERS})
        try:
            reward.verdicts([problem for problem, _ in warm], [_fenced(solution.code) for _, solution in warm])
            ready = time.perf_counter()
            rewards = reward([_fenced(c.code) for c in candidates], id=[c.problem.id for c in candidates])
            wall = time.perf_counter() - ready
        finally:
            close_judges()
        pairs = zip(candidates, rewards, strict=True)  # None, a fault of the judge, is lost
        return Outcome(wall, ready - begun, {c.id: value == 1 for c, value in pairs if value is not None})


def _fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def _warm() -> list[tuple[Problem, Solution]]:
    """Small programs that make both workers start both of their zygotes, the plain one and numpy's."""
    problem = Problem(id="warm", tests=[Test("", "1\n")])
    codes = ["print(1)", "import numpy\nprint(1)"] * WORKERS
    return [(problem, Solution(problem_id="warm", code=code, id=f"w{i}")) for i, code in enumerate(codes)]


def peer_work(candidates: list[Candidate]) -> dict[str, object]:
    return {
        "limit": workload.TIME_LIMIT_S,
        "problems": {c.problem.id: workload.peer_sample(c.problem) for c in candidates},
        "candidates": [{"id": c.id, "problem": c.problem.id, "code": c.code} for c in candidates],
    }


def peers(given: list[str], python: str) -> list[Peer]:
    """The peers of `--peer name=PATH`; a model stands in for each of the three that has no path."""
    paths = dict(item.split("=", 1) for item in given)
    names = [*MODELLED, *(n for n in paths if n in VARIANTS)]
    if unknown := set(paths) - set(names):
        raise SystemExit(f"--peer {unknown.pop()}: no such peer; known are {', '.join(MODELLED + VARIANTS)}")
    for name, path in paths.items():
        if not Path(path).is_dir():
            raise SystemExit(f"--peer {name}={path}: no such folder; give a checkout of {name}")
    return [
        Peer(n, str(Path(paths[n]).resolve()), python) if n in paths else Peer(n, "model", sys.executable)
        for n in names
    ]
