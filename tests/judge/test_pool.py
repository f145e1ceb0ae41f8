"""The pool: futures, streams, back-pressure, and what happens when parts of it die. Real processes throughout."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psutil
import pytest

from microcoder import Judge, Problem, Solution, Test
from microcoder.judge import JudgeError

SQUARE = Problem("square", tests=[Test(f"{n}\n", f"{n * n}\n") for n in range(4)], time_limit_s=2)
RIGHT = "print(int(input()) ** 2)"
SLOW = "import time\ntime.sleep(0.4)\nprint(int(input()) ** 2)"
BUSY = "n = int(input())\nfor _ in range(3_000_000): pass\nprint(n ** 2)"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(workers=2) as judge:
        yield judge


def descendants(word: str) -> list[psutil.Process]:
    """Our processes of a kind: "worker" or "zygote"."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if f"{word} import main" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            pass
    return found


def test_check_submit_map_and_acheck_agree(judge: Judge) -> None:
    completion = f"So:\n```python\n{RIGHT}\n```\n"
    assert judge.check(SQUARE, completion).accepted
    assert judge.submit(SQUARE, code=RIGHT).result().accepted
    assert asyncio.run(judge.acheck(SQUARE, code=RIGHT)).accepted
    [(solution, verdict)] = judge.map([(SQUARE, Solution("square", code=RIGHT, id="x"))])
    assert solution.id == verdict.id == "x" and verdict.accepted and verdict.problem_id == "square"


def test_map_gives_results_as_they_are_ready(judge: Judge) -> None:
    pairs = [(SQUARE, Solution("square", code=code, id=name)) for name, code in (("slow", SLOW), ("quick", RIGHT))]
    assert [solution.id for solution, _ in judge.map(pairs)] == ["quick", "slow"]


def test_map_reads_no_faster_than_it_judges(judge: Judge) -> None:
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


def test_a_full_queue_makes_submit_wait() -> None:
    with Judge(workers=1, queue=1) as judge:
        one = Problem("one", tests=[Test("2\n", "4\n")])
        futures = [judge.submit(one, code="import time; time.sleep(1); print(4)") for _ in range(2)]
        third = threading.Thread(target=lambda: futures.append(judge.submit(one, code="print(4)")))
        third.start()
        third.join(0.3)
        assert third.is_alive()
        third.join(10)
        assert [f.result().verdict for f in futures] == ["accepted"] * 3


def test_threads_may_share_a_judge(judge: Judge) -> None:
    with ThreadPoolExecutor(8) as threads:
        verdicts = list(threads.map(lambda n: judge.check(SQUARE, code=RIGHT if n % 2 else "print(1)"), range(40)))
    assert [v.accepted for v in verdicts] == [bool(n % 2) for n in range(40)]


@pytest.mark.parametrize("kind", ["worker", "zygote"])
def test_a_killed_process_is_replaced_and_its_work_done_again(kind: str) -> None:
    with Judge(workers=1) as judge:
        future = judge.submit(SQUARE, code=BUSY)
        time.sleep(0.15)
        [victim, *_] = descendants(kind)
        victim.kill()
        assert future.result().verdict == "accepted"
        assert judge.check(SQUARE, code=RIGHT).accepted


def test_closing_leaves_no_process() -> None:
    before = len(psutil.Process().children(recursive=True))
    judge = Judge(workers=2)
    judge.check(SQUARE, code=RIGHT)
    judge.check(SQUARE, code="import numpy\n" + RIGHT)
    assert len(psutil.Process().children(recursive=True)) > before
    judge.close()
    assert len(psutil.Process().children(recursive=True)) == before
    with pytest.raises(JudgeError, match="closed"):
        judge.submit(SQUARE, code=RIGHT)


def test_leaving_by_an_exception_does_not_wait_for_programs() -> None:
    start = time.monotonic()
    forever = Problem("f", tests=[Test("", "1")], time_limit_s=60)
    with pytest.raises(KeyboardInterrupt), Judge(workers=2) as judge:
        for _ in range(4):
            judge.submit(forever, code="while True: pass")
        raise KeyboardInterrupt
    assert time.monotonic() - start < 30


def test_what_is_dropped_is_killed_or_never_run_and_the_next_is_judged() -> None:
    forever = Problem("f", tests=[Test("", "1")], time_limit_s=600)
    with Judge(workers=1) as judge:
        ends = judge.submit(SQUARE, code=RIGHT)
        runs, waits = (judge.submit(forever, code="while True: pass") for _ in range(2))
        ends.result()
        while not runs.running():
            time.sleep(0.01)
        time.sleep(0.2)  # it is in its box now
        for future in (ends, runs, waits):
            judge.drop(future)
        assert judge.submit(SQUARE, code=RIGHT).result(timeout=60).accepted
        assert ends.result().accepted  # what is there already stays
        assert "dropped" in runs.result().message
        assert waits.cancelled()
        judge.drop(runs)  # twice is no harm
        assert judge.check(SQUARE, code=RIGHT).accepted


def test_what_is_dropped_while_its_worker_is_being_started_never_runs() -> None:
    forever = Problem("f", tests=[Test("", "1")], time_limit_s=600)
    with Judge(workers=1) as judge:
        for _ in range(3):  # each drop ends the worker, and the next candidate finds none
            future = judge.submit(forever, code="while True: pass")
            while not future.running():
                time.sleep(0.001)
            judge.drop(future)
            assert "dropped" in future.result(timeout=60).message
        assert judge.check(SQUARE, code=RIGHT).accepted


def test_dropping_at_any_moment_harms_no_other_candidate() -> None:
    with Judge(workers=2) as judge:
        for n in range(8):
            victim, other = judge.submit(SQUARE, code=RIGHT), judge.submit(SQUARE, code=RIGHT)
            time.sleep(0.003 * n)
            judge.drop(victim)
            assert other.result(timeout=60).accepted


def test_a_killed_user_leaves_no_process() -> None:
    """SIGKILL to the process that owns the pool: the kernel ends workers, zygotes and boxes."""
    script = (
        "from microcoder import Judge, Problem, Test\n"
        "judge = Judge(workers=2)\n"
        "problem = Problem('p', tests=[Test('', '1')], time_limit_s=60)\n"
        "futures = [judge.submit(problem, code='while True: pass') for _ in range(2)]\n"
        "print('running', flush=True)\n"
        "futures[0].result()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None and user.stdout.readline() == "running\n"
        family, deadline = [], time.monotonic() + 30
        while len(family) < 6:  # two workers, two zygotes, two boxes, perhaps their tests
            assert time.monotonic() < deadline, family
            time.sleep(0.1)
            family = psutil.Process(user.pid).children(recursive=True)
        os.kill(user.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive


def test_all_tests_run_when_asked() -> None:
    with Judge(workers=1, stop_at_first_failure=False) as judge:
        verdict = judge.check(SQUARE, code="print(1)")
    assert [t.verdict for t in verdict.tests] == ["wrong_answer", "accepted", "wrong_answer", "wrong_answer"]
    assert verdict.verdict == "wrong_answer" and verdict.message.startswith("test 0")


def test_reuse_finds_out_a_program_that_leans_on_earlier_tests() -> None:
    leaning = "import math\nmath.n = getattr(math, 'n', -1) + 1\nprint(math.n ** 2)"
    with Judge(workers=1, reuse=True) as judge:
        assert judge.check(SQUARE, code=RIGHT).accepted
        assert judge.check(SQUARE, code=leaning).verdict == "wrong_answer"


def test_a_changed_problem_is_judged_as_it_is_now(judge: Judge) -> None:
    problem = Problem("p", tests=[Test("", "1\n")])
    assert judge.check(problem, code="print(1)").accepted
    problem.tests[0].output = "2\n"
    assert judge.check(problem, code="print(1)").verdict == "wrong_answer"


def test_verdicts_repeat_although_sets_and_random_are_used(judge: Judge) -> None:
    code = "import random\nprint({c + 'x' for c in 'qwertyuiop'}, random.random(), hash('a'))"
    problem = Problem("p", tests=[Test("", "?")])
    messages = {judge.check(problem, code=code).message for _ in range(6)}
    assert len(messages) == 1


@pytest.mark.long
def test_the_time_limit_is_cpu_time_also_on_a_loaded_host(judge: Judge) -> None:
    crowd = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
        for _ in range(8 * len(os.sched_getaffinity(0)))
    ]
    try:
        problem = Problem("p", tests=[Test("", "done\n")], time_limit_s=1.0)
        code = "import time\nwhile time.process_time() < 0.5: pass\nprint('done')"
        verdicts = [f.result() for f in [judge.submit(problem, code=code) for _ in range(4)]]
        loop = judge.check(problem, code="while True: pass")
    finally:
        for process in crowd:
            process.kill()
            process.wait()
    assert [v.verdict for v in verdicts] == ["accepted"] * 4
    assert max(v.tests[0].wall_s for v in verdicts) > 1.0  # the host was loaded indeed
    assert loop.verdict == "time_limit" and 1.0 <= loop.cpu_s < 1.5


@pytest.mark.parametrize("reuse", [False, True])
def test_a_test_may_have_less_time_than_its_problem(judge: Judge, reuse: bool) -> None:
    problem = Problem("p", tests=[Test("small\n", "done\n", 0.4), Test("large\n", "done\n")], time_limit_s=4)
    busy = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\nprint('done')"
    with Judge(workers=1, reuse=reuse, time_factor=0.5) as strict:
        loops = strict.check(problem, code="while True: pass")
        slow_on_large = strict.check(problem, code=busy.format("0.6 * (input() == 'large')"))
    assert loops.verdict == "time_limit" and 0.2 <= loops.cpu_s < 0.6 and "limit 0.2 s" in loops.message
    assert slow_on_large.accepted
    assert judge.check(problem, code=busy.format("0.3")).accepted  # with a time_factor of 1


def test_a_test_has_never_more_time_than_its_problem(judge: Judge) -> None:
    verdict = judge.check(Problem("p", tests=[Test("", "", 60.0)], time_limit_s=0.5), code="while True: pass")
    assert verdict.verdict == "time_limit" and verdict.cpu_s < 2


def test_a_problem_that_cannot_be_judged_is_an_internal_error(judge: Judge) -> None:
    problem = Problem("p", kind="function", entry_point="f", tests=[Test("5", "5")])
    verdict = judge.check(problem, code="def f(x): return x")
    assert verdict.verdict == "internal_error" and "list of arguments" in verdict.message


@pytest.mark.parametrize(("options", "hint"), [({"policy": "lenient"}, "robust"), ({"sandbox": "docker"}, "landlock")])
def test_wrong_options_say_what_would_work(options: dict[str, str], hint: str) -> None:
    with pytest.raises(JudgeError, match=hint):
        Judge(workers=1, **options)  # type: ignore[arg-type]


def test_a_solution_needs_code_or_a_completion(judge: Judge) -> None:
    with pytest.raises(JudgeError, match="one of the two"):
        judge.submit(SQUARE)


@pytest.mark.parametrize(
    "problem",
    [
        Problem("p", kind="assert", asserts=["assert f(1) == 1"], setup="def (:"),
        Problem("p", kind="function", entry_point="f", tests=[Test("[1]", "1")], setup="def (:"),
        Problem("p", kind="assert", asserts=["assert f(1) == undefined()"], setup="import nothing_of_the_kind"),
        Problem("p", kind="assert", asserts=["assert True"]),
    ],
)
def test_a_fault_of_the_problem_is_not_the_candidates(judge: Judge, problem: Problem) -> None:
    assert judge.check(problem, code="def f(x): return x").verdict == "internal_error"


def test_a_problem_that_cannot_be_handed_over_is_a_fault_of_its_own_and_not_the_end_of_a_worker():
    broken = Problem("broken", tests=[Test("1\n", "1\n")])
    broken.setup = ["a list"]  # type: ignore[assignment]
    fine = Problem("fine", tests=[Test("1\n", "1\n")])
    with Judge(workers=1) as judge:
        verdicts = [judge.submit(problem, code="print(input())") for problem in (broken, fine, broken, fine)]
        found = [verdict.result(timeout=60).verdict for verdict in verdicts]
    assert found == ["internal_error", "accepted", "internal_error", "accepted"]


def test_a_second_policy_judges_the_same_executions():
    stdin = Problem("s", tests=[Test("1\n", "1.0\n"), Test("2\n", "2\n")])
    function = Problem("f", kind="function", entry_point="f", tests=[Test("[1]", "[1, [2]]")])
    programs = [
        (stdin, "print(input())", ("accepted", "accepted")),  # both compare by value: exact through Decimal
        (stdin, "print(input(), end='  \\n\\n')", ("accepted", "accepted")),
        (stdin, "n = input()\nprint(n if n == '1' else [2][0:1])", ("wrong_answer", "wrong_answer")),
        (stdin, "import sys\nsys.exit(input() == '2')", ("wrong_answer", "wrong_answer")),
        (stdin, "print(", ("compile_error", "compile_error")),
        (stdin, "", ("no_code", "no_code")),
        (function, "def f(n):\n    return [1, (2,)]", ("accepted", "wrong_answer")),  # a tuple within: only == at heart
        (function, "def f(n):\n    return 1 / 0", ("runtime_error", "runtime_error")),
    ]
    with Judge(workers=1, also="exact") as both, Judge(workers=1) as robust, Judge(workers=1, policy="exact") as exact:
        for problem, code, expected in programs:
            verdict = both.check(problem, code=code)
            alone = robust.check(problem, code=code), exact.check(problem, code=code)
            assert (verdict.verdict, verdict.also) == expected == tuple(v.verdict for v in alone), code
            assert (verdict.message, verdict.strategy) == (alone[0].message, alone[0].strategy)
            assert verdict.also_message == (alone[1].message if problem.tests and code else "")
            assert not alone[0].also and "also" not in alone[0].to_dict()


def test_tests_go_on_until_both_policies_have_failed():
    tests = [Test("[1]", "[[1]]"), Test("[2]", "[[2]]"), Test("[3]", "[[3]]")]
    problem = Problem("f", kind="function", entry_point="f", tests=tests)
    with Judge(workers=1, also="exact") as judge:
        verdict = judge.check(problem, code="def f(n):\n    return [(n,)] if n == 1 else 0")  # exact knows no tuples
    assert [(t.verdict, t.also) for t in verdict.tests] == [("accepted", "wrong_answer"), ("wrong_answer",) * 2]
    assert (verdict.verdict, verdict.also) == ("wrong_answer", "wrong_answer")
    assert verdict.message.startswith("test 1") and verdict.also_message.startswith("test 0")


def test_a_limit_of_a_test_leaves_time_to_import_large_packages():
    problem = replace(SQUARE, tests=[Test("2\n", "4\n", time_limit_s=0.1)])
    work = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass\n"
    program = work + "print(int(input()) ** 2)"
    with Judge(workers=1) as judge:
        assert judge.check(problem, code=program).verdict == "time_limit"
        assert judge.check(problem, code=f"if False:\n    import scipy.stats\n{program}").accepted
