"""Suites: all of the problems they say, or a message that says what to do."""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter

import pyarrow as pa
import pyarrow.parquet
import pytest
from livecodebench_files import change, cut, cut_between_lines, make_hostile, write_release

from microcoder import Judge, Solution
from microcoder.bench.finding import hub_file
from microcoder.bench.livecodebench import problem as parse
from microcoder.bench.livecodebench import release_files
from microcoder.bench.records import BenchError
from microcoder.bench.stored import StoredProblems, read_lines
from microcoder.bench.suites import load_suite
from microcoder.files import write_problems
from microcoder.prompts import messages
from microcoder.schema import Problem, Test


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """All six files, which no test changes."""
    return write_release(tmp_path_factory.mktemp("lcb"), "release_v6")


@pytest.fixture
def few(tmp_path):
    return write_release(tmp_path / "few", "v6", problems=8)


def lcb(files, **options):
    return load_suite("livecodebench", data=str(files.folder), **options)


def refused(words, name="livecodebench", **options):
    with pytest.raises(BenchError, match=words):
        load_suite(name, **options)


@pytest.mark.parametrize(
    ("release", "count"),
    [("v1", 400), ("v6", 175), ("", 175), ("v4_v6", 443), ("release_v1", 400), ("release_v6", 1055)],
)
def test_a_release_is_what_it_added_or_all_up_to_it(everything, release, count):
    suite = lcb(everything, release=release)
    assert len(suite.problems) == count
    assert suite.name == f"livecodebench {release or 'v6'}"


def test_livecodebench_v6_is_made_up_as_in_the_papers_table(everything):
    suite = lcb(everything)
    assert Counter((problem.platform, problem.difficulty) for problem in suite.problems) == {
        ("atcoder", "easy"): 26, ("atcoder", "medium"): 26, ("atcoder", "hard"): 60,
        ("leetcode", "easy"): 17, ("leetcode", "medium"): 26, ("leetcode", "hard"): 20,
    }  # fmt: skip
    assert (suite.style, suite.tries, suite.temperature, suite.limits) == ("livecodebench", 4, 0.2, (4096,))
    assert suite.time_limit_s == 6


@pytest.mark.parametrize("release", ["v7", "6", "v0", "release_v4_v6", "v6_v4", "v6_v6", "V6", "v66"])
def test_a_release_that_does_not_exist_is_refused_with_those_that_do(everything, release):
    refused("give v1 to v6 .* release_v6 .* v4_v6", data=str(everything.folder), release=release)


def test_problems_are_light_in_the_order_of_the_files_and_whole_when_asked_for(everything):
    suite = lcb(everything, release="v4_v6")
    rows = [json.loads(line) for path in everything.paths[3:] for line in path.read_text().splitlines()]
    assert [problem.id for problem in suite.problems] == [row["question_id"] for row in rows]
    for n in (0, 100, 442):
        light, whole = suite.problems[n], suite.problems.whole(n)
        assert light.tests == [] and len(whole.tests) == 5
        assert (light.id, light.kind, light.statement) == (whole.id, whole.kind, rows[n]["question_content"])
        assert light.kind == ("function" if rows[n]["platform"] == "leetcode" else "stdin")
        assert light.starter_code == rows[n]["starter_code"]
        assert light.date == rows[n]["contest_date"][:10]


def test_right_programs_are_accepted_and_wrong_ones_are_not_on_every_platform(everything):
    suite = lcb(everything, release="release_v6")
    sites = {}
    for n, problem in enumerate(suite.problems):
        sites.setdefault(problem.platform, []).append(n)
    assert len(sites["codeforces"]) == 9
    chosen = [n for places in sites.values() for n in (*places[:4], places[-1])]
    pairs = [
        (suite.problems.whole(n), Solution(suite.problems[n].id, code=code[suite.problems[n].id], id=f"{n} {right}"))
        for n in chosen
        for right, code in ((True, everything.right), (False, everything.wrong))
    ]
    with Judge(time_limit_s=suite.time_limit_s) as judge:
        verdicts = {solution.id: verdict.accepted for solution, verdict in judge.map(pairs)}
    assert verdicts == {f"{n} {right}": right for n in chosen for right in (True, False)}


def test_both_ends_of_a_span_of_dates_count(everything):
    every = lcb(everything).problems
    days = sorted({problem.date for problem in every})
    start, end = days[3], days[-4]
    suite = lcb(everything, start=start, end=end)
    assert [p.id for p in suite.problems] == [p.id for p in every if start <= p.date <= end]
    assert {start, end} <= {p.date for p in suite.problems}
    assert suite.name == f"livecodebench v6 (from {start}, to {end})"
    assert {p.date for p in lcb(everything, start=days[5], end=days[5]).problems} == {days[5]}


def test_platforms_difficulties_and_the_first_so_many_narrow_it_further(everything):
    suite = lcb(everything, platforms=["leetcode"], difficulties=["easy", "hard"])
    assert Counter(problem.difficulty for problem in suite.problems) == {"easy": 17, "hard": 20}
    few = lcb(everything, platforms=["leetcode"], difficulties=["easy", "hard"], first=3)
    assert [p.id for p in few.problems] == [p.id for p in suite.problems[:3]]
    assert [few.problems.whole(n).id for n in range(3)] == [p.id for p in few.problems]
    assert few.name == "livecodebench v6 (leetcode, easy and hard, first 3)"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "2024-8-1"}, "--from 2024-8-1 is no day; write it as YYYY-MM-DD"),
        ({"end": "2025-02-30"}, "--to 2025-02-30 is no day"),
        ({"start": "20250101"}, "is no day"),
        ({"start": "2025-03-01", "end": "2025-02-01"}, "is after --to"),
        ({"start": "2030-01-01"}, "none of 175 problems fits from 2030-01-01; .*atcoder 112.*dates 2025-01-"),
        ({"platforms": ["AtCoder"]}, "--platform AtCoder: .*did you mean 'atcoder'.*leetcode 63"),
        ({"platforms": ["codeforces"]}, "--platform codeforces: no problem has it"),
        ({"difficulties": ["expert"]}, "--difficulty expert: .*hard 80, medium 52, easy 43"),
        ({"first": 0}, "--first 0 leaves no problem"),
    ],
)
def test_a_choice_that_leaves_nothing_is_refused_with_what_there_is(everything, options, words):
    refused(words, data=str(everything.folder), **options)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut, r"test6\.jsonl:5: not JSON .*cut off.*Download the file again"),
        (cut_between_lines, r"test6\.jsonl has 7 problems, but test6\.jsonl of .* has 175; .*cut off.*--unchecked"),
        (lambda path: path.write_text(""), "has 0 problems"),
        (lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\n"), r":1: .*git lfs pull"),
        (lambda path: path.write_text("[1]\n"), r":1: no problem of .*lacks question_title"),
        (lambda path: path.write_text("[" * 100_000), r":1: not JSON"),
        (lambda path: change(path, 3, metadata=None), r"test6\.jsonl:3: .*lacks metadata; download"),
        (lambda path: change(path, 3, private_test_cases="!"), r":3: unreadable_tests .*neither JSON nor base64"),
        (lambda path: change(path, 3, private_test_cases="AAAA"), r":3: unreadable_tests .*no zlib data"),
        (lambda path: change(path, 3, public_test_cases='[{"input": "1"}]'), r":3: unreadable_tests .*no output"),
        (lambda path: change(path, 3, public_test_cases="[]", private_test_cases="[]"), r':3: .*"tests" is empty'),
        (lambda path: change(path, 3, platform="topcoder"), r":3: platform is 'topcoder'; it must be one of atcoder"),
        (lambda path: change(path, 3, difficulty=""), r":3: difficulty is ''"),
        (lambda path: change(path, 3, contest_date="May 2025"), r":3: contest_date is 'May 2025'"),
        (lambda path: change(path, 3, question_content={}), r":3: unreadable_row"),
        (lambda path: change(path, 3, question_id=json.loads(path.read_text().splitlines()[0])["question_id"]),
         r"test6\.jsonl:3: problem .* is in .*test6\.jsonl:1 already"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_with_the_place_and_the_reason(few, damage, words):
    (path,) = few.paths
    damage(path)
    refused(words, data=str(path))


def test_a_hostile_pickle_is_refused_and_not_executed(few, tmp_path):
    marker = tmp_path / "marker"
    make_hostile(few.paths[0], 2, marker)
    refused(r"test6\.jsonl:2: unsafe_pickle", data=str(few.folder), unchecked=True)
    assert not marker.exists()


def test_files_of_ones_own_making_are_read_unchecked(few):
    assert len(lcb(few, unchecked=True).problems) == 8
    assert len(load_suite("livecodebench", data=str(few.paths[0]), unchecked=True).problems) == 8


def test_the_digest_changes_with_problems_their_order_and_each_test(few):
    (path,) = few.paths
    digest = lcb(few, unchecked=True).digest
    assert lcb(few, unchecked=True).digest == digest
    assert lcb(few, unchecked=True, first=7).digest != digest
    whole, tests = path.read_text(), json.loads(json.loads(path.read_text().splitlines()[4])["private_test_cases"])
    tests[-1]["output"] += " "
    seen = {digest}
    for columns in (
        {"private_test_cases": json.dumps(tests)},
        {"question_id": "other"},
        {"question_content": "Other."},
        {"starter_code": "class Solution:\n    pass"},
    ):
        change(path, 5, **columns)
        seen.add(lcb(few, unchecked=True).digest)
        path.write_text(whole)
    path.write_text("\n".join(reversed(whole.splitlines())))
    seen.add(lcb(few, unchecked=True).digest)
    assert len(seen) == 6


def test_recent_problems_are_kept_up_to_a_number_of_bytes(few):
    stored = list(read_lines(few.paths[0], parse))
    sizes = [StoredProblems(stored, parse).whole(n).size() for n in range(3)]
    problems = StoredProblems(stored, parse, recent=sizes[0] + sizes[1])
    first, second = problems.whole(0), problems.whole(1)
    assert problems.whole(0) is first  # and now the second is the one that was asked for longest ago
    problems.whole(2)
    assert problems.whole(1) is not second
    assert problems.whole(1) == second
    tight = StoredProblems(stored, parse, recent=0)
    assert tight.whole(4) is tight.whole(4)  # several tries at one problem come in a row


def test_threads_that_ask_at_the_same_time_get_the_same_problems(few):
    problems = lcb(few, unchecked=True).problems
    start, got = threading.Barrier(8), [[] for _ in range(8)]

    def ask(mine):
        start.wait()
        mine.extend(problems.whole(n) for n in range(8))

    threads = [threading.Thread(target=ask, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one is first for others in got for one, first in zip(others, got[0], strict=True))
    assert [problem.id for problem in got[0]] == [problem.id for problem in problems]


def test_a_file_that_changes_under_a_bench_is_refused(few):
    problems = lcb(few, unchecked=True).problems
    change(few.paths[0], 1, question_content="Other.")
    with pytest.raises(BenchError, match=r"test6\.jsonl:1 is not what it was when the bench began"):
        problems.whole(0)
    few.paths[0].unlink()
    with pytest.raises(BenchError, match=r"cannot read .* again"):
        problems.whole(1)


def test_without_data_the_files_come_from_the_hub(everything):
    asked = []

    def download(repo, name):
        asked.append((repo, name))
        return str(everything.folder / name)

    assert len(load_suite("livecodebench", release="v5", download=download).problems) == 167
    assert asked == [("livecodebench/code_generation_lite", "test5.jsonl")]


def test_where_the_hub_cannot_be_reached_the_files_to_download_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    files = r"download test5\.jsonl, test6\.jsonl from https://huggingface\.co/datasets/livecodebench/.*--data"
    refused(files, release="v5_v6", download=hub_file)
    refused(r"download full/test-00000-of-00001\.parquet from .*datasets/google-research-datasets/mbpp.*--data", "mbpp")


@pytest.mark.parametrize(
    ("data", "release", "words"),
    [
        ("none", "v6", "there is no such file or folder; download test6"),
        (".", "v4_v6", r"test4\.jsonl, test5\.jsonl not in that folder; download test4\.jsonl, test5\.jsonl from"),
        ("test6.jsonl", "v4_v6", "is one file, but 3 are asked for .*name the folder"),
    ],
)
def test_data_that_lacks_files_says_which(few, monkeypatch, data, release, words):
    monkeypatch.chdir(few.folder)
    refused(words, data=data, release=release)


def test_the_slices_between_two_releases_are_their_files():
    assert release_files("v1_v2") == ["test.jsonl", "test2.jsonl"]
    assert release_files("release_v2") == ["test.jsonl", "test2.jsonl"]


PROMPT = 'from typing import List\n\n\ndef double(x: int) -> int:\n    """Twice x."""\n'
CHECK = "def check(candidate):\n    assert candidate(2) == 4\n"


def humaneval_rows(count):
    row = {"prompt": PROMPT, "entry_point": "double", "canonical_solution": "    return 2 * x\n", "test": CHECK}
    return [{"task_id": f"HumanEval/{n}", **row} for n in range(count)]


def mbpp_rows(numbers):
    return [
        {"task_id": n, "text": f"Write a function to add {n}.", "code": f"def add(x):\r\n  return x + {n}",
         "test_list": [f"assert add(1) == {n + 1}", f"assert add(0) == {n}"], "test_setup_code": "",
         "challenge_test_list": ["assert add(7) == 'never asked'"]}
        for n in numbers
    ]  # fmt: skip


def jsonl(path, rows):
    data = "\n".join(map(json.dumps, rows)).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def accepted(suite, codes):
    pairs = [(suite.problems.whole(n), Solution(suite.problems[n].id, code=code)) for n, code in codes.items()]
    with Judge(time_limit_s=suite.time_limit_s) as judge:
        return all(verdict.accepted for _, verdict in judge.map(pairs))


def test_humaneval_is_164_problems_asked_with_their_raw_prompts(tmp_path):
    suite = load_suite("humaneval", data=jsonl(tmp_path / "h.jsonl.gz", humaneval_rows(164)))
    assert (len(suite.problems), suite.style, suite.tries, suite.limits) == (164, "humaneval", 4, (1024,))
    assert suite.time_limit_s == 3
    problem = suite.problems[3]
    assert (problem.id, problem.statement, problem.setup) == ("HumanEval/3", "Twice x.", "from typing import List")
    assert messages(problem, suite.style)[0]["content"].endswith(f"the code for this function.\n{PROMPT}")
    assert problem.solutions[0]["code"] == PROMPT + "    return 2 * x\n"
    assert accepted(suite, {3: problem.solutions[0]["code"]})
    assert not accepted(suite, {3: "def double(x): return 5"})


def test_mbpp_is_its_test_part_with_its_three_asserts_alone(tmp_path):
    suite = load_suite("mbpp", data=jsonl(tmp_path / "m.jsonl", mbpp_rows(range(1, 975))))
    assert (len(suite.problems), suite.style, suite.limits, suite.time_limit_s) == (500, "mbpp", (1024,), 10)
    assert [suite.problems[0].id, suite.problems[-1].id] == ["mbpp/11", "mbpp/510"]
    assert suite.problems[0].asserts == ["assert add(1) == 12", "assert add(0) == 11"]
    assert accepted(suite, {0: suite.problems[0].solutions[0]["code"]})


def test_a_setup_of_mbpp_can_build_on_the_answers_own_class(tmp_path):
    code = "class Node:\n    def __init__(self, v):\n        self.v = v\n\ndef value(n):\n    return n.v"
    (row,) = mbpp_rows([367])
    row |= {"code": code, "test_setup_code": "root = Node(3) \r\nroot.v = 4", "test_list": ["assert value(root) == 4"]}
    suite = load_suite("mbpp", data=jsonl(tmp_path / "m.jsonl", [row]), unchecked=True)
    assert suite.problems[0].asserts == ["root = Node(3) \nroot.v = 4\nassert value(root) == 4"]
    assert accepted(suite, {0: code})
    assert not accepted(suite, {0: code.replace("n.v", "3")})


@pytest.mark.parametrize("inside", ["openai_humaneval/test-00000-of-00001.parquet", "test-00000-of-00001.parquet"])
def test_a_folder_may_be_laid_out_as_on_the_hub(tmp_path, inside):
    (tmp_path / inside).parent.mkdir(exist_ok=True)
    pa.parquet.write_table(pa.Table.from_pylist(humaneval_rows(164)), tmp_path / inside)
    assert len(load_suite("humaneval", data=str(tmp_path)).problems) == 164


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [
        ("humaneval", humaneval_rows(163), "has 163 problems, but humaneval has 164; download .*--unchecked"),
        ("mbpp", mbpp_rows(range(1, 400)), "has 389 problems with ids 11 to 510, but mbpp has 500"),
        ("humaneval", [*humaneval_rows(2), humaneval_rows(1)[0]], r"d\.jsonl:3: HumanEval/0 is there already"),
        ("humaneval", [{"task_id": "HumanEval/0"}], r"d\.jsonl:1: missing_column"),
        ("humaneval", [[]], r"d\.jsonl:1: unreadable_row"),
        ("mbpp", [{**mbpp_rows([11])[0], "test_list": []}], r'd\.jsonl:1: .*"asserts" is empty'),
        ("mbpp", [{**mbpp_rows([11])[0], "task_id": "eleven"}], "mbpp/eleven is no task of mbpp"),
    ],
)
def test_a_classic_that_is_not_whole_is_refused(tmp_path, name, rows, words):
    refused(words, name, data=jsonl(tmp_path / "d.jsonl", rows))


def test_any_file_of_problems_is_a_suite_with_our_own_prompts(tmp_path):
    path = tmp_path / "mine.jsonl"
    problems = [Problem(str(n), tests=[Test("1", "1")], date=f"2024-01-0{n}", platform="here") for n in range(1, 4)]
    write_problems(path, problems)
    suite = load_suite(str(path))
    assert (suite.name, suite.style, [p.id for p in suite.problems]) == (str(path), "microcoder", ["1", "2", "3"])
    assert suite.problems.whole(0).tests == [Test("1", "1")]
    assert [p.id for p in load_suite(str(path), start="2024-01-02", platforms=["here"], first=1).problems] == ["2"]


def test_a_file_in_a_layout_that_data_knows_is_a_suite_too(tmp_path):
    suite = load_suite(jsonl(tmp_path / "m.jsonl", mbpp_rows([1, 2])))
    assert (suite.style, [problem.id for problem in suite.problems]) == ("microcoder", ["mbpp/1", "mbpp/2"])


ONE = {"id": "a", "tests": [{"input": "1", "output": "1"}]}


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([ONE, ONE], {}, r"mine\.jsonl:2: .*already on line 1.*mend the line"),
        ([ONE, {"id": "b"}], {}, r"mine\.jsonl:2: .*\"tests\" is empty"),
        (mbpp_rows([1, 1]), {}, "'mbpp/1' is there twice"),
        ([{"what": 1}], {}, "no layout that is known"),
        ([], {}, "it is empty"),
        ([ONE], {"start": "2024-01-01"}, "1 of 1 problems have no date"),
        ([ONE], {"release": "v6"}, "--release cannot be used with .*mine.jsonl, which is a file of problems"),
        ([ONE], {"data": "x", "unchecked": True}, "leave out --data and --unchecked"),
    ],
)
def test_a_file_of_problems_that_cannot_be_used_is_refused(tmp_path, rows, options, words):
    refused(words, jsonl(tmp_path / "mine.jsonl", rows), **options)


@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
def test_options_that_a_suite_does_not_have_are_refused(name):
    refused(f"--release and --platform cannot be used with {name}", name, release="v6", platforms=["atcoder"])


@pytest.mark.parametrize(
    ("name", "words"), [("livecodbench", "did you mean 'livecodebench'"), ("gsm", "suites are livecodebench, humane")]
)
def test_a_suite_that_does_not_exist_gets_the_nearest_name(name, words):
    refused(words, name)
