"""Judging on several nodes: the same verdicts as here, also large problems, full queues and what is dropped."""

from __future__ import annotations

import pickle
import re
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from microcoder import Judge, Problem, Solution, Test
from microcoder.judge import JudgeError
from microcoder.judge.remote.ray_judge import RayJudge
from microcoder.judge.remote.ray_node import Item, Kept, NodeJudge
from microcoder.schema import VERDICTS

SQUARE = Problem("square", tests=[Test(f"{n}\n", f"{n * n}\n") for n in range(3)], time_limit_s=1, memory_mb=256)
RIGHT = "print(int(input()) ** 2)"
SLEEPS = "import time\ntime.sleep(30)"
PROGRAMS = {
    "accepted": RIGHT,
    "wrong_answer": "print(int(input()) + 2)",
    "time_limit": "while True: pass",
    "memory_limit": "x = bytearray(1 << 40)\nprint(len(x))",
    "output_limit": "while True: print('x' * 10000)",
    "runtime_error": "print(1 / int(input()))",
    "compile_error": "print(",
    "no_code": "",
    "internal_error": RIGHT,  # of a problem whose checker does not work
}
BROKEN = Problem("broken", tests=[Test("1\n", "1\n")])
BROKEN.compare.checker = "def check("


@pytest.fixture(scope="module")
def judge(nodes: Any) -> Iterator[RayJudge]:
    with RayJudge(nodes.address) as judge:
        yield judge


def squares(count: int, code: str = RIGHT) -> list[tuple[Problem, Solution]]:
    return [(SQUARE, Solution("square", code=code, id=str(n))) for n in range(count)]


def test_every_kind_of_verdict_is_the_one_that_is_given_here(judge: RayJudge) -> None:
    pairs = [
        (BROKEN if kind == "internal_error" else SQUARE, Solution("square", code=code, id=kind))
        for kind, code in PROGRAMS.items()
    ]
    pairs.append((SQUARE, Solution("square", completion=f"```python\n{RIGHT}\n```", id="completion")))
    pairs.append((SQUARE, Solution("square", code="int main() {}", id="cpp", language="cpp")))

    def verdicts(judge: Any) -> dict[str, Any]:
        return {solution.id: plain(verdict) for solution, verdict in judge.map(pairs)}

    def plain(verdict: Any) -> dict[str, Any]:
        record = verdict.to_dict()
        for part in (record, *record["tests"]):
            for name in ("cpu_s", "wall_s", "memory_mb"):
                del part[name]
            part["message"] = re.sub(r"[\d.]+ s", "so many s", part["message"])
        return record

    with Judge(workers=1) as here:
        expected = verdicts(here)
    assert {kind: expected[kind]["verdict"] for kind in VERDICTS} == {kind: kind for kind in VERDICTS}
    assert verdicts(judge) == expected
    assert judge.sandbox == here.sandbox and judge.workers == 2


def test_a_large_problem_is_handed_over_once(judge: RayJudge) -> None:
    handed = []

    class Large(Problem):
        def __reduce__(self) -> Any:
            handed.append(self.id)
            return Problem, (self.id, self.kind, "", "", "", "", self.tests)

    text = "7\n" * (6 << 20)
    large = Large("large", tests=[Test(text, text)])
    code = "import sys\nsys.stdout.write(sys.stdin.read())"
    found = [verdict.verdict for _, verdict in judge.map((large, Solution("large", code=code)) for _ in range(6))]
    assert found == ["accepted"] * 6 and handed == ["large"]


def test_a_problem_that_cannot_be_handed_over_is_the_judges_fault(judge: RayJudge) -> None:
    locked = Problem("locked", tests=[Test("", "")], title=threading.Lock())  # type: ignore[arg-type]
    verdict = judge.check(locked, code="pass")
    assert verdict.verdict == "internal_error" and "pickle" in verdict.message and verdict.problem_id == "locked"
    assert judge.check(SQUARE, code=RIGHT).accepted


def test_what_is_kept_of_large_problems_is_bounded_and_the_oldest_go_first() -> None:
    kept, made = Kept(most=100), Counter[str]()

    def get(name: str) -> Any:
        return kept.get(name, lambda: (made.update([name]) or name, 40))

    assert [get(name) for name in "abacab"] == list("abacab")
    assert made == {"a": 1, "b": 2, "c": 1} and kept.size == 80


def test_map_reads_no_faster_than_it_judges(judge: RayJudge) -> None:
    taken = 0

    def endless() -> Iterator[tuple[Problem, Solution]]:
        nonlocal taken
        while True:
            taken += 1
            yield SQUARE, Solution("square", code=RIGHT)

    results = judge.map(endless())
    for _ in range(3):
        next(results)
    assert taken < 60
    results.close()  # type: ignore[attr-defined]


def test_a_full_queue_makes_submit_wait(nodes: Any, judge: RayJudge) -> None:
    """Four for each core are on the nodes, and as many as the queue holds wait here."""
    judge._dealer._queue = 1
    try:
        futures = [judge.submit(SQUARE, code=SLEEPS) for _ in range(9)]
        last = threading.Thread(target=lambda: futures.append(judge.submit(SQUARE, code=RIGHT)))
        last.start()
        last.join(timeout=0.5)
        assert last.is_alive()
        for future in futures[:]:
            judge.drop(future)
        last.join(timeout=60)
        assert futures[-1].result().accepted
    finally:
        judge._dealer._queue = None


def test_what_is_dropped_is_killed_and_makes_room(nodes: Any, judge: RayJudge) -> None:
    patient = Problem("patient", tests=[Test("", "")], time_limit_s=600)
    futures = [judge.submit(patient, code=SLEEPS.replace("30", "500")) for _ in range(10)]
    for future in futures:
        judge.drop(future)
    assert all(verdict.accepted for _, verdict in judge.map(squares(4)))
    assert all(future.cancelled() for future in futures)


def test_what_is_dropped_before_it_is_taken_is_not_run() -> None:
    """Ray calls an actor from several threads, so the call that drops a candidate may come first."""
    node = NodeJudge(1, {})
    node.open()
    patient = Problem("patient", tests=[Test("", "")], time_limit_s=600)
    pairs = [(patient, Solution("patient", code=SLEEPS.replace("30", "500"))), *squares(1)]
    items = [Item(n, None, pickle.dumps(pair)) for n, pair in enumerate(pairs)]
    try:
        node.drop(0)
        node.take(items[:1])
        answers = dict(node.exchange(items[1:]))
        while len(answers) < 2:
            answers.update(node.exchange([]))
    finally:
        node.close(cancel=True)
    assert answers[0] is None and answers[1].accepted and not node.dropped  # type: ignore[union-attr]


def test_a_process_has_one_cluster_at_a_time(judge: RayJudge) -> None:
    with pytest.raises(JudgeError, match="already"):
        RayJudge("local")
    assert judge.check(SQUARE, code=RIGHT).accepted
