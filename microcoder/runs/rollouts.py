"""The rollouts of a step: one compressed file each, and an index with a line about each file.

A rollout is a flat record: step, row, problem (its id), completion, code, verdict, strategy, message, reward,
advantage, length, truncated, repeated, masked, temperature, sample. A step's file begins with the statements of its
problems, so it can be read on its own. The index is a convenience: an entry whose file is gone or has another size
is not believed, and a file that it does not list is read instead, so a kill between the two writes costs nothing.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..files import json_line
from ..schema import ACCEPTED
from .disk import RunError, append_line, plain, read_lines, write_whole, writing
from .groups import append_groups, drop_groups_after

Rollout = dict[str, Any]


def write_rollouts(
    run: str | Path, step: int, rollouts: Sequence[Rollout], statements: Mapping[str, str] | None = None
) -> Path:
    """Write the rollouts of a step; the same rollouts give the same bytes. `statements`: problem id -> text."""
    path = _file(run, step)
    with writing(path):
        path.parent.mkdir(exist_ok=True)
    texts = [{"problem": name, "statement": text} for name, text in (statements or {}).items()]
    rows = [plain({"step": step} | rollout) for rollout in rollouts]
    data = gzip.compress(b"".join(map(json_line, [*texts, *rows])), compresslevel=6, mtime=0)
    write_whole(path, data)
    append_line(_index(run), _entry(path, step, rows, len(data)))
    append_groups(path.parent, step, rows, len(data))
    return path


def read_rollouts(run: str | Path, step: int) -> list[Rollout]:
    """The rollouts of a step, in the order of their rows; a step without any is refused with the nearest that has."""
    if not _file(run, step).exists():
        there = steps(run)
        if not there:
            raise RunError(f"{run} holds no rollouts yet; they are written as training goes on")
        near = min(there, key=lambda other: abs(other - step))
        raise RunError(
            f"{run} holds no rollouts of step {step}; the nearest is step {near}, "
            f"of {len(there)} from step {there[0]} to {there[-1]}"
        )
    return [record for record in _records(_file(run, step)) if "statement" not in record]


def steps(run: str | Path) -> list[int]:
    """The steps that have rollouts."""
    return sorted(_files(run))


def read_statements(run: str | Path, step: int) -> dict[str, str]:
    """Problem id -> statement, for the problems of a step."""
    return {record["problem"]: record["statement"] for record in _records(_file(run, step)) if "statement" in record}


def index(run: str | Path) -> list[dict[str, Any]]:
    """An entry for each step that has rollouts: step, file, rows, reward, accuracy, shares, size. Writes nothing."""
    listed = {entry["step"]: entry for entry in read_lines(_index(run))}
    entries = []
    for step, path in sorted(_files(run).items()):
        entry, size = listed.get(step), path.stat().st_size
        if entry is None or entry.get("size") != size:
            entry = _entry(path, step, read_rollouts(run, step), size)
        entries.append(entry)
    return entries


def drop_after(run: str | Path, step: int) -> None:
    """Remove the rollouts of later steps, and mend the index."""
    for later, path in _files(run).items():
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
    """Those that match, in their order; or the `worst` so many: lowest reward, then advantage, then the longest.

    `best` is the other end: highest reward, then advantage, then the shortest. A rollout without a reward (a fault of
    the judge) is neither.
    """
    if worst is not None and best is not None:
        raise ValueError("the worst or the best can be selected, not both; leave one out")
    wanted = {"problem": problem, "verdict": verdict, "masked": masked, "truncated": truncated}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    found = [r for r in rollouts if all(r.get(name) == value for name, value in wanted.items())]
    if worst is not None or best is not None:
        found = [r for r in found if r.get("reward") is not None]
        found.sort(key=lambda r: (r["reward"], r.get("advantage") or 0.0, -r["length"]), reverse=best is not None)
    counts = [count for count in (worst, best, limit) if count is not None]
    return found[: min(counts)] if counts else found


def _entry(path: Path, step: int, rollouts: Sequence[Rollout], size: int) -> dict[str, Any]:
    judged = [r for r in rollouts if r.get("verdict") != "internal_error"]  # a fault of the judge is nobody's failure
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
        return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise RunError(f"cannot read {path}: {error}; if it is damaged, remove it to use the rest") from None


def _file(run: str | Path, step: int) -> Path:
    return Path(run) / "rollouts" / f"step_{step:05}.jsonl.gz"


def _files(run: str | Path) -> dict[int, Path]:
    paths = (Path(run) / "rollouts").glob("step_*.jsonl.gz")
    return {int(match[1]): path for path in paths if (match := re.fullmatch(r"step_(\d+)\.jsonl\.gz", path.name))}


def _index(run: str | Path) -> Path:
    return Path(run) / "rollouts" / "index.jsonl"
