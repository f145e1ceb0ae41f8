"""Select problems by difficulty: a floor drops easy ones, a target distribution thins out frequent bands.

Selection is by hardness, 0 to 1: 1 - success if a model was measured (`calibrate`), else the score itself.
Two passes: the first (`plan`) sees each problem's id and hardness and keeps a hash of it; the second (`selected`)
decides each problem alone. Which ones stay of a band is a draw by that hash of seed and id, so neither order nor the
division into parts matters, and a smaller selection is, up to rounding, a part of a larger one.

Reasons: `too_easy`, `over_target`, `unscored`.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from ..record import DataError, Dropped, Record


class SelectError(DataError):
    """A selection that cannot be made; the message says why and what to write instead."""


class Bands(NamedTuple):
    """Names of bands from easy to hard, and the hardness at which each but the first begins."""

    names: tuple[str, ...] = ("easy", "medium", "hard")
    edges: tuple[float, ...] = (1 / 3, 2 / 3)

    def of(self, hardness: float) -> str:
        return self.names[bisect_right(self.edges, hardness)]


BY_SCORE = Bands()  # a score is an expected label: 0, 0.5, 1
BY_SUCCESS = Bands(edges=(0.2, 0.6))  # success above 0.8 is easy, of 0.4 and less is hard


@dataclass(frozen=True)
class Selection:
    """A plan of the selection: a floor, and for each band a limit on a hash of the id."""

    bands: Bands
    floor: float  # easier problems are dropped
    limits: dict[str, int]  # by band: hashes below this stay
    seed: int
    before: dict[str, int]  # problems by band
    floored: dict[str, int]  # of these, not below the floor
    after: dict[str, int]  # of these, kept

    def refuse(self, ident: str, hardness: float) -> Dropped | None:
        """Return the reason to drop this problem, or None if it stays."""
        if hardness < self.floor:
            return Dropped("too_easy", f"hardness {hardness:.2f} < {self.floor:g}")
        band = self.bands.of(hardness)
        if lot(self.seed, ident) < self.limits[band]:
            return None
        return Dropped("over_target", f"{band}: {self.after[band]} of {self.floored[band]} stay")

    def table(self) -> str:
        """Return a table of problems by band, before and after."""
        lines = [f"{'band':10} {'before':>7} {'share':>6} {'too easy':>9} {'over':>7} {'after':>7} {'share':>6}"]
        totals = [max(1, sum(counts.values())) for counts in (self.before, self.after)]
        for band in self.bands.names:
            before, floored, after = self.before[band], self.floored[band], self.after[band]
            shares = [f"{count / total:6.1%}" for count, total in zip((before, after), totals, strict=True)]
            lines.append(
                f"{band:10} {before:7} {shares[0]} {before - floored:9} {floored - after:7} {after:7} {shares[1]}"
            )
        return "\n".join(lines)


def plan(
    pairs: Iterable[tuple[str, float]],
    *,
    floor: float = 0.0,
    target: Mapping[str, float] | None = None,
    bands: Bands = BY_SCORE,
    size: int | None = None,
    seed: int = 0,
) -> Selection:
    """Plan the selection from (id, hardness) of all problems. `target`: shares by band; other bands share the rest.

    As many problems stay as the target allows, but at most `size`.
    """
    before = dict.fromkeys(bands.names, 0)
    hashes: dict[str, list[int]] = {band: [] for band in bands.names}
    for ident, hardness in pairs:
        band = bands.of(hardness)
        before[band] += 1
        if hardness >= floor:
            hashes[band].append(lot(seed, ident))
    floored = {band: len(found) for band, found in hashes.items()}
    after = _numbers(floored, _shares(target or {}, floored), size)
    limits = {}
    for band, found in hashes.items():
        found.sort()
        limits[band] = found[after[band]] if after[band] < len(found) else 1 << 64
    return Selection(bands, floor, limits, seed, before, floored, after)


def select(pairs: Iterable[tuple[str, float]], **options: Any) -> list[bool]:
    """Return whether each problem stays; the options are those of `plan`."""
    pairs = list(pairs)
    made = plan(pairs, **options)
    return [made.refuse(*pair) is None for pair in pairs]


def known_hardness(record: Record) -> float | None:
    """Return 1 - success if a model was measured, else the score; None if there is neither."""
    for name in ("success", "difficulty"):
        value = record.notes.get(name)
        if isinstance(value, (int, float)) and isfinite(value):
            return 1 - value if name == "success" else float(value)
    return None


def hardness(record: Record) -> float:
    """Return `known_hardness`, or raise Dropped("unscored")."""
    known = known_hardness(record)
    if known is None:
        raise Dropped("unscored", "it has neither a difficulty nor a success rate; predict comes first")
    return known


def band_of(record: Record) -> str:
    """Return easy, medium or hard: for the model if one was measured, else by the score."""
    return (BY_SUCCESS if "success" in record.notes else BY_SCORE).of(hardness(record))


def selected(record: Record, *, plan: Selection) -> Record:
    """Return the record, or raise Dropped if it is not selected."""
    refused = plan.refuse(record.problem.id, hardness(record))
    if refused is None:
        return record
    if refused.reason == "too_easy" and "success" in record.notes:
        raise Dropped("too_easy", f"success {record.notes['success']:.2f} > {1 - plan.floor:.4g}")
    raise refused


def _shares(target: Mapping[str, float], counts: Mapping[str, int]) -> dict[str, float]:
    """Return target shares, with sum 1, for every band with problems; {} if there is no target."""
    if not target:
        return {}
    named = sum(target.values())
    if set(target) - set(counts) or min(target.values()) < 0 or not 0 < named <= 1 + 1e-9:
        raise SelectError(
            f"target is {dict(target)}; it must hold shares of {', '.join(counts)} that are at most 1 together, "
            "such as {easy = 0.2, hard = 0.5}"
        )
    free = {band: count for band, count in counts.items() if band not in target}
    rest = max(0.0, 1 - named)
    shares = {**target, **{band: rest * count / max(1, sum(free.values())) for band, count in free.items()}}
    shares = {band: share for band, share in shares.items() if counts[band]}  # a band without problems cannot be filled
    total = sum(shares.values())
    if not total:
        raise SelectError(f"target is {dict(target)}, but none of the problems is of these bands: {dict(counts)}")
    return {band: share / total for band, share in shares.items()}


def _numbers(counts: Mapping[str, int], shares: Mapping[str, float], size: int | None) -> dict[str, int]:
    """Return how many of each band stay: as many as the shares allow, rounded by largest remainders."""
    there = sum(counts.values())
    if not shares:
        shares = {band: count / max(1, there) for band, count in counts.items()}
    most = int(min((counts[band] / share for band, share in shares.items() if share), default=0) + 1e-9)
    total = most if size is None else min(most, size)
    exact = {band: total * shares.get(band, 0.0) for band in counts}
    whole = {band: min(counts[band], int(number + 1e-9)) for band, number in exact.items()}
    for band in sorted(counts, key=lambda band: whole[band] - exact[band])[: total - sum(whole.values())]:
        whole[band] += whole[band] < counts[band]
    return whole


def lot(seed: int, ident: str) -> int:
    """Return a 64-bit hash of seed and id to draw by, independent of order and parts."""
    digest = hashlib.blake2b(f"{seed} {ident}".encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")
