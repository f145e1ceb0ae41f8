"""Find duplicates within and across sources: the first one stays, the others are dropped and name it.

`signature(record)` is computed in worker processes; one Index takes the signatures in order. Candidates come from
locality-sensitive hashing: each band of slots of a sketch is a key, and problems that share a key are compared
(`twins`).

Similar problems are not always duplicates (twins). "Perimeter of a square" and "perimeter of a rhombus" share text,
solution and tests; the easy and the hard version of a contest problem differ in one number; many problems have tests
such as `1 -> 1`. So every rule needs enough evidence, and three facts speak against a duplicate: tests with the same
input and another output, different choices of words in similar texts (`signature.choices`), and, if there is only the
text, literals on both sides that the other does not have.

    exact      the statement is the same, letter for letter
    text       a similarity of at least `threshold`; or one text contains the other and little more (an appended line)
    tests      they agree and have enough content (compressed bytes), or the solutions are alike too. Short texts that
               are half alike, as from a template, need more, long ones less
    solution   the same program, names aside: long enough to be no coincidence, or else with matching tests or text

The numbers were chosen on pairs of 3,601 problems of five public data sets, which were checked by eye.

The index is a chained hash table of plain arrays: `heads` has the latest row of each bucket of each key, `before` the
row before it. Keys are not stored: the comparison rejects a row that is in a bucket by chance. A problem takes 1 KB,
whatever its length; the capacity doubles when it is used up.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from .signature import SHORT, SIGNATURE, Array, choose_differently, signature

By = Literal["exact", "text", "tests", "solution"]


class Likeness(NamedTuple):
    """Similarity of two signatures, part by part: estimated Jaccard similarities, from 0 to 1."""

    text: float
    code: float
    inputs: float
    cases: float  # inputs with their outputs


def likeness(one: Array, many: Array) -> Array:
    """Return the likeness (many, 4) of one signature to each of many, in the order of Likeness."""
    text = (one["text"] == many["text"]).mean(axis=1) * ((many["shingles"] > 0) & (one["shingles"] > 0))  # (many,)
    code = (one["code"] == many["code"]).mean(axis=1) * ((many["tokens"] > 0) & (one["tokens"] > 0))
    shared = (one["inputs"] == many["inputs"]) & ((many["cases"] > 0) & (one["cases"] > 0))[:, None]  # (many, slots)
    agreed = shared & (one["outputs"] == many["outputs"])
    return np.stack([text, code, shared.mean(axis=1), agreed.mean(axis=1)], axis=1)


def twins(a: Array, b: Array, like: Likeness, threshold: float = 0.8) -> tuple[By, float] | None:
    """Return the evidence that two signatures are of one problem, and its similarity; None without evidence."""
    shingles, tokens, evidence = (min(int(a[name]), int(b[name])) for name in ("shingles", "tokens", "evidence"))
    if a["exact"] == b["exact"] != 0 and (shingles >= 4 or like.cases >= 0.5):
        return "exact", 1.0
    if like.cases < 0.7 * like.inputs:  # the same input, another output
        return None
    worded_alike = like.text >= 0.15 or shingles < 40  # long texts with other words differ in choices by chance
    if worded_alike and choose_differently(*(_number(row["choices"]) for row in (a, b))):
        return None
    if _same_text(a, b, like, threshold):
        return "text", like.text
    same_program = bool(a["program"] == b["program"] != 0)
    alike = same_program or (like.code >= 0.9 and tokens >= 24)
    if like.cases >= 0.8:
        if evidence >= _enough(like.text, shingles) or alike or (like.code >= 0.75 and tokens >= 32):
            return "tests", like.cases
    if (same_program and tokens >= 56) or (alike and tokens >= 9 and (like.cases >= 0.3 or like.text >= 0.35)):
        return "solution", 1.0 if same_program else like.code
    return None


def _same_text(a: Array, b: Array, like: Likeness, threshold: float) -> bool:
    small, large = sorted((int(a["shingles"]), int(b["shingles"])))
    if small < 6 or (a["versions"] and b["versions"] and like.cases < 0.5):
        return False
    x, y = (_number(row["literals"]) for row in (a, b))
    if x & ~y and y & ~x:
        return False
    contained = like.text * (small + large) / (1 + like.text) / small  # the share of the smaller one's shingles
    return (small >= SHORT and like.text >= threshold) or (contained >= 0.95 and like.text >= threshold - 0.15)


def _enough(text: float, shingles: int) -> int:
    """Return the number of bytes of evidence that tests must have."""
    if shingles >= 60:
        return 8 if text >= 0.2 else 24
    return 64 if 0.3 <= text <= 0.65 else 24


def _number(bits: Array) -> int:
    return int.from_bytes(bits.tobytes(), "little")


__all__ = ["Index", "Twin", "signature"]

# (name of the sketch, slots in a band, field that is 0 if there is nothing)
_BANDS = (("text", 5, "shingles"), ("code", 5, "tokens"), ("inputs", 3, "cases"))
_KEYS = 2 + sum(SIGNATURE[name].shape[0] // band for name, band, _ in _BANDS)
_FACTORS = np.random.default_rng(1).integers(2**62, 2**63, 5, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_DEEP = 32  # most rows of a bucket that are compared, the latest first


class Twin(NamedTuple):
    id: str
    similarity: float
    by: By


class Index:
    """An index of the signatures seen so far, to find duplicates."""

    def __init__(self, threshold: float = 0.8) -> None:
        self.threshold = threshold  # similarity of texts
        self.ids: list[str] = []
        self._grow(np.zeros(0, SIGNATURE))

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, id: str, signature: bytes) -> None:
        if len(self.ids) == len(self._rows):
            self._grow(self._rows)
        row = len(self.ids)
        self.ids.append(id)
        self._rows[row] = np.frombuffer(signature, SIGNATURE)[0]
        self._link(row, row + 1)

    def match(self, signature: bytes) -> Twin | None:
        """Return the most similar twin among those seen, the earliest of equals."""
        one = np.frombuffer(signature, SIGNATURE)[0]
        rows = self._candidates(one)
        many = self._rows[rows]
        like = likeness(one, many)  # (rows, 4)
        worth = (like >= 0.5).any(axis=1) | (many["program"] == one["program"]) | (many["exact"] == one["exact"])
        best: Twin | None = None
        order = (False, 0.0, 0.0)
        for n in np.flatnonzero(worth):
            if found := twins(one, many[n], Likeness(*like[n].tolist()), self.threshold):
                by, similarity = found
                rank = (by == "exact", similarity, float(like[n].sum()))
                if rank > order:
                    best, order = Twin(self.ids[rows[n]], round(similarity, 3), by), rank
        return best

    def save(self, path: str | Path) -> None:
        """Write the index atomically."""
        path = Path(path)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        with open(part, "wb") as file:
            names = np.frombuffer(json.dumps(self.ids).encode(), np.uint8)
            np.savez(file, rows=self._rows[: len(self.ids)], ids=names, threshold=self.threshold)
        os.replace(part, path)

    @classmethod
    def load(cls, path: str | Path) -> Index:
        with np.load(path) as file:
            if "rows" not in file or file["rows"].dtype != SIGNATURE:
                raise ValueError(f"{path} is not an index of this version of microcoder; delete it and run again")
            index = cls(float(file["threshold"]))
            index.ids = json.loads(file["ids"].tobytes())
            index._grow(file["rows"])
        return index

    def _candidates(self, one: Array) -> Array:
        """Return the rows that share a key with a signature, in order."""
        places = self._places(one.reshape(1))[0]
        columns = np.flatnonzero(places < len(self._heads) - 1)
        rows = self._heads[places[columns]]
        found = [rows[:0]]
        for _ in range(_DEEP):
            columns, rows = columns[rows >= 0], rows[rows >= 0]
            if not len(rows):
                break
            found.append(rows)
            rows = self._before[rows, columns]
        return np.unique(np.concatenate(found))

    def _places(self, rows: Array) -> Array:
        """Return the bucket (rows, keys) of each key in `heads`; the last one is for empty keys."""
        keys, there = _keys(rows)
        buckets = len(self._heads) // _KEYS
        places = (keys & np.uint64(buckets - 1)).astype(np.int64) + np.arange(_KEYS) * buckets
        return np.where(there, places, len(self._heads) - 1)

    def _link(self, start: int, stop: int) -> None:
        for row, places in enumerate(self._places(self._rows[start:stop]), start):
            self._before[row] = self._heads[places]
            self._heads[places] = row

    def _grow(self, rows: Array) -> None:
        """Make room for twice as many rows as these, and link them again."""
        room = 1 << max(10, len(rows).bit_length())
        self._rows, self._before = np.zeros(room, SIGNATURE), np.full((room, _KEYS), -1, np.int32)
        self._rows[: len(rows)] = rows
        self._heads = np.full(room * _KEYS + 1, -1, np.int32)
        for start in range(0, len(rows), 4096):
            self._link(start, min(start + 4096, len(rows)))


def _keys(rows: Array) -> tuple[Array, Array]:
    """Return keys (rows, keys), of which similar problems share one or more, and which of them are not empty."""
    keys = [rows["exact"][:, None], rows["program"][:, None]]
    there = [key != 0 for key in keys]
    for name, band, size in _BANDS:
        key = (rows[name].reshape(len(rows), -1, band) * _FACTORS[:band]).sum(axis=2)  # (rows, bands)
        keys.append(key)
        there.append(np.broadcast_to((rows[size] != 0)[:, None], key.shape))
    return np.concatenate(keys, axis=1) * _FACTORS[0] >> np.uint64(24), np.concatenate(there, axis=1)
