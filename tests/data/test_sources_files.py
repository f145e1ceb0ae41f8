"""Where rows come from: files of every kind, whole or damaged, packages, the hub, and pickles from strangers."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import microcoder
from microcoder import Judge, Solution
from microcoder.data.record import Dropped, Record
from microcoder.data.sources import SourceError, Unreadable, collect, detect
from microcoder.data.sources.fields import megabytes, seconds
from microcoder.data.sources.livecodebench import decompress, unpickle
from microcoder.data.sources.rows import rows
from microcoder.files import write_problems
from microcoder.schema import Problem, Test

TABLE = [{"a": "one", "b": 'x,\n"y"'}, {"a": "two", "b": "ñ漢"}]
LINES = "".join(json.dumps(row) + "\n" for row in TABLE).encode()


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def table_as(path):
    if path.name.endswith(".csv"):
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["a", "b"])
            writer.writeheader()
            writer.writerows(TABLE)
    elif path.name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(TABLE), path)
    else:
        data = LINES if ".jsonl" in path.name.lower() else json.dumps(TABLE).encode()
        pack = {".gz": gzip.compress, ".zst": zstd}.get(path.suffix, bytes)
        path.write_bytes(pack(data))
    return path


@pytest.mark.parametrize("name", "t.jsonl T.JSONL t.jsonl.gz t.jsonl.zst t.json t.json.gz t.csv t.parquet".split())
def test_rows_come_out_of_every_kind_of_file(tmp_path, name):
    assert list(rows(table_as(tmp_path / name))) == [(f"{name}:1", TABLE[0]), (f"{name}:2", TABLE[1])]


def test_a_folder_is_read_file_by_file_and_hidden_ones_are_left_alone(tmp_path):
    for name in ("b.jsonl", "a.parquet", ".cache.jsonl", "notes.txt", "data/c.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        if name != "notes.txt":
            table_as(tmp_path / name)
    wanted = [f"{name}:{n}" for name in ("a.parquet", "b.jsonl", "data/c.csv") for n in (1, 2)]
    assert [place for place, _ in rows(tmp_path)] == wanted


def test_a_bad_line_is_an_unreadable_in_its_place(tmp_path):
    deep, digits = b"[" * 100_000, b'{"n": 1' + b"0" * 5000 + b"}"
    bad = [b'{"a": ', b"[1]", b"null", b'"\xff"', deep, digits]
    (tmp_path / "t.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\n".join([b'{"n": 1}', b"", *bad, b'{"n": 2}']))
    found = dict(rows(tmp_path / "t.jsonl"))
    assert (found["t.jsonl:1"], found["t.jsonl:9"]) == ({"n": 1}, {"n": 2})
    for number in range(3, 9):
        assert found[f"t.jsonl:{number}"].reason == "unreadable_row", number
        assert found[f"t.jsonl:{number}"].where == f"t.jsonl:{number}"


def test_a_damaged_file_gives_what_comes_before_the_damage_and_a_reason(tmp_path):
    many = b"".join(b'{"n": %d}\n' % n for n in os.urandom(20_000))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(many)[:-2000])
    (tmp_path / "b.parquet").write_bytes(b"PAR1 not really")
    (tmp_path / "c.json").write_text('{"rows": []}')
    (tmp_path / "d.csv").write_bytes(b"a,b\n1,2\n\xff,3\n")
    table_as(tmp_path / "e.jsonl")
    found = list(rows(tmp_path))
    broken = [row for _, row in found if isinstance(row, Unreadable)]
    assert [row.reason for row in broken] == ["unreadable_file"] * 4
    assert [row.where.partition(":")[0] for row in broken] == ["a.jsonl.gz", "b.parquet", "c.json", "d.csv"]
    assert ".jsonl" in broken[2].detail
    assert [row for _, row in found][-2:] == TABLE
    assert sum(place.startswith("a.jsonl.gz") for place, _ in found) > 1000


def test_a_csv_row_with_too_many_fields_is_told_and_the_rest_goes_on(tmp_path):
    (tmp_path / "t.csv").write_text(f"a,b\n1,2\n1,2,3\n4,{'x' * 200_000}\n")
    (_, first), (_, second), (_, third) = rows(tmp_path / "t.csv")
    assert (first, second.reason, third["a"], len(third["b"])) == ({"a": "1", "b": "2"}, "unreadable_row", "4", 200_000)


def test_bytes_in_a_column_of_text_are_a_reason(tmp_path):
    row = {"task_id": 1, "text": b"\xff", "code": "", "test_list": ["assert f()"]}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "t.parquet")
    (found,) = collect("mbpp", tmp_path / "t.parquet")
    assert found == Unreadable("t.parquet:1", "unreadable_row", "'text' should be text but is bytes")


def test_a_path_that_leads_nowhere_is_told_and_so_is_a_folder_of_nothing(tmp_path):
    with pytest.raises(SourceError, match="no file or folder"):
        list(rows(tmp_path / "missing.jsonl"))
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(SourceError, match=r"must end in .*\.parquet"):
        detect(tmp_path)


def test_a_file_that_is_not_there_is_not_looked_for_on_the_hub():
    with pytest.raises(SourceError, match="no file or folder data"):
        detect("data/gone.jsonl.gz")


def test_nan_in_a_row_is_nothing(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"q": "Add.", "code": NaN}\n')
    (found,) = collect("generic", tmp_path / "t.jsonl", mapping={"statement": "q", "starter_code": "code"})
    assert found.problem.starter_code == ""


def test_a_limit_ends_the_reading(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n' * 1000)
    assert len(list(collect("generic", tmp_path / "t.jsonl", mapping={"id": "a"}, limit=3))) == 3


HUB = """
from microcoder.data.sources import SourceError, detect
from microcoder.data.sources.rows import hub_rows
print(dict(hub_rows("owner/name")))
print(dict(hub_rows("owner/name::test")))
try:
    detect("nobody/nothing")
except SourceError as error:
    print(error)
"""


def test_a_data_set_is_streamed_split_by_split_and_without_a_hub_the_error_says_what_to_do(tmp_path):
    (tmp_path / "owner" / "name").mkdir(parents=True)  # the library takes a folder for a hub id just as well
    for split in ("train", "test"):
        (tmp_path / "owner" / "name" / f"{split}.jsonl").write_text(json.dumps({"n": split}) + "\n")
    root = Path(microcoder.__file__).parents[1]
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PYTHONPATH": str(root)}
    run = subprocess.run([sys.executable, "-c", HUB], cwd=tmp_path, env=env, stdout=-1, text=True, timeout=120)
    whole, part, error = run.stdout.splitlines()
    assert whole == "{'owner/name[train]:1': {'n': 'train'}, 'owner/name[test]:1': {'n': 'test'}}"
    assert part == "{'owner/name[test]:1': {'n': 'test'}}"
    assert error.startswith("nobody/nothing is no file or folder here, and the hub could not give it")


class Hostile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def lcb(private):
    row = {"question_content": "?", "question_id": "1", "public_test_cases": "[]"}
    return {**row, "private_test_cases": base64.b64encode(zlib.compress(private)).decode()}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_hostile_pickle_is_refused_and_runs_nothing(tmp_path, protocol):
    trap = tmp_path / "it ran"
    (tmp_path / "t.jsonl").write_text(json.dumps(lcb(pickle.dumps(Hostile(trap), protocol))) + "\n")
    (found,) = collect("livecodebench", tmp_path / "t.jsonl")
    assert (found.reason, trap.exists()) == ("unsafe_pickle", False)
    pickle.loads(pickle.dumps(Hostile(trap), protocol))
    assert trap.exists()  # so the trap would have worked


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_is_unpickled_whatever_the_protocol(protocol):
    plain = {"a": [1, -2.5, None, True, "ñ", 10**50], "b": ("x", {})}
    assert unpickle(pickle.dumps(plain, protocol)) == plain


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"cos\nsystem\n(S'true'\ntR.", "unsafe_pickle"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "unsafe_pickle"),
        (b"\x80\x02\x82\x01.", "unsafe_pickle"),  # an extension code
        (b"\x80\x02Pname\n.", "unsafe_pickle"),  # a persistent id
        (b"\x80\x02]r" + struct.pack("<I", 0x7FFFFFFF) + b".", "unsafe_pickle"),  # 16 GB of memo
        (b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"x.", "unreadable_tests"),  # a string of an exabyte
        (b"", "unreadable_tests"),
        (b"\x80\x02a.", "unreadable_tests"),
        (b"\x80\x02]", "unreadable_tests"),
    ],
)
def test_pickles_that_ask_for_more_or_are_broken_are_dropped(data, reason):
    with pytest.raises(Dropped) as caught:
        unpickle(data)
    assert caught.value.reason == reason


def test_pickled_private_tests_must_be_text(tmp_path):
    (tmp_path / "t.jsonl").write_text(json.dumps(lcb(pickle.dumps([{"input": "1", "output": "1"}]))) + "\n")
    (found,) = collect("livecodebench", tmp_path / "t.jsonl")
    assert (found.reason, "not to JSON text" in found.detail) == ("unreadable_tests", True)


def test_a_compression_bomb_is_stopped(monkeypatch):
    monkeypatch.setattr("microcoder.data.sources.livecodebench.LARGEST", 1 << 20)
    assert len(decompress(zlib.compress(bytes(1000)))) == 1000
    for data in (zlib.compress(bytes(2 << 20)), zlib.compress(bytes(1000))[:-5], b"nothing"):
        with pytest.raises(Dropped):
            decompress(data)


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        (2, 2.0), ("2.0 seconds", 2.0), ("1 second", 1.0), ("1500 ms", 1.5), ({"seconds": 1, "nanos": 5 * 10**8}, 1.5),
        (0, None), (-1, None), ("soon", None), (None, None), (True, None), (float("nan"), None), (1e9, None),
    ],
)  # fmt: skip
def test_time_limits_are_read_as_people_write_them(value, limit):
    assert seconds(value) == limit


@pytest.mark.parametrize(
    ("value", "limit"),
    [(256, 256), ("256.0 megabytes", 256), ("64 MB", 64), ("1 GB", 1024), ("512000000 Bytes", 512), ("x", None)],
)
def test_memory_limits_are_read_as_people_write_them(value, limit):
    assert megabytes(value) == limit


LEGACY = {
    "problem.yaml": "name: Sum\nlicense: cc by-sa\nsource: NCPC 2015\nsource_url: https://open.kattis.com/x\n"
    "validator_flags: float_tolerance 1e-4\nkeywords: math easy\nlimits: {memory: 512}\n",
    ".timelimit": "3\n",
    "problem_statement/problem.sv.tex": "\\problemname{Summa}\nAddera.",
    "problem_statement/problem.tex": "\\problemname{Sum it}\nAdd.",
    "data/sample/1.in": "1 2\n",
    "data/sample/1.ans": "3\n",
    "data/secret/a/1.in": "5 5\n",
    "data/secret/a/1.ans": "10\n",
    "data/secret/a/1.hint": "?",
    "submissions/accepted/right.py": "print(sum(map(int, input().split())))\n",
    "submissions/accepted/old.py": "#!/usr/bin/env python2\nprint 3\n",
    "submissions/accepted/whole/Main.java": "class Main {}\n",
    "submissions/accepted/parts/a.cpp": "\n",
    "submissions/accepted/parts/b.cpp": "\n",
    "submissions/wrong_answer/three.py": "print(3)\n",
    "submissions/time_limit_exceeded/slow.py": "while True: pass\n",
    "submissions/run_time_error/crash.py": "1 / 0\n",
}
MODERN = {
    "problem.yaml": "problem_format_version: 2023-07-draft\nname: {en: Sum, de: Summe}\nuuid: x\ntype: [pass-fail]\n"
    "source: [{name: NWERC, url: 'https://2024.nwerc.eu'}]\nlimits: {time_limit: 1.5}\nkeywords: [math]\n"
    "constants: {most: 9}\n",
    "statement/problem.en.md": "Add two numbers up to {{most}}.",
    "data/secret/1.in": "1 2\n",
    "data/secret/1.ans": "3\n",
    "data/secret/test_group.yaml": "output_validator_args: [case_sensitive]\n",
    "submissions/rejected/no.py": "print('no')\n",
}  # fmt: skip


def package(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_a_legacy_package_is_read_and_judged(tmp_path):
    folder = package(tmp_path / "sum", LEGACY)
    assert detect(folder) == "icpc"
    (record,) = collect("icpc", folder)
    found = record.problem
    assert (found.id, found.title, found.language) == ("icpc/sum", "Sum", "en")
    assert found.statement == "Add.\n\n## Example 1\n\nInput\n\n```\n1 2\n```\n\nOutput\n\n```\n3\n```"
    assert found.tests == [Test("1 2\n", "3\n"), Test("5 5\n", "10\n")]
    assert (found.time_limit_s, found.memory_mb, found.compare.validator_flags) == (3.0, 512, "float_tolerance 1e-4")
    assert (found.licence, found.url, found.platform) == ("CC-BY-SA-4.0", "https://open.kattis.com/x", "kattis")
    assert found.tags == ["math", "easy"]
    kinds = [(one["language"], one["verdict"]) for one in found.solutions]
    assert kinds[0] == ("python", "accepted")
    assert sorted(kinds[1:]) == [
        ("java", "accepted"), ("python", "runtime_error"), ("python", "time_limit"), ("python", "wrong_answer"),
        ("python2", "accepted"),
    ]  # fmt: skip
    assert found.lineage == [
        "collect: icpc sum/problem.yaml:1", "collect: submissions left out, not one program each: accepted/parts",
    ]  # fmt: skip
    found.time_limit_s = 0.5
    with Judge(workers=1) as judge:
        for one in found.solutions:
            if one["language"] == "python":
                assert judge.check(found, Solution(found.id, code=one["code"])).verdict == one["verdict"]


def test_a_package_of_2023_is_read(tmp_path):
    (record,) = collect("icpc", package(tmp_path / "sum", MODERN))
    found = record.problem
    assert (found.title, found.statement, found.time_limit_s) == ("Sum", "Add two numbers up to 9.", 1.5)
    assert (found.compare.validator_flags, found.url, found.licence) == ("case_sensitive", "https://2024.nwerc.eu", "")
    assert (found.tags, found.solutions[0]["verdict"]) == (["math"], "wrong_answer")


def test_without_flags_the_default_validator_still_decides(tmp_path):
    files = {name: text for name, text in MODERN.items() if name != "data/secret/test_group.yaml"}
    (record,) = collect("icpc", package(tmp_path / "sum", files))
    assert record.problem.compare.validator_flags == ""


def test_a_folder_of_packages_is_read_one_by_one(tmp_path):
    package(tmp_path / "contest" / "b", MODERN)
    package(tmp_path / "contest" / "a", {**LEGACY, "problem.yaml": "- no\n- keys\n"})
    package(tmp_path / "other" / "b", LEGACY)
    found = list(collect("icpc", tmp_path))
    assert [getattr(one, "reason", "") or one.problem.id for one in found] == ["unreadable_row", "icpc/b", "icpc/b#2"]
    assert found[0].where == "a/problem.yaml:1"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"problem.yaml": "name: [unclosed"}, "unreadable_row"),
        ({"problem.yaml": "limits: {time_limit: 2024-02-31}"}, "unreadable_row"),
        ({"problem.yaml": "limits: none of them"}, "unreadable_row"),
        ({"problem.yaml": "validation: custom interactive"}, "interactive"),
        ({"problem.yaml": "type: [pass-fail, interactive]"}, "interactive"),
        ({"problem.yaml": "type: submit-answer"}, "unsupported_type"),
        ({"problem.yaml": "validation: custom"}, "custom_validator"),
        ({"output_validator/check.py": ""}, "custom_validator"),
        ({"data/secret/testdata.yaml": "output_validator_flags: by_magic"}, "custom_validator"),
        ({"data/secret/testdata.yaml": "output_validator_flags: case_sensitive"}, "custom_validator"),
        ({"include/python/driver.py": ""}, "unsupported_type"),
        ({"data/secret/2.in": "1"}, "unreadable_tests"),
        ({"data/secret/a/1.files/x": "1"}, "reads_files"),
        ({"data/secret/a/1.yaml": "args: [x]"}, "reads_files"),
    ],
)
def test_a_package_that_cannot_be_judged_rightly_says_why(tmp_path, files, reason):
    (found,) = collect("icpc", package(tmp_path / "sum", {**LEGACY, **files}))
    assert (found.reason, bool(found.detail)) == (reason, True)


def test_a_submission_that_is_no_utf_8_is_left_out_and_told(tmp_path):
    folder = package(tmp_path / "sum", LEGACY)
    (folder / "submissions/accepted/old.java").write_bytes(b"// Jos\xe9\n")
    (record,) = collect("icpc", folder)
    assert record.problem.lineage[-1].endswith("accepted/old.java, accepted/parts")


def test_a_link_out_of_a_package_is_not_followed(tmp_path):
    (tmp_path / "secret.txt").write_text("not yours")
    folder = package(tmp_path / "sum", LEGACY)
    (folder / "data/secret/a/1.ans").unlink()
    (folder / "data/secret/a/1.ans").symlink_to(tmp_path / "secret.txt")
    (found,) = collect("icpc", folder)
    assert (found.reason, "leads out of" in found.detail) == ("unreadable_row", True)


def test_large_tests_are_left_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("microcoder.data.sources.icpc.LARGEST", 5)
    (record,) = collect("icpc", package(tmp_path / "sum", LEGACY))
    assert record.problem.tests == []
    assert any(line.startswith("collect: 2 tests of over") for line in record.problem.lineage)


@pytest.mark.parametrize("name", ["p.jsonl", "p.parquet"])
def test_our_own_files_keep_their_ids_and_their_lineage(tmp_path, name):
    problems = [
        Problem(id="club/1", source="club", tests=[Test("1", "2")], lineage=["collect: club"]),
        Problem(id="f", kind="assert", asserts=["assert f(1)", "assert f(2)"]),
    ]
    write_problems(tmp_path / name, problems)
    assert detect(tmp_path / name) == "microcoder"
    first, second = collect("microcoder", tmp_path)
    assert (first.problem.id, first.problem.source) == ("club/1", "club")
    assert first.problem.lineage == ["collect: club", f"collect: microcoder {name}:1"]
    assert second.problem.asserts == ["assert f(1)", "assert f(2)"]


@pytest.mark.parametrize("name", ["p.csv", "p.jsonl.zst"])
def test_our_own_layout_is_read_from_every_kind_of_file(tmp_path, name):
    row = {"id": "a", "title": "", "tests": [{"input": "1", "output": "2"}], "mine": "x"}
    with open(tmp_path / name, "wb") as file:
        if name.endswith(".csv"):
            text = io.StringIO()
            writer = csv.DictWriter(text, row)
            writer.writeheader()
            writer.writerow({**row, "tests": json.dumps(row["tests"])})
            file.write(text.getvalue().encode())
        else:
            file.write(zstd(json.dumps(row).encode()))
    assert detect(tmp_path / name) == "microcoder"
    (record,) = collect("microcoder", tmp_path / name)
    assert record.problem.tests == [Test("1", "2")] and record.problem.extra == {"mine": "x"}


def test_our_own_layout_is_read_from_the_hub(tmp_path, monkeypatch):
    row = {"id": "a", "tests": [{"input": "1", "output": "2"}]}
    monkeypatch.setitem(rows.__globals__, "hub_rows", lambda name: iter([(f"{name}[train]:1", row)]))
    (record,) = collect("microcoder", "owner/name")
    assert record.problem.id == "a" and record.problem.lineage == ["collect: microcoder owner/name[train]:1"]


def test_a_bad_line_of_our_own_files_is_told(tmp_path):
    (tmp_path / "p.jsonl").write_text('{"id": "a"}\n{"id": "b", "tests": [{"input": "", "output": ""}]}\n')
    first, second = collect("microcoder", tmp_path / "p.jsonl")
    assert (first.where, first.reason) == ("p.jsonl:1", "unreadable_row")
    assert isinstance(second, Record)


def test_macros_of_a_statement_are_written_out_and_python_2_is_told_by_its_names(tmp_path):
    tex = (
        "\\newcommand{\\most}{50}%\n\\newcommand{\\name}{{Ada}}\n\\newcommand{\\twice}[1]{#1#1}\n"
        "Add two numbers up to $\\most$, says \\name{}. Not \\mostly, nor \\twice{x}."
    )
    files = {
        **LEGACY, "problem_statement/problem.en.tex": tex,
        "submissions/accepted/old.py": "print(raw_input())\n",
        "submissions/accepted/both.py": "try:\n    input = raw_input\nexcept NameError:\n    pass\nprint(input())\n",
    }  # fmt: skip
    (record,) = collect("icpc", package(tmp_path / "sum", files))
    text = record.problem.statement
    assert "up to $50$, says {Ada}. Not \\mostly, nor \\twice{x}." in text and "\\newcommand{\\most}" not in text
    old = {one["code"]: one["language"] for one in record.problem.solutions}
    assert (old[files["submissions/accepted/old.py"]], old[files["submissions/accepted/both.py"]]) == (
        "python2",
        "python",
    )
