"""The rollouts of steps: one compressed file for each step, an index of the files, and a file of groups.

A rollout is a flat record: step, row, problem (its id), completion, code, verdict, strategy, message, reward,
advantage, length, truncated, repeated, masked, temperature, sample. With several turns (grpo.turns) these are of its
last try, and `earlier` lists those before it: completion, code, verdict, message, told, length, truncated.

A step's file begins with the statements of its problems and the prompts that the model saw, so it can be read on its
own. The completions of the evaluation after a step are in test_00040.jsonl.gz beside step_00040.jsonl.gz; the index and
the groups cover training only. A file that unpacks to more than LARGEST bytes is not read to its end.

The index only saves time. An entry whose file is gone or has another size is ignored, and a file that is not listed is
read instead, so a kill between the two writes loses nothing.

groups.jsonl has the results of each problem at each step, so that a search needs no file of rollouts:

    {"step": 40, "size": 3362, "groups": [["p0", 8, 3, 1, 0, 128, -1.2], ...]}

The fields are those of Group. A line whose file of rollouts is gone or has another size is skipped. Runs of old
versions have no such lines.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..files import json_line
from ..schema import ACCEPTED
from .disk import LINE, RunError, append_line, lines_of, opened, plain, read_lines, write_whole, writing

Rollout = dict[str, Any]
GROUPS = "groups.jsonl"
Texts = Mapping[str, str]  # texts by problem id
LARGEST, BUDGET_S = 1 << 28, 20.0  # most bytes that a file may unpack to; most seconds for reading one


def write_rollouts(
    run: str | Path,
    step: int,
    rollouts: Sequence[Rollout],
    statements: Texts | None = None,
    prompts: Texts | None = None,
    test: bool = False,
) -> Path:
    """Write the rollouts of a step; equal rollouts give equal bytes. `test`: those of the evaluation after the step."""
    path = _file(run, step, test)
    with writing(path):
        path.parent.mkdir(exist_ok=True)
    problems = dict.fromkeys([*(statements or {}), *(prompts or {})])
    kinds = {"statement": statements or {}, "prompt": prompts or {}}
    texts = [{"problem": name} | {kind: of[name] for kind, of in kinds.items() if name in of} for name in problems]
    rows = [plain({"step": step} | rollout) for rollout in rollouts]
    data = gzip.compress(b"".join(map(json_line, [*texts, *rows])), compresslevel=6, mtime=0)
    write_whole(path, data)
    if not test:
        append_line(_index(run), _entry(path, step, rows, len(data)))
        groups = [list(group) for group in groups_of(rows)]
        append_line(path.with_name(GROUPS), {"step": step, "size": len(data), "groups": groups})
    return path


def read_rollouts(run: str | Path, step: int, test: bool = False) -> list[Rollout]:
    """Read the rollouts of a step in the order of rows. If a step has none, the error names the nearest step."""
    what = "answers of an evaluation" if test else "rollouts"
    if not _file(run, step, test).exists():
        there = steps(run, test)
        if not there:
            raise RunError(f"{run} holds no {what} yet; they are written as training goes on")
        near = min(there, key=lambda other: abs(other - step))
        raise RunError(
            f"{run} holds no {what} of step {step}; the nearest is step {near}, "
            f"of {len(there)} from step {there[0]} to {there[-1]}"
        )
    return [record for record in _records(_file(run, step, test)) if not is_text(record)]


def steps(run: str | Path, test: bool = False) -> list[int]:
    """Return the steps that have rollouts; with `test`, those that have completions of an evaluation."""
    return sorted(_files(run, test))


def read_statements(run: str | Path, step: int, test: bool = False) -> dict[str, str]:
    """Return {problem id: statement} for the problems of a step."""
    return {r["problem"]: r["statement"] for r in _records(_file(run, step, test)) if "statement" in r}


def read_prompts(run: str | Path, step: int, test: bool = False) -> dict[str, str]:
    """Return {problem id: prompt} for the problems of a step; {} for runs of versions that did not keep prompts."""
    return {r["problem"]: r["prompt"] for r in _records(_file(run, step, test)) if "prompt" in r}


def unpacked(path: Path, seconds: float = math.inf) -> Iterator[bytes]:
    """Yield the lines of a file of rollouts. Raise RunError beyond LARGEST bytes or `seconds`."""
    size, ends = 0, time.perf_counter() + seconds
    with opened(path) as packed, gzip.open(packed, "rb") as file:
        while line := file.readline(LINE):
            size += len(line)
            if size > LARGEST:
                raise RunError(f"{path.name} unpacks to more than {LARGEST >> 20} MiB")
            if time.perf_counter() > ends:
                raise RunError(f"{path.name} unpacks to more than {seconds:g} s can read")
            yield line


def is_text(record: Rollout) -> bool:
    """Whether a record of a step's file is a problem's statement or prompt, not a rollout."""
    return "completion" not in record and ("statement" in record or "prompt" in record)


def index(run: str | Path) -> list[dict[str, Any]]:
    """Return an entry for each step with rollouts: step, file, rows, reward, accuracy, shares, size. Write nothing."""
    listed = {entry["step"]: entry for entry in read_lines(_index(run))}
    entries = []
    for step, path in sorted(_files(run).items()):
        entry, size = listed.get(step), path.stat().st_size
        if entry is None or entry.get("size") != size:
            entry = _entry(path, step, read_rollouts(run, step), size)
        entries.append(entry)
    return entries


def drop_after(run: str | Path, step: int) -> None:
    """Remove the rollouts of later steps, and update the index."""
    for later, path in [*_files(run).items(), *_files(run, test=True).items()]:
        if later > step:
            with writing(path):
                path.unlink()
    if _index(run).exists() or _files(run):
        write_whole(_index(run), b"".join(map(json_line, index(run))))
    drop_groups_after(_index(run).parent, step)


def select(
    rollouts: Iterable[Rollout],
    *,
    worst: int | None = None,
    best: int | None = None,
    problem: str | None = None,
    verdict: str | None = None,
    masked: bool | None = None,
    truncated: bool | None = None,
    limit: int | None = None,
) -> list[Rollout]:
    """Select the rollouts that match, in order; or the `worst` N: lowest reward, then advantage, then the longest.

    `best` N: highest reward, then advantage, then the shortest. A rollout without a reward (a fault of the judge) is
    in neither.
    """
    if worst is not None and best is not None:
        raise ValueError("either the worst or the best can be selected, not both; leave one out")
    wanted = {"problem": problem, "verdict": verdict, "masked": masked, "truncated": truncated}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    found = [r for r in rollouts if all(r.get(name) == value for name, value in wanted.items())]
    if worst is not None or best is not None:
        found = [r for r in found if r.get("reward") is not None]
        found.sort(key=lambda r: (r["reward"], r.get("advantage") or 0.0, -r["length"]), reverse=best is not None)
    counts = [count for count in (worst, best, limit) if count is not None]
    return found[: min(counts)] if counts else found


def _entry(path: Path, step: int, rollouts: Sequence[Rollout], size: int) -> dict[str, Any]:
    judged = [r for r in rollouts if r.get("verdict") != "internal_error"]  # a fault of the judge is not the model's
    return {
        "step": step,
        "file": path.name,
        "rows": len(rollouts),
        "reward": _mean([r["reward"] for r in rollouts if r.get("reward") is not None]),
        "accuracy": _mean([r.get("verdict") == ACCEPTED for r in judged]),
        "truncated_share": _mean([bool(r.get("truncated")) for r in rollouts]),
        "masked_share": _mean([bool(r.get("masked")) for r in rollouts]),
        "size": size,
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 6) if values else None


def _records(path: Path) -> list[dict[str, Any]]:
    try:
        found = [json.loads(line) for line in unpacked(Path(os.path.realpath(path)))]
        if not all(isinstance(record, dict) and "problem" in record for record in found):
            raise ValueError("a line is no rollout")
        return found
    except RunError as error:
        raise RunError(f"cannot read {path}: {error}; move it away to use the rest") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise RunError(f"cannot read {path}: {error}; if it is damaged, remove it to use the rest") from None


def _file(run: str | Path, step: int, test: bool = False) -> Path:
    return Path(run) / "rollouts" / f"{'test' if test else 'step'}_{step:05}.jsonl.gz"


def _files(run: str | Path, test: bool = False) -> dict[int, Path]:
    paths, kind = (Path(run) / "rollouts").glob("*.jsonl.gz"), "test" if test else "step"
    return {int(match[1]): path for path in paths if (match := re.fullmatch(rf"{kind}_(\d+)\.jsonl\.gz", path.name))}


def _index(run: str | Path) -> Path:
    return Path(run) / "rollouts" / "index.jsonl"


class Group(NamedTuple):
    """The samples of one problem at one step."""

    problem: str
    rows: int
    accepted: int
    truncated: int
    masked: int
    longest: int  # tokens
    lowest: float  # advantage


def group_of(problem: str, rollouts: Sequence[dict[str, Any]]) -> Group:
    return Group(
        problem,
        len(rollouts),
        sum(r.get("verdict") == ACCEPTED for r in rollouts),
        sum(bool(r.get("truncated")) for r in rollouts),
        sum(bool(r.get("masked")) for r in rollouts),
        max((r.get("length") or 0 for r in rollouts), default=0),
        round(min((r.get("advantage") or 0.0 for r in rollouts), default=0.0), 4),
    )


def groups_of(rollouts: Sequence[dict[str, Any]]) -> list[Group]:
    """Return a group for each problem, in the order in which problems first occur."""
    found: dict[str, list[dict[str, Any]]] = {}
    for rollout in rollouts:
        found.setdefault(rollout["problem"], []).append(rollout)
    return [group_of(problem, rows) for problem, rows in found.items()]


def read_groups(run: str | Path, problem: str | None = None) -> Iterator[tuple[int, list[Group]]]:
    """Yield (step, groups) in the order of steps, line by line; skip broken lines.

    With `problem`, only steps that sampled it; the other lines are not parsed.
    """
    folder, last = Path(run) / "rollouts", -1
    named = {} if problem is None else {json_line({"": problem})[5:-2], json.dumps(problem).encode()}
    for line in _lines(folder / GROUPS):
        if named and not any(name in line for name in named):
            continue
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
            record = json.loads(line)
            step, groups = int(record["step"]), [_checked(Group._make(group)) for group in record["groups"]]
            if step > last and (folder / f"step_{step:05}.jsonl.gz").stat().st_size == record["size"]:
                last = step
                yield step, groups


def drop_groups_after(folder: Path, step: int) -> None:
    path = folder / GROUPS
    if path.exists():
        kept = []
        for line in _lines(path):
            with contextlib.suppress(ValueError, KeyError, TypeError):  # a broken line is dropped
                kept += [line] if json.loads(line)["step"] <= step else []
        if kept:
            write_whole(path, b"".join(kept))
        else:
            with writing(path):
                path.unlink()


def _lines(path: Path) -> Iterator[bytes]:
    with contextlib.suppress(OSError), opened(path) as file:
        yield from lines_of(file)


def _checked(group: Group) -> Group:
    """Return the group. Raise TypeError if its fields have wrong types."""
    numbers = group[1:]
    if not isinstance(group.problem, str) or not all(isinstance(n, int | float) and abs(n) < 1e15 for n in numbers):
        raise TypeError("it is no group")
    return group
