"""A language model behind an address: what passes is tried again, what was answered is never asked for again."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from chat_server import chat_server, completion

from microcoder.data.endpoint import Endpoint, EndpointError, NoAnswer, Reply

HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
def server():
    with chat_server() as running:
        yield running


def endpoint(server, **settings):
    return Endpoint(server.url, "tiny", **{"key_env": "", "max_retries": 1, "timeout_s": 5.0, **settings})


def test_a_question_goes_out_as_it_was_put_and_the_answer_comes_back(server, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "k-123")
    answer = endpoint(server, key_env="SOME_KEY").ask(HELLO, temperature=0.5, max_tokens=7)
    assert answer == "an answer"
    [asked] = server.asked
    assert (asked["model"], asked["messages"], asked["temperature"], asked["max_tokens"]) == ("tiny", HELLO, 0.5, 7)
    assert (asked["key"], asked["path"]) == ("Bearer k-123", "/v1/chat/completions")


def test_an_answer_is_kept_for_whoever_asks_the_same_later(server, tmp_path):
    server.replies = ["first", "second"]
    assert endpoint(server, cache=tmp_path).ask(HELLO) == "first"
    assert endpoint(server, cache=tmp_path).ask(HELLO) == "first"
    assert len(server.asked) == 1


@pytest.mark.parametrize("change", [{"key": "again"}, {"temperature": 1.0}, {"max_tokens": 9}])
def test_a_question_that_differs_in_anything_is_asked_anew(server, tmp_path, change):
    server.replies = ["first", "second"]
    asks = endpoint(server, cache=tmp_path)
    assert [asks.ask(HELLO), asks.ask(HELLO, **change), asks.ask(HELLO)] == ["first", "second", "first"]


def test_another_model_gives_its_own_answers(server, tmp_path):
    server.replies = ["first", "second"]
    one, other = (Endpoint(server.url, model, key_env="", cache=tmp_path) for model in ("one", "other"))
    assert [one.ask(HELLO), other.ask(HELLO)] == ["first", "second"]


def test_a_damaged_answer_in_the_cache_is_asked_for_again(server, tmp_path):
    server.replies = ["first", "second"]
    endpoint(server, cache=tmp_path).ask(HELLO)
    [kept] = tmp_path.rglob("*.json")
    kept.write_bytes(kept.read_bytes()[:5])
    assert endpoint(server, cache=tmp_path).ask(HELLO) == "second"
    assert endpoint(server, cache=tmp_path).ask(HELLO) == "second"


@pytest.mark.parametrize("trouble", [500, 503, 429, 408, b"<html>busy</html>", {"choices": []}, {"ok": True}, b"[1]"])
def test_what_may_pass_is_tried_again(server, tmp_path, trouble):
    server.replies = [trouble, "an answer"]
    assert endpoint(server, cache=tmp_path).ask(HELLO) == "an answer"
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("trouble", "direction"),
    [
        (500, "after 2 attempts"),
        (429, "lower concurrency"),
        (b"<html>busy</html>", "is base_url right"),
        ({"ok": True}, "is base_url right"),
    ],
)
def test_what_does_not_pass_is_an_error_with_directions_and_nothing_is_kept(server, tmp_path, trouble, direction):
    server.replies = [trouble]
    with pytest.raises(EndpointError, match=direction) as raised:
        endpoint(server, cache=tmp_path).ask(HELLO)
    assert not isinstance(raised.value, NoAnswer)
    assert len(server.asked) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_silent_endpoint_is_given_up_after_its_time(server):
    server.replies = [3.0]
    with pytest.raises(EndpointError, match="timeout_s"):
        endpoint(server, timeout_s=0.1, max_retries=0).ask(HELLO)


def test_an_address_where_nobody_listens_is_named():
    with chat_server() as gone:
        pass
    with pytest.raises(EndpointError, match=f"{gone.url} cannot be reached"):
        endpoint(gone, max_retries=0).ask(HELLO)


@pytest.mark.parametrize(("status", "direction"), [(401, "refuses the key in SOME_KEY"), (404, "base_url")])
def test_a_wrong_key_or_address_is_not_tried_again(server, monkeypatch, status, direction):
    monkeypatch.setenv("SOME_KEY", "k")
    server.replies = [status]
    with pytest.raises(EndpointError, match=direction):
        endpoint(server, key_env="SOME_KEY").ask(HELLO)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (400, "said the server with 400"),
        (completion("only half of", "length"), "max_tokens=4096"),
        (completion(None, "content_filter"), "content_filter"),
        (completion(" "), "empty"),
    ],
)
def test_a_question_that_gets_no_whole_answer_is_told_apart_from_an_endpoint_that_fails(server, tmp_path, reply, said):
    server.replies = [reply, "an answer"]
    asks = endpoint(server, cache=tmp_path)
    with pytest.raises(NoAnswer, match=said):
        asks.ask(HELLO)
    assert asks.ask(HELLO) == "an answer"


def test_a_missing_key_is_named_before_anything_is_sent(server, monkeypatch):
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(EndpointError, match="SOME_KEY holds no key"):
        endpoint(server, key_env="SOME_KEY").ask(HELLO)
    assert server.asked == []


def test_no_more_questions_are_under_way_than_allowed(server):
    server.replies = [0.05]
    asks = endpoint(server, concurrency=2)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda n: asks.ask(HELLO, key=str(n)), range(6)))
    assert answers == ["late"] * 6
    assert server.most_busy <= 2


def test_it_travels_to_another_process_without_the_key(server, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "k-secret")
    asks = endpoint(server, key_env="SOME_KEY")
    asks.ask(HELLO)
    carried = pickle.dumps(asks)
    assert b"k-secret" not in carried
    assert pickle.loads(carried).ask(HELLO) == "an answer"


def test_a_cache_that_cannot_be_written_says_so(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EndpointError, match="another cache"):
        endpoint(server, cache=tmp_path / "file").ask(HELLO)


# --- whatever the model writes


def complete(server, **changes):
    return endpoint(server).complete(HELLO, **{"temperature": 0.2, "max_tokens": 7, **changes})


def test_a_completion_is_asked_for_with_all_of_its_settings_and_with_no_others(server):
    complete(server)
    complete(server, top_p=0.9, seed=5, logprobs=True)
    plain, full = ({k: v for k, v in asked.items() if k not in ("key", "path")} for asked in server.asked)
    assert plain == {"model": "tiny", "messages": HELLO, "temperature": 0.2, "max_tokens": 7, "top_p": 1.0}
    assert full == {**plain, "top_p": 0.9, "seed": 5, "logprobs": True}


@pytest.mark.parametrize(
    ("sent", "reply"),
    [
        (completion("whole", tokens=2), Reply("whole", 2, False, "stop")),
        (completion("whole"), Reply("whole", None, False, "stop")),
        (completion("only half of", "length", 7), Reply("only half of", 7, True, "length")),
        (completion("", tokens=1), Reply("", 1, False, "stop")),
        (completion(None, "content_filter", 0), Reply("", 0, False, "content_filter")),
        (completion("42", tokens=9, reasoning="six times seven"), Reply("42", 9, False, "stop")),
        (completion(None, "length", 7, reasoning="six times"), Reply("", 7, True, "length")),
        (completion("é", tokens=2, pieces=[b"\xc3", b"\xa9"]), Reply("é", 2, False, "stop", (b"\xc3", b"\xa9"))),
        (completion("é", tokens=1, pieces=["é"]), Reply("é", 1, False, "stop", (b"\xc3\xa9",))),
    ],
)
def test_a_reply_that_is_cut_or_empty_is_a_reply_and_reasoning_is_no_part_of_its_text(server, sent, reply):
    server.replies = [sent]
    assert complete(server) == reply


def test_a_completion_is_tried_again_like_an_answer_but_never_kept(server, tmp_path):
    server.replies = [503, {"choices": []}, "one", "two"]
    asks = endpoint(server, cache=tmp_path)
    settings = {"temperature": 0.2, "max_tokens": 7}
    assert [asks.complete(HELLO, **settings).text for _ in range(2)] == ["one", "two"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sent", "kind", "said"),
    [
        (400, NoAnswer, "said the server with 400"),
        (401, EndpointError, "refuses the key"),
        (completion([{"type": "text", "text": "42"}]), NoAnswer, "answers in parts"),  # not a reply of no characters
    ],
)
def test_a_question_without_a_completion_is_an_error(server, sent, kind, said):
    server.replies = [sent]
    with pytest.raises(EndpointError, match=said) as raised:
        complete(server)
    assert type(raised.value) is kind
