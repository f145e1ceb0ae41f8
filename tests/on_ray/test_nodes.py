"""Nodes that join, die, cannot judge, or are no more: no verdict is lost or wrong. The last test ends the cluster."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from microcoder import Problem, Solution, Test
from microcoder.judge import JudgeError
from microcoder.judge.remote import open_judge, ray_judge
from microcoder.judge.remote.ray_judge import RayJudge

SQUARE = Problem("square", tests=[Test(f"{n}\n", f"{n * n}\n") for n in range(3)], time_limit_s=10)
RIGHT = "print(int(input()) ** 2)"
SLOW = "import time\ntime.sleep(0.1)\n" + RIGHT
SLEEPS = "import time\ntime.sleep(15)\n"


def until(true: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait for something that happens elsewhere."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)
    return found


def test_a_node_that_joins_is_used_and_one_that_is_killed_loses_nothing(nodes: Any) -> None:
    with RayJudge(nodes.address) as judge:
        third = nodes.add()
        until(lambda: judge.workers == 3)
        joined = judge._dealer.nodes.ready[third.node_id]
        codes = [SLOW.replace("** 2", "+ 7"), SLOW]
        pairs = [(SQUARE, Solution("square", codes[n % 2], id=str(n))) for n in range(120)]
        seen = Counter[str]()
        for solution, verdict in judge.map(pairs):
            assert verdict.verdict == ("accepted" if int(solution.id) % 2 else "wrong_answer"), verdict
            seen[solution.id] += 1
            if len(seen) == 30:
                until(lambda: joined.has)
                nodes.kill(third)
        assert len(seen) == 120 and set(seen.values()) == {1}
        until(lambda: judge.workers == 2)


def test_a_program_that_ends_nodes_is_given_up_and_what_was_beside_it_is_not(nodes: Any) -> None:
    """The sandbox allows no such program, so the node's judge is killed here whenever it has this one."""
    with RayJudge(nodes.address) as judge:
        killer = judge.submit(SQUARE, code=SLEEPS)
        others = [judge.submit(SQUARE, code=RIGHT) for _ in range(12)]
        while not killer.done():
            for node in list(judge._dealer.nodes.ready.values()):
                if any(candidate.future is killer for candidate in list(node.has.values())):
                    for pid in nodes.processes("NodeJudge", node.name):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(0.2)
        assert killer.result().verdict == "internal_error" and "3 nodes were lost under it" in killer.result().message
        assert {future.result().verdict for future in others} == {"accepted"}


@pytest.mark.parametrize(
    ("address", "said"),
    [("127.0.0.1:9", "ray start --head"), ("ray://127.0.0.1:9", "nothing answers"), ("somewhere", "ray://HOST:10001")],
)
def test_an_address_without_a_cluster_says_what_to_type(address: str, said: str) -> None:
    with pytest.raises(JudgeError, match=said):
        open_judge({"on": f"ray:{address}"})


def test_a_node_that_cannot_judge_says_why(nodes: Any) -> None:
    with pytest.warns(UserWarning, match="does not judge"), pytest.raises(JudgeError, match="policy is 'strict'"):
        RayJudge(nodes.address, policy="strict")


def test_a_closed_judge_takes_no_more(nodes: Any) -> None:
    with RayJudge(nodes.address, workers=1) as one:
        assert one.workers == 1
        future = one.submit(SQUARE, code=RIGHT)
    assert future.result().accepted  # what was queued is finished
    with pytest.raises(JudgeError, match="closed"):
        one.submit(SQUARE, code=RIGHT)
    until(lambda: not nodes.processes("NodeJudge"))


def test_without_any_node_what_waits_is_given_up_with_the_reason(nodes: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(ray_judge, "ALONE_S", 3.0)
    with RayJudge(nodes.address) as judge:
        futures = [judge.submit(SQUARE, code=SLEEPS) for _ in range(3)]
        for node in nodes.nodes:
            nodes.kill(node)
        for future in futures:
            assert future.result().verdict == "internal_error"
            assert "no node of the Ray cluster was there for 3 s" in future.result().message
