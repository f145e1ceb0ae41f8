"""MBPP and HumanEval as problems of ours, in MBPP's own split: train 601-974, validation 511-600, test 11-510.

1. The statement ends with the asserts, as MBPP's authors have it: without them nobody could know the arguments.
2. HumanEval's prompt is the starter code, and the answer the whole function; what stands above the function (imports,
   helpers) is at hand for an answer that leaves it out.
3. A setup that builds on the answer's own class (two of MBPP's) goes into the asserts, where the judge can run it.
4. A problem whose reference is not accepted is left out of train, and of train alone: test stays whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.judge.references import called, rows
from benchmarks.mbpp.results import TIME_LIMIT_S
from microcoder import Judge, Problem, Solution
from microcoder.files import write_problems

SPLITS = {"train": range(601, 975), "validation": range(511, 601), "test": range(11, 511)}
TESTS = "Your code should pass these tests:"
Row = tuple[Problem, str]  # a problem and its reference


def make(mbpp: str, humaneval: str, out: Path) -> None:
    """Write train, validation, test and humaneval, each reference judged once."""
    out.mkdir(parents=True, exist_ok=True)
    found = {name: [] for name in (*SPLITS, "humaneval")}
    for number, row in _mbpp(mbpp):
        for name, numbers in SPLITS.items():
            if number in numbers:
                found[name].append(row)
    found["humaneval"] = list(_humaneval(humaneval))
    with Judge(time_limit_s=TIME_LIMIT_S) as judge:
        for name, data in found.items():
            problems, refused = [problem for problem, _ in data], _refused(judge, data)
            if name == "train":
                problems = [problem for problem in problems if problem.id not in refused]
            write_problems(out / f"{name}.jsonl", problems)
            print(f"{name}: {len(problems)} problems; references accepted: {len(data) - len(refused)} of {len(data)}")
            for ident, reason in sorted(refused.items()):
                print(f"  {ident}: {reason}{'; left out' if name == 'train' else '; kept'}")


def _refused(judge: Judge, data: list[Row]) -> dict[str, str]:
    """{problem: why} of the references that are not accepted."""
    pairs = ((problem, Solution(problem.id, code=code)) for problem, code in data)
    verdicts = {solution.problem_id: verdict for solution, verdict in judge.map(pairs)}
    return {i: f"{v.verdict} ({v.message[:100]})" for i, v in verdicts.items() if not v.accepted}


def _mbpp(path: str) -> Iterator[tuple[int, Row]]:
    for row in rows(path):
        code, setup, asserts = _plain(row["code"]), _plain(row["test_setup_code"]), row["test_list"]
        problem = Problem(
            id=f"mbpp/{row['task_id']}",
            kind="assert",
            statement="\n".join([_plain(row["text"]), TESTS, *asserts]),
            entry_point=called(row, code),
            asserts=[f"{setup}\n{text}" for text in asserts] if setup else asserts,
            source="mbpp",
            licence="CC BY 4.0",
        )
        yield row["task_id"], (problem, code)


def _humaneval(path: str) -> Iterator[Row]:
    for row in rows(path):
        entry = row["entry_point"]
        problem = Problem(
            id=row["task_id"],
            kind="assert",
            statement="Write the whole function that the docstring describes.",
            starter_code=row["prompt"].strip(),
            entry_point=entry,
            asserts=[row["test"]],
            setup=row["prompt"].partition(f"def {entry}(")[0].strip(),
            source="humaneval",
            licence="MIT",
        )
        yield problem, row["prompt"] + row["canonical_solution"]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()
