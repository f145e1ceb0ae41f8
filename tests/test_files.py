"""Reading and writing: nothing is dropped silently, and an interrupted log can be gone on with."""

from __future__ import annotations

import builtins
import gzip
import json
import re
import tomllib
from datetime import datetime
from functools import partial

import pytest

import microcoder
from microcoder.files import (
    BadLine,
    FileError,
    VerdictLog,
    count_records,
    read_problems,
    read_solutions,
    write_problems,
)
from microcoder.schema import Compare, Problem, SchemaError, Test, TestVerdict, Verdict

ONE = '{"id": "a", "tests": [{"input": "1", "output": "2"}]}'
PROBLEMS = [
    Problem(id="a", tests=[Test("1\n", "2\n")], statement="plus one: ñ, 漢字", tags=["x", "y"], time_limit_s=1.5),
    Problem(
        id="b",
        kind="function",
        entry_point="f",
        tests=[Test("[1]", "2")],
        memory_mb=64,
        compare=Compare(tolerance=1e-3, unordered=True),
        solutions=[{"code": "def f(x): ...", "language": "python"}],
    ),
    Problem(id="c", kind="assert", asserts=["assert f(1) == 2", "assert f(2) == 3"], difficulty_score=0.25),
]


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", ["p.jsonl", "p.jsonl.gz", "p.json", "p.parquet"])
def test_problems_come_back_as_they_were_written(tmp_path, name):
    assert write_problems(tmp_path / name, iter(PROBLEMS)) == 3
    assert list(read_problems(tmp_path / name)) == PROBLEMS
    assert count_records(tmp_path / name) == 3
    assert [p.name for p in tmp_path.iterdir()] == [name]  # nothing half-written is left beside it


@pytest.mark.parametrize("name", ["p.jsonl", "p.jsonl.gz", "p.json", "p.parquet"])
def test_no_problems_make_an_empty_file_that_can_be_read(tmp_path, name):
    assert write_problems(tmp_path / name, []) == 0
    assert list(read_problems(tmp_path / name)) == []


def test_many_problems_cross_the_batches_of_parquet_in_order(tmp_path):
    problems = [Problem(id=str(n), tests=[Test("", str(n))]) for n in range(600)]
    assert write_problems(tmp_path / "p.parquet", problems) == 600
    assert list(read_problems(tmp_path / "p.parquet")) == problems


def test_a_failed_write_leaves_the_old_file_alone(tmp_path):
    path = write(tmp_path / "p.jsonl", "old")

    def broken():
        yield PROBLEMS[0]
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError):
        write_problems(path, broken())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_parquet_of_other_people_with_real_lists_and_an_index_is_read(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {"id": ["a"], "tests": [[{"input": "1", "output": "2"}]], "tags": [None], "__index_level_0__": [7]}
    pq.write_table(pa.table(rows), tmp_path / "p.parquet")
    assert list(read_problems(tmp_path / "p.parquet")) == [Problem(id="a", tests=[Test("1", "2")])]


def test_without_pyarrow_a_parquet_file_says_what_to_install(tmp_path, monkeypatch):
    write_problems(tmp_path / "p.parquet", PROBLEMS)
    real = builtins.__import__

    def without_pyarrow(name, *args):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(FileError, match="pip install pyarrow"):
        list(read_problems(tmp_path / "p.parquet"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "b", ', "not JSON"),
        ("[1, 2]", "not an object"),
        ('{"id": "b"}', '"tests" is empty'),
        ('{"id": "b", "test": []}', "did you mean 'tests'"),
        ('{"id": "b", "tests": [1]}', "test 0"),
        ('{"id": "b", "kind": ["stdin"], "tests": [{"input": "", "output": ""}]}', "kind"),
        (b'{"id": "\xff"}', "not UTF-8"),
        ("[" * 100_000, "not JSON that can be read"),
        (ONE, "already on line 1"),
    ],
)
def test_a_bad_line_is_returned_with_its_number_and_reason_and_reading_goes_on(tmp_path, line, reason):
    line = line if isinstance(line, bytes) else line.encode()
    last = ONE.replace('"a"', '"last"')
    path = write(tmp_path / "p.jsonl", ONE.encode() + b"\n\n" + line + b"\n" + last.encode())
    first, bad, good = read_problems(path)
    assert isinstance(bad, BadLine)
    assert (bad.path, bad.line) == (str(path), 3)
    assert reason in bad.reason
    assert str(bad).startswith(f"{path}:3: ")
    assert (first.id, good.id) == ("a", "last")


def test_byte_order_mark_windows_line_ends_and_blank_lines_are_no_matter(tmp_path):
    path = write(tmp_path / "p.jsonl", b"\xef\xbb\xbf" + ONE.encode() + b"\r\n\r\n   \n")
    assert [p.id for p in read_problems(path)] == ["a"]
    assert count_records(path) == 1


def test_a_compressed_file_that_was_cut_off_is_a_bad_line_after_what_could_be_read(tmp_path):
    lines = "".join(ONE.replace('"a"', f'"{n}"') + "\n" for n in range(20_000))
    whole = gzip.compress(lines.encode())
    path = write(tmp_path / "p.jsonl.gz", whole[: len(whole) // 2])
    records = list(read_problems(path))
    assert len(records) > 1000
    assert isinstance(records[-1], BadLine)
    assert "damaged" in records[-1].reason


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.jsonl", None, "there is no file"),
        ("p.txt", "a,b", ".jsonl, .jsonl.gz, .json, .json.gz, .parquet"),
        ("p.csv", "a,b", "is a table; make problems of it first"),
        ("p.json", ONE + "\n" + ONE, "rename it to .jsonl"),
        ("p.json", '{"id": "a"}', "does not hold a JSON list"),
        ("p.parquet", "not parquet at all", "cannot be read as Parquet"),
    ],
)
def test_a_file_that_cannot_be_used_says_what_to_do(tmp_path, name, content, words):
    path = tmp_path / name
    if content is not None:
        write(path, content)
    with pytest.raises(FileError) as error:
        list(read_problems(path))
    assert words in str(error.value)


def test_a_path_that_cannot_be_looked_at_is_refused(tmp_path):
    for path in (tmp_path / ("n" * 300 + ".jsonl"), tmp_path / "p.jsonl/p.jsonl"):
        (tmp_path / "p.jsonl").touch()
        with pytest.raises(FileError, match=r"cannot read .*: File name too long|there is no file"):
            list(read_problems(path))
        for write in (VerdictLog, partial(write_problems, problems=PROBLEMS)):
            with pytest.raises(FileError, match=r"cannot write .*: (File name too long|Not a directory)$"):
                write(path)


def test_a_folder_is_refused_with_a_file_that_is_in_it(tmp_path):
    write(tmp_path / "p.jsonl", ONE)
    with pytest.raises(FileError, match=r"is a folder.*p\.jsonl"):
        list(read_problems(tmp_path))


def test_solutions_without_an_id_are_numbered_for_each_problem_in_file_order(tmp_path):
    lines = [
        {"problem_id": "a", "code": "1"},
        {"problem_id": "b", "code": "2"},
        {"problem_id": "a", "code": "3", "id": "mine"},
        {"problem_id": "a", "completion": "4", "model": "m", "seed": 7},
        {"problem_id": "a", "code": "5", "id": "mine"},
        {"problem_id": "a"},
    ]
    path = write(tmp_path / "s.jsonl", "\n".join(map(json.dumps, lines)))
    *good, duplicate, empty = read_solutions(path)
    assert [s.id for s in good] == ["a#0", "b#0", "mine", "a#1"]
    assert "'mine' was already on line 3" in duplicate.reason
    assert 'exactly one of "code" and "completion"' in empty.reason


def test_a_solution_to_no_known_problem_is_a_bad_line_and_does_not_change_the_numbering(tmp_path):
    lines = [{"problem_id": p, "code": ""} for p in ("x", "a", "a")]
    path = write(tmp_path / "s.jsonl", "\n".join(map(json.dumps, lines)))
    bad, *good = read_solutions(path, {"a"})
    assert (bad.line, bad.reason) == (1, "there is no problem 'x' to judge it by")
    assert [s.id for s in good] == ["a#0", "a#1"]
    bad, *_ = read_solutions(path, {"a", "source/x"})
    assert bad.reason == "there is no problem 'x' to judge it by; did you mean 'source/x'?"


def verdict(ident, **fields):
    return Verdict("accepted", problem_id="p", id=ident, tests=[TestVerdict("accepted")], **fields)


def test_a_log_is_flushed_line_by_line_and_knows_what_is_done_when_opened_again(tmp_path):
    path = tmp_path / "v.jsonl"
    with VerdictLog(path) as log:
        log.append(verdict("1", cpu_s=0.5))
        assert json.loads(path.read_text())["cpu_s"] == 0.5  # on disk before the log is closed
        log.append(verdict("2", message="ñ \ud800"))  # half a surrogate pair, as a program may print
    with VerdictLog(path) as log:
        assert list(log.done) == ["1", "2"]
        assert log.done["2"].message == "ñ \ud800"
        log.append(verdict("3"))
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["1", "2", "3"]


@pytest.mark.parametrize("keep", [1, 4, 40, -2])
def test_a_half_written_last_line_is_removed(tmp_path, keep):
    path = tmp_path / "v.jsonl"
    with VerdictLog(path) as log:
        log.append(verdict("1"))
        log.append(verdict("2"))
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:keep])
    with VerdictLog(path) as log:
        assert list(log.done) == ["1"]
        assert path.read_bytes() == first
        log.append(verdict("2"))
    assert path.read_bytes() == first + second


def test_a_last_line_that_lacks_only_its_end_is_kept(tmp_path):
    path = tmp_path / "v.jsonl"
    with VerdictLog(path) as log:
        log.append(verdict("1"))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    with VerdictLog(path) as log:
        assert list(log.done) == ["1"]
        log.append(verdict("2"))
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize(
    "content", [ONE + "\n", "my notes", '{"id": "s", "problem_id": "a", "code": ""}', "{}\n", "5\n", "\x00\n"]
)
def test_a_file_that_holds_no_verdicts_is_refused_and_left_alone(tmp_path, content, fresh):
    path = write(tmp_path / "v.jsonl", content)
    with pytest.raises(FileError, match="is not a verdict"):
        VerdictLog(path, fresh)
    assert path.read_text() == content


def test_fresh_starts_the_log_over(tmp_path):
    path = tmp_path / "v.jsonl"
    with VerdictLog(path) as log:
        log.append(verdict("1"))
    with VerdictLog(path, fresh=True) as log:
        assert not log.done
        log.append(verdict("2"))
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["2"]


def test_two_writers_of_one_log_are_refused(tmp_path):
    with VerdictLog(tmp_path / "v.jsonl"), pytest.raises(FileError, match="another process"):
        VerdictLog(tmp_path / "v.jsonl")


@pytest.mark.parametrize(("name", "words"), [("v.parquet", ".jsonl"), ("no/v.jsonl", "mkdir -p")])
def test_a_log_that_cannot_be_written_says_what_to_do(tmp_path, name, words):
    with pytest.raises(FileError, match=words):
        VerdictLog(tmp_path / name)


@pytest.mark.parametrize("name", ["p.jsonl", "p.jsonl.gz", "p.json", "p.json.gz", "p.parquet"])
def test_fields_that_nobody_knows_are_kept(tmp_path, name):
    record = {"id": "a", "asserts": ["assert f() == 1"], "kind": "assert", "tags": ["x"], "solution": "s", "seed": 3}
    problem = Problem.from_dict(record)
    assert problem.extra == {"solution": "s", "seed": 3} and problem.to_dict() == record
    write_problems(tmp_path / name, [problem])
    assert list(read_problems(tmp_path / name)) == [problem]


@pytest.mark.parametrize("field", ["test", "entrypoint", "time_limit", "assert", "memorymb"])
def test_a_misspelt_field_that_decides_is_named(field):
    with pytest.raises(SchemaError, match=f"unknown field '{field}'; did you mean"):
        Problem.from_dict({"id": "a", field: 1})


def test_a_row_of_our_own_parquet_is_a_problem(tmp_path):
    from pyarrow import parquet

    problem = Problem.from_dict(
        {"id": "a", "kind": "assert", "asserts": ["assert f() == 1"], "tags": ["x"], "lineage": ["b"], "mine": [1]}
    )
    write_problems(tmp_path / "p.parquet", [problem])
    (row,) = parquet.read_table(tmp_path / "p.parquet").to_pylist()
    assert isinstance(row["asserts"], str)
    assert Problem.from_dict(row) == problem


@pytest.mark.parametrize(
    ("record", "layout"),
    [
        ({"task_id": 1, "text": "", "code": "", "test_list": []}, "MBPP"),
        ({"task_id": "HumanEval/0", "prompt": "", "canonical_solution": "", "test": ""}, "HumanEval"),
        ({"question_id": "1", "public_test_cases": "[]"}, "LiveCodeBench"),
        ({"task_id": "Mbpp/2", "canonical_solution": "", "base_input": [], "plus_input": [], "test": ""}, "EvalPlus"),
    ],
)
def test_a_file_in_the_layout_of_another_data_set_is_named(tmp_path, record, layout):
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(FileError, match=rf"layout of {layout}; .*microcoder data run") as error:
        list(read_problems(path))
    (source,) = tomllib.loads(re.search(r"with (.*), then", str(error.value))[1])["collect"]["sources"]
    assert source["path"] == str(path)  # what it says to write is TOML


def test_a_file_of_something_else_says_which_fields_it_has(tmp_path):
    path = write(tmp_path / "m.jsonl", '{"question_id": "1", "code": "x"}')
    (bad,) = read_problems(path)
    assert bad.reason == 'a problem needs an "id"; this has question_id, code'


def test_a_row_as_pandas_gives_it_is_a_problem(tmp_path):
    empty = dict.fromkeys(["title", "tests", "setup", "time_limit_s", "memory_mb", "compare", "tags"], float("nan"))
    problem = Problem.from_dict({**empty, "id": "a", "kind": "assert", "asserts": '["assert f() == 1"]'})
    assert problem == Problem(id="a", kind="assert", asserts=["assert f() == 1"])


def test_load_problems_reads_all_or_names_what_is_broken(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": "a", "tests": [{"input": "", "output": "1"}]}\n')
    assert [problem.id for problem in microcoder.load_problems(path)] == ["a"]
    path.write_text(path.read_text() + '{"id": "b"}\n')
    with pytest.raises(FileError, match=r"p\.jsonl:2"):
        microcoder.load_problems(path)


def test_half_a_surrogate_pair_goes_into_parquet_as_its_escape(tmp_path):
    problem = Problem("a", statement="half \ud83d", tests=[Test("\ud83d", "1")], extra={"of": "\ud83d"})
    write_problems(tmp_path / "p.parquet", [problem])
    (found,) = read_problems(tmp_path / "p.parquet")
    assert (found.statement, found.tests, found.extra) == ("half \\ud83d", problem.tests, problem.extra)


def test_dates_and_bytes_in_columns_of_others_become_text(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    row = {"id": "a", "tests": [{"input": "1", "output": "2"}], "made": datetime(2024, 5, 1), "raw": b"x"}
    parquet.write_table(pa.Table.from_pylist([row]), tmp_path / "p.parquet")
    problems = list(read_problems(tmp_path / "p.parquet"))
    assert problems[0].extra == {"made": "2024-05-01 00:00:00", "raw": "b'x'"}
    write_problems(tmp_path / "p.jsonl", problems)
    assert list(read_problems(tmp_path / "p.jsonl")) == problems
