"""What the pipeline leaves behind: the problems, the same in the layouts that TRL and verl read, and a card.

    dataset/problems.parquet   ours: `microcoder train data.train=out/dataset/problems.parquet`
    dataset/trl.parquet        prompt (a conversation), id, problem (JSON)
    dataset/verl.parquet       data_source, prompt, ability, reward_model, extra_info
    dataset/README.md          a card: counts, sources, licences, how it was made
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ..files import write_problems
from ..prompts import messages
from ..schema import Problem
from .difficulty.select import known_hardness
from .parts import read_records
from .report import Done

BATCH = 500  # rows in memory


def write_dataset(folder: Path, parts: list[Path], steps: list[Done], settings: str) -> dict[str, int]:
    """All files; returns the number of problems by source."""
    folder.mkdir(parents=True, exist_ok=True)
    sources: Counter[str] = Counter()
    licences: Counter[str] = Counter()

    def counted() -> Iterator[Problem]:
        for problem in problems(parts):
            sources[problem.source or "unknown"] += 1
            licences[problem.licence or "unknown"] += 1
            yield problem

    write_problems(folder / "problems.parquet", counted())
    _write(folder / "trl.parquet", problems(parts), for_trl)
    _write(folder / "verl.parquet", problems(parts), for_verl)
    (folder / "README.md").write_text(card(sources, licences, steps, settings), encoding="utf-8")
    return dict(sources)


def problems(parts: Iterable[Path]) -> Iterator[Problem]:
    """With the hardness that was found as their score, so that `data.difficulty` can choose by it in training."""
    for part in parts:
        for record in read_records(part):
            if (hard := known_hardness(record)) is not None:
                record.problem.difficulty_score = round(hard, 4)
            yield record.problem


def for_trl(problem: Problem, number: int) -> dict[str, Any]:
    """A row for TRL: `prompt`, and what a reward function needs."""
    return {"id": problem.id, "prompt": messages(problem), "problem": _json(problem)}


def for_verl(problem: Problem, number: int) -> dict[str, Any]:
    """A row for verl's RLHF dataset."""
    hard = problem.difficulty_score if problem.difficulty_score is not None else math.nan  # a column has one type
    return {
        "data_source": problem.source or "microcoder",
        "prompt": messages(problem),
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": _json(problem)},
        "extra_info": {"id": problem.id, "index": number, "split": "train", "difficulty": hard},
    }


def card(sources: Counter[str], licences: Counter[str], steps: list[Done], settings: str) -> str:
    """What the data set is made of and how, in the form that hubs read."""
    total = sources.total()
    size = next(
        (name for most, name in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")) if total < most),
        "100K<n<1M",
    )
    lines = ["---", "task_categories:", "- text-generation", "tags:", "- code", "- reinforcement-learning"]
    lines += ["size_categories:", f"- {size}", "---", "", "# Programming problems with tests", ""]
    lines += [f"{total:,} problems, made by `microcoder data run` from the sources below.", ""]
    lines += ["| source | problems |", "|---|---|", *(f"| {name} | {n:,} |" for name, n in sources.most_common()), ""]
    lines += ["| licence | problems |", "|---|---|", *(f"| {name} | {n:,} |" for name, n in licences.most_common()), ""]
    lines += ["| step | kept | dropped |", "|---|---|---|"]
    for step in steps:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in step.counts.dropped.most_common())
        lines.append(f"| {step.name} | {step.counts.kept:,} | {reasons} |")
    return "\n".join([*lines, "", "The settings:", "", "```toml", settings.strip(), "```", ""])


def _write(path: Path, rows: Iterator[Problem], layout: Callable[[Problem, int], dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = path.with_name(f".{path.name}.part")
    writer = None
    number = 0
    try:
        while batch := list(islice(rows, BATCH)):
            table = pa.Table.from_pylist([layout(problem, number + n) for n, problem in enumerate(batch)])
            number += len(batch)
            writer = writer or pq.ParquetWriter(part, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:  # nothing is left, and what an earlier run left would not be true
        path.unlink(missing_ok=True)
    else:
        part.replace(path)


def _json(problem: Problem) -> str:
    return json.dumps(problem.to_dict(), ensure_ascii=False)
