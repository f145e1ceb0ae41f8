"""What is asked: everything that samples and verdicts depend on. A bench goes on only if all of it is the same."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .records import BenchError

ENDS = 1 << 20  # bytes at either end of a file of weights that its fingerprint looks at
VERDICTS_DEPEND_ON = (
    "time_limit_s", "time_factor", "memory_mb", "output_mb", "reuse", "stop_at_first_failure", "sandbox",
)  # fmt: skip


@dataclass(frozen=True)
class Ask:
    model: str  # as it was named; or the file of completions
    weights: str  # a fingerprint: of the weights, of the file; or a server's address
    suite: str
    digest: str  # of its problems
    style: str
    source: str  # graph, transformers, vllm, server, file
    tries: int
    temperature: float | None  # None: not known, as of a file
    top_p: float
    top_k: int
    limits: tuple[int, ...]  # ascending; 0: none was set
    seed: int | None
    chunk: int  # problems that are sampled with one seed
    judge: dict[str, Any]  # its settings that verdicts depend on

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "limits": list(self.limits)}

    def check(self) -> Ask:
        """Itself, if a model can be asked so."""
        if self.tries < 1:
            raise BenchError(f"-n {self.tries}: at least one try at each problem is needed")
        if not self.limits or list(self.limits) != sorted(set(self.limits)) or min(self.limits) < 0:
            named = ", ".join(map(str, self.limits)) or "nothing"
            raise BenchError(f"limits of {named}; name each once: --limit 4096,8192")
        if self.temperature == 0 and self.tries > 1:
            raise BenchError(
                f"at temperature 0 all {self.tries} tries are the same; use -n 1, or a temperature above 0 such as 0.2"
            )
        return self


def differences(known: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    """`tries: 4 there, 8 now` for everything that is not the same."""
    names = [*known, *(name for name in asked if name not in known)]
    return [
        f"{name}: {_short(known.get(name))} there, {_short(asked.get(name))} now"
        for name in names
        if known.get(name) != asked.get(name)
    ]


def conditions(judge: dict[str, Any]) -> dict[str, Any]:
    """Of the options of Judge, those that verdicts depend on."""
    return {name: judge[name] for name in VERDICTS_DEPEND_ON}


def slug(name: str) -> str:
    """A name as that of a folder."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")


def fingerprint(path: str | Path) -> str:
    """Of a file, or of the weights in a folder: names, sizes and ends. A hub id stands for itself."""
    path = Path(path)
    if not path.exists():
        return str(path)
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    digest = hashlib.sha256()
    for file in sorted(p for p in path.iterdir() if _is_model(p)):
        size = file.stat().st_size
        with open(file, "rb") as stream:
            head = stream.read(ENDS)
            stream.seek(max(0, size - ENDS))
            digest.update(f"{file.name} {size} ".encode() + head + stream.read(ENDS))
    return digest.hexdigest()[:16]


def _is_model(path: Path) -> bool:
    return path.is_file() and path.suffix in (".safetensors", ".bin", ".json", ".jinja", ".model")


def _short(value: Any) -> str:
    return str(value) if len(str(value)) <= 60 else f"{str(value)[:57]}..."
