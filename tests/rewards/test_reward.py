"""CodeReward: columns and completions in, rewards out; one judge a process; shapes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from faulty_judge import Faulty
from serve_process import served, until

import microcoder as mc
from microcoder.config import ConfigError
from microcoder.data.dataset import for_trl, for_verl
from microcoder.files import write_problems
from microcoder.judge import Judge, JudgeError, pool
from microcoder.rewards import AsyncCodeReward, CodeReward
from microcoder.rewards.shared import options_of, shared_judge
from microcoder.schema import SchemaError

ONE = {"workers": 1}
DOUBLE = mc.Problem("double", tests=[mc.Test(str(n), str(2 * n)) for n in range(4)])
NEXT = mc.Problem("next", kind="function", entry_point="f", tests=[mc.Test("[1]", "2"), mc.Test("[2]", "3")])
RIGHT = "Here:\n```python\nprint(2 * int(input()))\n```"
ZERO = "```python\nprint(0)\n```"  # right for the first test only
BIG = "```python\nn = int(input())\nprint(2 * n if n > 1 else -1)\n```"  # right for the last two
FUNCTION = "```python\ndef f(n): return n + 1\n```"


def columns(layout, *problems):
    rows = [layout(problem, n) for n, problem in enumerate(problems)]
    return {name: [row[name] for row in rows] for name in rows[0] if name != "prompt"}


def test_problems_by_id_from_a_file(tmp_path):
    write_problems(tmp_path / "p.parquet", [DOUBLE, NEXT])
    reward = CodeReward(tmp_path / "p.parquet", judge=ONE)
    assert reward([RIGHT, ZERO, FUNCTION, "no code"], id=["double", "double", "next", "next"]) == [1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("layout", [for_trl, for_verl])
def test_the_columns_that_data_run_writes_are_enough(layout):
    given = columns(layout, DOUBLE, DOUBLE, NEXT)
    assert CodeReward(judge=ONE)(completions=[RIGHT, ZERO, FUNCTION], prompts=[[], [], []], **given) == [1.0, 0.0, 1.0]


def test_of_chat_messages_the_last_of_the_assistant_counts():
    chat = [
        {"role": "assistant", "content": ZERO},
        {"role": "user", "content": "no"},
        {"role": "assistant", "content": [{"type": "text", "text": RIGHT}]},
    ]
    assert CodeReward([DOUBLE], judge=ONE)([chat, chat[:2]], id=["double", "double"]) == [1.0, 0.0]


def test_a_fault_of_the_judge_is_no_reward_and_equal_completions_are_judged_once():
    judge = Faulty()
    assert CodeReward([DOUBLE], judge=judge, shape="share")([RIGHT, RIGHT, ZERO], id=["double"] * 3) == [None] * 3
    assert [solution.completion for solution in judge.asked] == [RIGHT, ZERO]


@pytest.mark.parametrize(
    ("shape", "right", "zero", "big"),
    [
        ("all", 1.0, 0.0, 0.0),
        ("share", 1.0, 0.25, 0.5),
        ("prefix", 1.0, 0.25, 0.0),
        ("first:1", 1.0, 1.0, 0.0),
        ("first:3", 1.0, 0.0, 0.0),
        ("first:3:share", 1.0, pytest.approx(1 / 3), pytest.approx(1 / 3)),
        ("first:9", 1.0, 0.0, 0.0),
    ],
)
def test_shapes(shape, right, zero, big):
    reward = CodeReward([DOUBLE], judge=ONE, shape=shape)
    assert reward([RIGHT, ZERO, BIG, "nothing"], id=["double"] * 4) == [right, zero, big, 0.0]


def test_a_prefix_ends_at_the_first_failure_though_an_open_judge_went_on():
    with Judge(workers=1, stop_at_first_failure=False) as judge:
        assert CodeReward([DOUBLE], judge=judge, shape="prefix")([ZERO, BIG], id=["double"] * 2) == [0.25, 0.0]
        assert CodeReward([DOUBLE], judge=judge, shape="share")([BIG], id=["double"]) == [0.5]


def test_an_id_without_its_source_is_told_the_whole_one(tmp_path):
    path = tmp_path / "problems.jsonl"
    path.write_text(json.dumps({"id": "contest/abc374_a", "tests": [{"input": "1", "output": "1"}]}))
    with pytest.raises(SchemaError, match="not among the 1 given; did you mean 'contest/abc374_a'"):
        CodeReward(path)(["no code"], id=["abc374_a"])


CHECK = "def check(candidate):\n" + "".join(f"    assert candidate({n}) == {n * n}\n" for n in range(4))
SQUARE = mc.Problem("square", kind="assert", entry_point="square", asserts=[CHECK])
SQUARES = "```python\ndef square(n): return n * n if n < 2 else 0\n```"  # right for the first two tests
STACK = mc.Problem(
    "stack",
    kind="assert",
    asserts=["stack = Stack()", "stack.push(1)", "assert stack.pop() == 1", "assert stack.pop() is None"],
)
ONES = "```python\nclass Stack:\n    def push(self, n): ...\n    def pop(self): return 1\n```"


@pytest.mark.parametrize("shape", ["share", "prefix"])
def test_each_assert_of_a_check_function_is_a_test_also_where_a_program_stops_before_it(shape):
    assert CodeReward([SQUARE], judge=ONE, shape=shape)([SQUARES], id=["square"]) == [0.5]


@pytest.mark.parametrize(
    ("shape", "reward"),
    [
        ("share", 0.5),
        ("prefix", 0.5),
        ("first:1", 1.0),
        ("first:2", 0.0),
        ("first:1:share", 1.0),
        ("first:2:share", 0.5),
    ],
)
def test_what_prepares_something_for_an_assert_is_no_test(shape, reward):
    wrong = ONES.replace("return 1", "return 7")
    assert CodeReward([STACK], judge=ONE, shape=shape)([ONES, wrong], id=["stack"] * 2) == [reward, 0.0]


def test_asserts_that_are_no_python_end_no_training():
    broken = mc.Problem("broken", kind="assert", entry_point="f", asserts=["assert f(1) == 2", "assert f(1) =="])
    for shape, reward in (("all", None), ("prefix", None), ("first:1", 1.0)):
        given = CodeReward([broken], judge=ONE, shape=shape)([FUNCTION, "no code"], id=["broken"] * 2)
        assert given == [reward, given[1]] and given[1] in (None, 0.0)


def test_a_completion_may_be_missing_or_a_single_message_and_an_id_may_stand_in_extra_info():
    message = {"role": "assistant", "content": RIGHT}
    reward = CodeReward([DOUBLE], judge=ONE)
    about = [{"id": "double"}] * 3
    assert reward([None, message, RIGHT], id=["double", "double", None], extra_info=about) == [0.0, 1.0, 1.0]
    assert CodeReward(judge=ONE)([RIGHT], reward_model=[json.dumps(DOUBLE.to_dict())]) == [1.0]


@pytest.mark.parametrize(
    "shape", ["al", "first", "first:", "first:0", "first:-1", "first:2:", "first:2:all", "share:2"]
)
def test_a_shape_that_does_not_exist_is_named(shape):
    with pytest.raises(ValueError, match="shape is"):
        CodeReward(shape=shape)


@pytest.mark.parametrize(
    ("problems", "given", "message"),
    [
        (None, {}, "no column tells the problem"),
        (None, {"id": ["x"]}, "give a file of problems"),
        ([DOUBLE], {"id": ["x"]}, "not among the 1 given"),
        (None, {"problem": ["what is 2 + 2?"]}, "is not: 'what is 2"),
        (None, {"problem": ["[1]"]}, "JSON object"),
        (None, {"problem": "text"}, "a list with a value for each of the 1"),
        (None, {"problem": ["{}", "{}"]}, "a list with a value for each of the 1"),
    ],
)
def test_a_problem_that_cannot_be_found_says_what_to_give(problems, given, message):
    with pytest.raises(SchemaError, match=message):
        CodeReward(problems, judge=Faulty())([RIGHT], **given)


def test_a_wrong_setting_of_the_judge_is_named_at_once():
    with pytest.raises(ConfigError, match=r"judge\.on"):
        CodeReward(judge="htp://x")
    with pytest.raises(ConfigError, match="did you mean"):
        CodeReward(judge={"worker": 2})


def test_shares_of_verdicts_are_logged_always_all_of_them():
    metrics, extra = {}, {}
    reward = CodeReward([DOUBLE], judge=ONE, name="tests")
    reward([RIGHT, ZERO], id=["double"] * 2, log_metric=metrics.__setitem__, log_extra=extra.__setitem__)
    assert metrics["tests/accepted"] == metrics["tests/wrong_answer"] == 0.5
    assert metrics["tests/internal_error"] == 0 and len(metrics) == 9
    assert extra == {"tests_verdict": ["accepted", "wrong_answer"]}


def test_coroutines_give_the_same_rewards():
    reward = AsyncCodeReward([DOUBLE], judge=ONE, shape="share")

    async def both():
        return await asyncio.gather(*(reward([RIGHT, ZERO], id=["double"] * 2) for _ in range(2)))

    assert asyncio.run(both()) == [[1.0, 0.25]] * 2


# --- one judge a process


def test_all_rewards_with_the_same_settings_share_a_judge_in_all_threads():
    rewards = [pickle.loads(pickle.dumps(CodeReward([DOUBLE], judge=ONE))) for _ in range(4)]
    start = threading.Barrier(4)

    def judge(reward):
        start.wait()
        return reward([RIGHT], id=["double"]), reward.opened()

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(judge, rewards))
    assert [reward for reward, _ in found] == [[1.0]] * 4
    assert len({id(judge) for _, judge in found}) == 1
    assert CodeReward(judge=ONE, shape="share").opened() is not found[0][1]  # it may not stop at a failure


def test_a_forked_process_has_a_judge_of_its_own_and_the_parents_goes_on():
    reward = CodeReward([DOUBLE], judge=ONE)
    assert reward([RIGHT], id=["double"]) == [1.0]
    with multiprocessing.get_context("fork").Pool(2) as workers:
        asked = [workers.apply_async(reward, ([RIGHT, ZERO],), {"id": ["double"] * 2}) for _ in range(4)]
        assert [one.get(60) for one in asked] == [[1.0, 0.0]] * 4
    assert reward([RIGHT, ZERO], id=["double"] * 2) == [1.0, 0.0]


@pytest.mark.parametrize("served_one", [False, True])
def test_the_parents_judge_in_a_forked_process_says_so_instead_of_hanging(served_one):
    with contextlib.ExitStack() as stack:
        on = {"on": stack.enter_context(served(workers=1)).url} if served_one else ONE
        judge = shared_judge(options_of(on))
        assert judge.check(DOUBLE, RIGHT).accepted
        workers = stack.enter_context(multiprocessing.get_context("fork").Pool(1, initializer=_keep, initargs=(judge,)))
        assert "belongs to process" in workers.apply(_ask)


def _keep(judge):
    global KEPT
    KEPT = judge


def _ask():
    try:
        KEPT.submit(DOUBLE, RIGHT)
    except JudgeError as error:
        KEPT.close()  # does not wait for threads that are not there
        return str(error)


def test_a_forked_process_keeps_no_socket_of_a_worker_which_ends_when_the_last_is_closed():
    with mc.Judge(workers=1) as judge:
        with multiprocessing.get_context("fork").Pool(1) as workers:
            assert workers.apply(_sockets) == 0
        assert _sockets() > 0 and judge.check(DOUBLE, RIGHT).accepted


def _sockets():
    return sum(sock.fileno() != -1 for sock in pool._SOCKETS)


@pytest.mark.parametrize("kind", ["CodeReward", "AsyncCodeReward"])
def test_ctrl_c_while_a_service_judges_ends_the_program(kind):
    """The interpreter waits for the threads that wait for the service."""
    program = (
        f"import asyncio, inspect, sys; from microcoder.rewards import {kind}; import microcoder as mc\n"
        "problem = mc.Problem('a', tests=[mc.Test('', '1')], time_limit_s=500)\n"
        f"asked = {kind}([problem], judge=sys.argv[1])(['```python\\nwhile True: pass\\n```'], id=['a'])\n"
        "asyncio.run(asked) if inspect.isawaitable(asked) else None\n"
    )
    with served(workers=1) as service:
        process = subprocess.Popen([sys.executable, "-c", program, service.url], stderr=subprocess.DEVNULL)
        try:
            until(lambda: service.metric("running") == 1)
            process.send_signal(signal.SIGINT)
            process.wait(30)
        finally:
            process.kill()
            process.wait()
        until(lambda: service.metric("running") == 0)


def test_the_judges_are_closed_when_a_program_ends(tmp_path):
    program = (
        "from microcoder.rewards import CodeReward; import microcoder as mc, sys\n"
        "problem = mc.Problem('a', tests=[mc.Test('1', '1')])\n"
        "print(CodeReward([problem], judge={'workers': 1})(['```python\\nprint(input())\\n```'], id=['a']))\n"
        "heavy = {'torch', 'trl', 'datasets', 'transformers', 'verifiers', 'verl', 'ray'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("[1.0]\n", "", 0)


def test_a_judge_over_http_is_one_argument():
    with served(workers=1) as service:
        reward = CodeReward([DOUBLE], judge=service.url, shape="share")
        assert reward([RIGHT, ZERO], id=["double"] * 2) == [1.0, 0.25]


def test_a_problem_is_read_from_its_fields_too():
    fields = json.loads(json.dumps(DOUBLE.to_dict()))
    assert CodeReward(judge=ONE)([ZERO], problem=[fields]) == [0.0]
