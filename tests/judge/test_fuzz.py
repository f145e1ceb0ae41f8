"""benchmarks/fuzz: it runs from a fixed seed without a finding, and what it ever found stays mended.

Each file of tests/fuzz is a case that once showed something: a stall, an exception, an `internal_error`. `found` says
what. A case that is late is tried twice more, since a busy machine is late at times and a hole is always.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

CORPUS = sorted(Path(__file__).parents[1].glob("fuzz/*.json"))

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="what is fuzzed is Linux's sandbox"),
    pytest.mark.long,
]


@pytest.fixture(scope="module")
def fuzz():
    from benchmarks.fuzz import fuzz

    return fuzz


@pytest.fixture(scope="module")
def channel(fuzz):
    runner = fuzz.Channel()
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def http(fuzz):
    service = fuzz.http.Service()
    yield fuzz.http.Caller(service)
    service.close()


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_what_was_found_is_mended(file, fuzz, request):
    case = json.loads(file.read_text())
    runner = request.getfixturevalue("http" if case["target"] == "http" else "channel")
    for _ in range(3):
        try:
            found = runner.finding(case, runner.run(case))
        except fuzz.Malformed as reason:  # a layer that does not work here
            pytest.skip(str(reason))
        if found[0] not in ("slow", "stall", "next late"):
            break
    else:
        if os.getloadavg()[0] > 2 * (os.cpu_count() or 1):
            pytest.skip("other work keeps this machine busy: nothing can be said of what is late")
    assert found == ("", "")


@pytest.mark.parametrize("target", ["channel", "http"])
def test_a_few_seconds_from_a_fixed_seed_find_nothing(target, fuzz):
    tally = fuzz.fuzzed(target, seconds=4, seed=1, workers=2)
    assert sum(tally.cases.values()) > 3
    assert tally.found == {}


def test_every_case_of_the_corpus_can_be_built(fuzz):
    for file in CORPUS:
        case = json.loads(file.read_text())
        assert file.stat().st_size < 4000
        assert case["found"]
        assert fuzz.described(case)
        if case["target"] == "box":
            assert fuzz.boxes.program(case)
        for recipe in [case[name] for name in ("got", "expected") if name in case]:
            assert fuzz.channel.expand(recipe, fuzz.channel.LIMITS[case["target"]])


def test_an_exception_in_the_comparison_is_found(fuzz, monkeypatch):
    from microcoder.judge.sandbox import values

    case = {
        "target": "value",
        "policy": "robust",
        "compare": {},
        "accepts": False,
        "got": ['{"r":1}'],
        "expected": ["2"],
    }
    channel = fuzz.channel
    assert channel.finding(case, channel.examined(case)) == ("", "")
    monkeypatch.setattr(values, "answer", lambda output: 1 // 0)
    kind, words = channel.finding(case, channel.examined(case))
    assert kind == "exception" and words.startswith("ZeroDivisionError")


def test_a_wrong_answer_that_is_accepted_is_found(fuzz, monkeypatch):
    from microcoder.judge.sandbox import values

    case = {
        "target": "value",
        "policy": "robust",
        "compare": {},
        "accepts": False,
        "got": ['{"r":1}'],
        "expected": ["2"],
    }
    monkeypatch.setattr(values, "answer", lambda output: {"r": 2})
    assert fuzz.channel.finding(case, fuzz.channel.examined(case))[0] == "accepted"


def test_a_cell_that_dies_is_a_finding_and_the_next_case_has_a_new_one(fuzz):
    case = {"target": "completion", "got": ["```"], "accepts": True}
    cell = fuzz.channel.Cell()
    try:
        assert fuzz.channel.finding(case, cell.run(case)) == ("", "")
        cell.process.kill()
        assert fuzz.channel.finding(case, cell.run(case)) == ("exception", "Crash: the process died")
        assert fuzz.channel.finding(case, cell.run(case)) == ("", "")
    finally:
        cell.close()


def test_a_finding_is_made_small(fuzz):
    from benchmarks.fuzz.recipes import Malformed, expand, shrunk

    def shows(case):
        try:
            return b"needle" in expand(case["got"], 10**6)
        except Malformed:
            return False

    case = {"got": ["hay", ["straw ", 5000], ["needle, ", 40], "hay", [["%d ", 9, 0, 1], 7]]}
    assert shrunk(case, ("got",), shows) == {"got": [["needle", 1]]}


def test_growth_is_told_from_noise_and_from_a_step(fuzz):
    steady = [{"MB": 100.0 + n % 7, "processes": 4.0, "descriptors": 30.0, "files": 0.0} for n in range(40)]
    assert not any(grew for _, grew in fuzz.growth(steady).values())
    step = [{**row, "MB": row["MB"] + 90 * (n > 25)} for n, row in enumerate(steady)]
    assert not any(grew for _, grew in fuzz.growth(step).values())
    leaking = [{**row, "MB": row["MB"] + 2 * n, "descriptors": 30.0 + n} for n, row in enumerate(steady)]
    found = fuzz.growth(leaking)
    assert [found[name][1] for name in ("MB", "processes", "descriptors", "files")] == [True, False, True, False]


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ({}, ""),
        ({"verdict": "internal_error"}, "internal_error"),
        ({"verdict": "accepted"}, "accepted"),
        ({"wall_s": 9.0}, "stall"),
        ({"next": "wrong_answer"}, "next refused"),
        ({"next_s": 3.0}, "next late"),
    ],
)
def test_what_counts_against_a_verdict(result, kind, fuzz):
    fine = {
        "verdict": "wrong_answer",
        "message": "",
        "wall_s": 0.1,
        "next": "accepted",
        "next_message": "",
        "next_s": 0.1,
    }
    case = {"target": "box", "kind": "function", "reuse": False}
    assert fuzz.boxes.finding(case, {**fine, **result})[0] == kind


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ({}, ""),
        ({"statuses": [200, 503]}, ""),
        ({"statuses": [200, 500]}, "status"),
        ({"complaints": "Traceback"}, "stderr"),
        ({"wrong": ["accepted expected"]}, "honest client"),
        ({"faults": 1}, "internal_error"),
        ({"stall_s": 3.0}, "stall"),
        ({"alive": False}, "died"),
    ],
)
def test_what_counts_against_the_service(result, kind, fuzz):
    fine = {"statuses": [200], "stall_s": 0.1, "wrong": [], "complaints": "", "faults": 0, "alive": True}
    assert fuzz.http.Caller(None).finding({}, {**fine, **result})[0] == kind
