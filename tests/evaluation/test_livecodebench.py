"""LiveCodeBench as a suite: all of the problems that a release has, or a message that says what to do."""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter

import pytest
from livecodebench_files import change, cut, cut_between_lines, make_hostile, write_release

import microcoder as mc
from microcoder import Judge, Solution
from microcoder.evaluation.catalog import hub_file, load_suite, release_files
from microcoder.evaluation.catalog import livecodebench_problem as parse
from microcoder.evaluation.suite import EvaluationError, StoredProblems, read_lines
from microcoder.files import write_problems


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
    with pytest.raises(EvaluationError, match=words):
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
        ({"difficulties": ["expert"]}, "--difficulty expert: .*easy 43, medium 52, hard 80"),
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
    with pytest.raises(EvaluationError, match=r"test6\.jsonl:1 has changed since the evaluation began"):
        problems.whole(0)
    few.paths[0].unlink()
    with pytest.raises(EvaluationError, match=r"cannot read .* again"):
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


def without_private_tests(few, lines, private="[]"):
    for line in lines:
        change(few.paths[0], line, private_test_cases=private)
    return few


@pytest.mark.parametrize("private", ["[]", None])  # None: not even the column
def test_public_tests_alone_are_no_livecodebench_score_and_say_so(few, tmp_path, private):
    suite = lcb(without_private_tests(few, range(1, 9), private), unchecked=True)
    assert suite.tests == "public tests only: not a LiveCodeBench score"
    assert len(suite.problems.whole(0).tests) == 2
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps({"question_id": i, "code_list": [c]}) + "\n" for i, c in few.right.items()))
    scores = mc.evaluate(
        suite="livecodebench", completions=answers, data=str(few.folder), unchecked=True, output=tmp_path / "out"
    )
    assert scores.accuracy == 1.0
    assert json.loads((tmp_path / "out/scores.json").read_text())["tests"] == suite.tests
    for text in (str(scores), (tmp_path / "out/report.md").read_text(), (tmp_path / "out/table.tex").read_text()):
        assert "public tests only: not a LiveCodeBench score" in " ".join(text.split())


def test_private_tests_that_some_problems_lack_are_counted(few):
    assert lcb(few, unchecked=True).tests == ""
    suite = lcb(without_private_tests(few, [1, 4, 5]), unchecked=True)
    assert suite.tests == "public tests only in 3 of 8 problems: not a LiveCodeBench score"


def test_a_compressed_file_is_read(few, tmp_path):
    path = tmp_path / "v6.jsonl.gz"
    path.write_bytes(gzip.compress(few.paths[0].read_bytes()))
    packed = load_suite("livecodebench", data=str(path), unchecked=True)
    plain = lcb(few, unchecked=True)
    assert packed.digest == plain.digest and packed.problems.whole(7) == plain.problems.whole(7)


def test_a_file_with_forged_tests_says_so(few, tmp_path):
    suite = lcb(without_private_tests(few, range(1, 9)), unchecked=True)
    found = [suite.problems.whole(n) for n in range(4)]
    found[0].extra["forge"] = {"tests": [{"test": 1}]}
    found[1].extra["forge"] = {"reason": "no solution"}
    path = tmp_path / "forged.jsonl"
    write_problems(path, found[:1])
    assert load_suite(str(path)).tests == "public tests only: not a LiveCodeBench score; with forged tests"
    write_problems(path, found)
    assert load_suite(str(path)).tests.endswith("; with forged tests in 1 of 4")
