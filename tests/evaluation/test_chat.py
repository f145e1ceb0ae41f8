"""Samples through a server: every try asked for once, no sample invented or dropped, and nothing left running."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from chat_server import chat_server, completion

from microcoder.data.endpoint import Endpoint
from microcoder.evaluation.chat import ChatModel, fitting, request_seed
from microcoder.evaluation.suite import EvaluationError, Sample
from microcoder.prompts import messages
from microcoder.schema import Problem, Test

PROBLEMS = [Problem(name, statement=f"Solve {name}.", tests=[Test("1", "1")]) for name in ("add", "sort", "sum")]
WORK = [(n, k) for n in range(3) for k in range(2)]


@pytest.fixture
def server():
    with chat_server() as running:
        yield running


def samples(server, work=WORK, style="code", concurrency=4, **changes):
    endpoint = Endpoint(server.url, "tiny", key_env="", max_retries=0, timeout_s=5.0, concurrency=64)
    settings = {"temperature": 0.2, "limits": [64], "top_p": 0.9, "seed": 0, **changes}
    return ChatModel(endpoint, concurrency).samples(work, PROBLEMS, style, **settings)


def named(body):
    """The problem that a request asks for."""
    return next(p.id for p in PROBLEMS if f"Solve {p.id}." in body["messages"][-1]["content"])


# --- what is asked


def test_every_try_is_asked_for_once_and_comes_back_as_the_sample_of_its_problem(server):
    server.replies = [lambda body: completion(f"{named(body)} {body['seed']}", tokens=3)]
    found = {sample.id: sample for sample in samples(server)}
    wanted = [Sample(p.id, k, f"{p.id} {request_seed(0, p.id, k)}", 3) for p in PROBLEMS for k in range(2)]
    assert found == {sample.id: sample for sample in wanted}
    assert len(server.asked) == 6


@pytest.mark.parametrize("style", ["code", "livecodebench"])
def test_a_request_is_the_prompt_of_the_suite_with_the_settings_of_the_bench(server, style):
    list(samples(server, [(1, 0)], style))
    [asked] = server.asked
    assert asked["messages"] == messages(PROBLEMS[1], style)
    assert {k: asked[k] for k in ("temperature", "top_p", "max_tokens")} == {
        "temperature": 0.2, "top_p": 0.9, "max_tokens": 64,
    }  # fmt: skip
    assert "logprobs" not in asked  # one limit needs no tokens, and not every server shows them


def test_seeds_differ_with_everything_and_are_the_same_on_every_machine():
    seeds = [request_seed(*one) for one in [(0, "a", 0), (0, "a", 1), (0, "b", 0), (1, "a", 0), (1, "a 0", 0)]]
    assert len(set(seeds)) == 5
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seeds[0] == 1128057109


def test_a_server_that_knows_no_seed_is_sent_none(server):
    list(samples(server, [(0, 0)], seed=None))
    assert "seed" not in server.asked[0]


def test_a_cut_and_an_empty_reply_are_samples(server):
    server.replies = [completion("def f(", "length", 64), completion(None, tokens=0)]
    assert list(samples(server, [(0, 0), (0, 1)], concurrency=1)) == [
        Sample("add", 0, "def f(", 64, truncated=True),
        Sample("add", 1, "", 0),
    ]


# --- how it is asked


def test_no_more_requests_are_under_way_than_allowed_and_as_many_as_that(server):
    together = threading.Barrier(3, timeout=5)  # broken, and the test with it, unless three meet

    def reply(body):
        together.wait()
        return "an answer"

    server.replies = [reply]
    assert len(list(samples(server, WORK, concurrency=3))) == 6
    assert server.most_busy == 3


def test_a_sample_is_handed_out_while_others_are_still_being_written(server):
    handed_out = threading.Event()

    def reply(body):
        if named(body) == "add" and not handed_out.wait(5):
            return 500
        return "an answer"

    server.replies = [reply]
    found = samples(server, [(0, 0), (1, 0)])
    assert next(found).problem_id == "sort"
    handed_out.set()
    assert [sample.problem_id for sample in found] == ["add"]


def test_whoever_takes_no_samples_lets_no_requests_pile_up(server):
    found = samples(server, [(0, k) for k in range(50)], concurrency=2)
    next(found)
    deadline = time.monotonic() + 0.2
    while time.monotonic() < deadline and len(server.asked) <= 4:
        time.sleep(0.01)
    assert len(server.asked) <= 4  # two at first, and one for each that was finished
    found.close()


@pytest.mark.parametrize("end", ["close", "failure"])
def test_nothing_is_left_running_when_it_ends_early(server, end):
    before = set(threading.enumerate())
    server.replies = ["an answer", 401 if end == "failure" else 0.05]
    found = samples(server, [(0, k) for k in range(50)], concurrency=2)
    if end == "close":
        next(found)
        found.close()
    else:
        with pytest.raises(EvaluationError, match="refuses the key"):
            list(found)
    ours = [thread for thread in threading.enumerate() if thread not in before and thread.name == "request"]
    for thread in ours:
        thread.join(5)
    assert not any(thread.is_alive() for thread in ours)
    assert server.most_busy <= 2 and len(server.asked) <= 4


def test_ctrl_c_waits_for_no_server_and_keeps_what_has_come(server):
    answer = threading.Event()

    def reply(body):
        if named(body) != "add":
            answer.wait(60)
        return "an answer"

    server.replies = [reply]
    taken = []
    stop = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    stop.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            for sample in samples(server, concurrency=4):
                taken.append(sample)
        assert not answer.is_set() and sorted(sample.id for sample in taken) == ["add#0", "add#1"]
    finally:
        answer.set()


# --- when it fails


def test_a_refused_question_ends_the_bench_by_name_after_what_was_answered(server):
    server.replies = [lambda body: 400 if named(body) == "sort" else "an answer"]
    taken = []
    with pytest.raises(EvaluationError, match=r"problem 'sort' has no answer.*with 400.*lower --limit") as raised:
        for sample in samples(server, concurrency=len(WORK)):
            taken.append(sample.id)
    assert sorted(taken) == ["add#0", "add#1", "sum#0", "sum#1"]
    assert "logprobs" not in str(raised.value)


@pytest.mark.parametrize(("trouble", "direction"), [(401, "refuses the key"), (404, "base_url"), (500, "fails")])
def test_a_server_that_cannot_be_used_is_an_error_with_directions_and_nothing_new_is_asked(server, trouble, direction):
    server.replies = [trouble]
    with pytest.raises(EvaluationError, match=direction):
        list(samples(server, concurrency=1))
    assert len(server.asked) == 1


def test_an_address_where_nobody_listens_is_an_error_of_the_bench():
    with chat_server() as gone:
        pass
    with pytest.raises(EvaluationError, match="cannot be reached"):
        list(samples(gone))


# --- several limits


def test_several_limits_are_one_request_with_the_largest_and_the_cuts_are_read_off_the_tokens(server):
    pieces = ["def", " f", "():", "\n", "  pass", "<|end|>"]
    server.replies = [completion("def f():\n  pass", tokens=6, pieces=pieces)]
    [sample] = samples(server, [(0, 0)], limits=[2, 4, 6, 8])
    assert sample == Sample("add", 0, "def f():\n  pass", 6, cuts={"2": 5, "4": 9})
    assert [(asked["max_tokens"], asked["logprobs"]) for asked in server.asked] == [(8, True)]


def test_tokens_that_the_server_does_not_count_are_counted_here(server):
    server.replies = [completion("abc", "length", pieces=["a", "b", "c"])]
    assert list(samples(server, [(0, 0)], limits=[2, 3])) == [Sample("add", 0, "abc", 3, truncated=True, cuts={"2": 2})]


@pytest.mark.parametrize(
    "reply",
    [
        completion("abc", tokens=3),  # none shown
        completion("abc", tokens=3, pieces=[]),
        completion("abc", tokens=3, pieces=["x", "y", "z"]),  # those of something else
        completion("abc", tokens=300, pieces=["a", "b", "c"]),  # most were hidden reasoning, which a limit counts too
    ],
)
def test_several_limits_without_the_tokens_of_the_answer_are_refused(server, reply):
    server.replies = [reply]
    with pytest.raises(EvaluationError, match=r"run once for each: --limit 2"):
        list(samples(server, limits=[4, 2]))


def test_a_server_that_refuses_logprobs_is_told_from_one_that_refuses_the_question(server):
    server.replies = [400]
    with pytest.raises(EvaluationError, match=r"logprobs.*run once for each limit"):
        list(samples(server, limits=[2, 4]))


@pytest.mark.parametrize(
    ("text", "pieces", "wanted"),
    [
        ("abcd", [b"ab", b"c", b"d"], [0, 2, 3, 4, 4]),
        ("abc", [b"ab", b"c", b"<|end|>"], [0, 2, 3, 3]),
        ("i", [b"i", b"<|im_end|>"], [0, 1, 1]),  # not the i of the end token
        ("ok", [b"<think>", b"hm", b"</think>", b"\n\n", b"o", b"k"], [0, 0, 0, 0, 0, 1, 2]),
        ("", [b"<think>", b"hm"], [0, 0, 0]),
        ("aéb", [b"a", b"\xc3", b"\xa9", b"b"], [0, 1, 1, 2, 3]),  # half a character does not count
        ("aéb", [b"a", b"\xef\xbf\xbd", b"\xef\xbf\xbd", b"b"], [0, 1, 1, 1, 3]),  # halves shown as replacements
        ("abc", [b"a", b"x", b"c"], [None, None, None, None]),
        ("aéb", [b"a", b"\xef\xbf\xbd", b"c"], [None, None, None, None]),
    ],
)
def test_what_fits_in_a_limit_is_a_prefix_of_the_text(text, pieces, wanted):
    assert [fitting(text, pieces, limit) for limit in range(len(wanted))] == wanted


def test_arguments_of_the_chat_template_are_sent_only_if_there_are_any(server):
    list(samples(server, [(1, 0)], chat={"enable_thinking": False}))
    list(samples(server, [(1, 0)]))
    assert server.asked[0]["chat_template_kwargs"] == {"enable_thinking": False}
    assert "chat_template_kwargs" not in server.asked[1]
