"""Files of completions: every layout people have, and nothing counted that is not there."""

from __future__ import annotations

import dataclasses
import gzip
import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from microcoder.evaluation.completions import read_completions
from microcoder.evaluation.suite import EvaluationError, Problems, Sample, Suite
from microcoder.schema import Problem


def suite(*idents):
    return Suite("mine", "code", Problems([Problem(ident) for ident in idents]), "")


MBPP, LCB, HUMANEVAL = suite("mbpp/11", "mbpp/12"), suite("abc387_b", "3733"), suite("HumanEval/0", "HumanEval/1")


def lines(tmp_path, *rows):
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def found(samples):
    return [(sample.id, sample.text, sample.is_code) for sample in samples]


@pytest.mark.parametrize(
    ("of", "rows", "samples"),
    [
        (
            LCB,
            [{"problem_id": "3733", "completion": "a", "id": "x"}, {"problem_id": "abc387_b", "code": "b", "id": "y"}],
            [("abc387_b#0", "b", True), ("3733#0", "a", False)],  # in the suite's order
        ),
        (
            LCB,
            [{"problem_id": "3733", "completions": ["a", "b"]}, {"problem_id": "abc387_b", "completion": "c"}],
            [("abc387_b#0", "c", False), ("3733#0", "a", False), ("3733#1", "b", False)],
        ),
        (
            LCB,
            [
                {"question_id": "abc387_b", "code_list": ["a", ""]},
                {"question_id": 3733, "code_list": ["no"], "output_list": ["```\nyes\n```"]},
            ],
            [("abc387_b#0", "a", True), ("abc387_b#1", "", False), ("3733#0", "```\nyes\n```", False)],
        ),
        (
            HUMANEVAL,
            [{"task_id": "HumanEval/0", "completion": "    a"}, {"task_id": "HumanEval/1", "completion": "    b"}],
            [("HumanEval/0#0", "    a", False), ("HumanEval/1#0", "    b", False)],
        ),
        (
            MBPP,
            [{"task_id": "Mbpp/11", "solution": "a"}, {"task_id": "Mbpp/12", "solution": "b"}],
            [("mbpp/11#0", "a", True), ("mbpp/12#0", "b", True)],
        ),
    ],
)
def test_each_layout_is_told_by_its_keys(tmp_path, of, rows, samples):
    assert found(read_completions(lines(tmp_path, *rows), of)) == samples


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "c.json", "c.parquet"])
def test_every_kind_of_file_holds_the_same(tmp_path, name):
    rows = [{"question_id": ident, "output_list": [ident, "x"]} for ident in ("abc387_b", "3733")]
    path = tmp_path / name
    if name.endswith(".parquet"):
        pa.parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        text = json.dumps(rows) if name.endswith(".json") else "\n".join(map(json.dumps, rows))
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert read_completions(path, LCB) == [
        Sample(ident, number, text) for ident in ("abc387_b", "3733") for number, text in enumerate([ident, "x"])
    ]


@pytest.mark.parametrize(
    ("of", "name", "ident"),
    [
        (MBPP, "mbpp/11", "mbpp/11"),
        (MBPP, "Mbpp/11", "mbpp/11"),
        (MBPP, "11", "mbpp/11"),
        (MBPP, 11, "mbpp/11"),
        (HUMANEVAL, "humaneval/1", "HumanEval/1"),
        (HUMANEVAL, "0", "HumanEval/0"),
        (HUMANEVAL, 0, "HumanEval/0"),
        (suite("a/1", "b/1", "1"), "1", "1"),
    ],
)
def test_an_id_may_be_short_or_in_other_letters(tmp_path, of, name, ident):
    (sample,) = read_completions(lines(tmp_path, {"task_id": name, "completion": "x"}), of, missing="skip")
    assert sample.problem_id == ident


@pytest.mark.parametrize(("of", "name"), [(suite("a/1", "b/1"), "1"), (MBPP, "HumanEval/11"), (MBPP, "111")])
def test_an_id_that_could_mean_two_problems_or_none_is_refused(tmp_path, of, name):
    with pytest.raises(EvaluationError, match=r"mine\.jsonl:1: .* is none of the 2 problems of mine"):
        read_completions(lines(tmp_path, {"task_id": name, "completion": "x"}), of, missing="skip")


def test_ids_that_differ_in_their_letters_alone_are_told_apart(tmp_path):
    rows = [{"problem_id": name, "completion": name} for name in ("1a", "1A")]
    assert found(read_completions(lines(tmp_path, *rows), suite("1A", "1a"))) == [
        ("1A#0", "1A", False),
        ("1a#0", "1a", False),
    ]


def test_completions_for_problems_that_were_not_asked_for_are_passed_over(tmp_path):
    narrowed = dataclasses.replace(suite("HumanEval/0"), others=("HumanEval/1", "HumanEval/2"))
    rows = [{"task_id": f"HumanEval/{n}", "completion": str(n)} for n in (2, 0, 1)]
    assert found(read_completions(lines(tmp_path, *rows), narrowed)) == [("HumanEval/0#0", "0", False)]
    with pytest.raises(EvaluationError, match="no answer to any of the 1 problems"):
        read_completions(lines(tmp_path, rows[0]), narrowed, missing="skip")
    with pytest.raises(EvaluationError, match="none of the 3 problems"):
        read_completions(lines(tmp_path, *rows, {"task_id": "HumanEval/3", "completion": "3"}), narrowed)


def test_tries_are_numbered_in_the_order_of_the_file_and_may_differ_in_number(tmp_path):
    rows = [{"problem_id": ident, "completion": text} for ident, text in (("11", "a"), ("12", "b"), ("11", "c"))]
    assert found(read_completions(lines(tmp_path, *rows), MBPP)) == [
        ("mbpp/11#0", "a", False),
        ("mbpp/11#1", "c", False),
        ("mbpp/12#0", "b", False),
    ]


def test_problems_without_completions_are_refused_counted_as_wrong_or_left_out(tmp_path):
    rows = [{"problem_id": "12", "completion": text} for text in ("a", "b")]
    path = lines(tmp_path, *rows)
    words = r"nothing for 1 of 2 problems \(mbpp/11\).*--missing wrong.*--missing skip"
    with pytest.raises(EvaluationError, match=words):
        read_completions(path, MBPP)
    there = [("mbpp/12#0", "a", False), ("mbpp/12#1", "b", False)]
    assert found(read_completions(path, MBPP, missing="skip")) == there
    absent = [("mbpp/11#0", "", False), ("mbpp/11#1", "", False)]  # as many tries as the others have
    assert found(read_completions(path, MBPP, missing="wrong")) == absent + there


GOOD = {"problem_id": "11", "completion": "x"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{", r"mine\.jsonl:2: unreadable_row.*not JSON.*take it out"),
        ("[1]", r"mine\.jsonl:2: .*not an object"),
        ({"completion": "x"}, r'mine\.jsonl:2: .*give one of "problem_id", "question_id", "task_id"'),
        ({"problem_id": "11", "text": "x"}, r"mine\.jsonl:2: it holds no answer.*'text'"),
        ({"problem_id": "11", "completion": 5}, r"mine\.jsonl:2: 'completion' must be text.*5"),
        ({"problem_id": "11", "completions": ["x", None]}, r"mine\.jsonl:2: 'completions' must be text"),
        ({"problem_id": "mbpp/1l", "completion": "x"}, r"mine\.jsonl:2: .*did you mean 'mbpp/1"),
        ({"problem_id": "zzz", "completion": "x"}, r"ids are such as 'mbpp/11'"),
    ],
)
def test_a_line_that_cannot_be_used_is_refused_with_its_place(tmp_path, row, words):
    with pytest.raises(EvaluationError, match=words):
        read_completions(lines(tmp_path, GOOD, row), MBPP, missing="skip")


def test_one_try_twice_is_refused(tmp_path):
    one = {"problem_id": "11", "completion": "x", "id": 0}
    assert len(read_completions(lines(tmp_path, one, {**one, "problem_id": "12"}), MBPP)) == 2
    with pytest.raises(EvaluationError, match=r"mine\.jsonl:3: id 0 is in mine\.jsonl:1 already"):
        read_completions(lines(tmp_path, one, {**one, "problem_id": "12"}, one), MBPP)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("c.jsonl", "", "is empty; it should hold lines such as"),
        ("c.json", "[]", "is empty"),
        ("c.jsonl", '{"problem_id": "11", "completions": []}', "at least one completion"),
        ("c.txt", "x", r"names of files must end in \.jsonl"),
        ("c.parquet", "x", r"c\.parquet:1: unreadable_file"),
        ("c.jsonl.gz", "x", r"c\.jsonl\.gz:1: unreadable_file"),
        ("owner/name", None, "there is no such file"),  # which looks like a hub id
    ],
)
def test_a_file_without_completions_is_refused(tmp_path, monkeypatch, name, text, words):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(EvaluationError, match=words):
        read_completions(name, MBPP)


def test_a_word_for_missing_that_does_not_exist_gets_the_nearest(tmp_path):
    with pytest.raises(EvaluationError, match=r"refuse, wrong, skip; did you mean 'skip'"):
        read_completions(lines(tmp_path, GOOD), MBPP, missing="skipp")
