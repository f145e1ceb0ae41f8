"""A bench's folder for whoever reads it: what was asked, every try with its verdicts, what came out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..schema import Verdict
from .records import BenchError, Mark, Sample
from .score import outcomes


@dataclass(frozen=True)
class Bench:
    path: Path
    ask: dict[str, Any]
    marks: list[Mark]

    def tries(self, limit: int, policy: str) -> dict[str, list[float]]:
        """1 or 0 for each try that was judged, by problem."""
        return outcomes([mark for mark in self.marks if mark.limit == limit], policy)


def read_bench(path: str | Path) -> Bench:
    """A whole bench; one that is not finished is refused."""
    folder = Path(path)
    ask = read_json(folder / "bench.json")
    if ask is None:
        inside = sorted(file.parent for file in folder.glob("**/bench.json")) if folder.is_dir() else []
        hint = f"; did you mean {inside[0]}?" if inside else "; to make one: microcoder bench MODEL --suite ..."
        raise BenchError(f"{path} holds no bench{hint}")
    if not (folder / "scores.json").exists():
        raise BenchError(f"the bench in {path} is not finished; run its command again, and it goes on")
    samples = read_samples(folder / "samples.jsonl")
    return Bench(folder, ask, marks_of(samples, _verdicts(folder / "verdicts.jsonl"), ask["limits"]))


def marks_of(samples: Iterable[Sample], verdicts: Mapping[str, Verdict], limits: Sequence[int]) -> list[Mark]:
    """Every try under every limit."""
    found = []
    for sample in sorted(samples, key=lambda sample: (sample.problem_id, sample.number)):
        for limit in limits:
            verdict = verdicts.get(verdict_id(sample, limit))
            if verdict is None:
                raise BenchError(f"{sample.id} was not judged; run the bench's command again, and it goes on")
            over = bool(limit and sample.tokens is not None and sample.tokens > limit)
            mark = Mark(
                sample.problem_id,
                sample.number,
                limit,
                robust=verdict.verdict,
                exact=verdict.also or verdict.verdict,
                strategy=verdict.strategy,
                robust_message=verdict.message,
                exact_message=verdict.also_message,
                tokens=limit if over else sample.tokens,
                truncated=over or sample.truncated,
            )
            found.append(mark)
    return found


def verdict_id(sample: Sample, limit: int) -> str:
    return f"{sample.id}@{limit}" if limit else sample.id


def read_json(path: Path) -> dict[str, Any] | None:
    """None where there is no such file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise BenchError(f"{path} cannot be read ({error}); start over with --fresh, or name another folder") from None
    if not isinstance(found, dict):
        raise BenchError(f"{path} holds no object; start over with --fresh, or name another folder")
    return found


def read_samples(path: Path) -> list[Sample]:
    """A torn last line is passed over."""
    return [as_sample(path, number, line) for number, line in enumerate(_lines(path), 1)]


def as_sample(path: Path, number: int, line: bytes) -> Sample:
    try:
        return Sample(**json.loads(line))
    except (ValueError, TypeError):
        raise BenchError(f"{path}:{number} is no sample; remove that line, or start over with --fresh") from None


def _verdicts(path: Path) -> dict[str, Verdict]:
    found = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            verdict = Verdict.from_dict(json.loads(line))
        except (ValueError, TypeError, AttributeError):
            raise BenchError(f"{path}:{number} is no verdict; start over with --fresh") from None
        found[verdict.id] = verdict
    return found


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\n")[:-1]  # the last piece is empty, or torn
    except OSError as error:
        raise BenchError(f"cannot read {path}: {error.strerror}") from None
