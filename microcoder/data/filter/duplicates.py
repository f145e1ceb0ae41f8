"""Duplicates inside and across sources: the first one seen stays, the others name it.

`signature(record)` is worked out in worker processes; one Index takes the signatures in order. Candidates come from
locality-sensitive hashing: each band of slots of a sketch is a key, and problems that share one are compared (`twins`).

The index is a chained hash table of plain arrays: `heads` has the latest row of each bucket of each key, `before` the
one before it. The keys are not kept: a row that is in a bucket by chance is found out by comparing. That is 1 KB for
each problem that there is room for, however long it is; the room doubles when it is used up.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .signature import SIGNATURE, signature
from .sketch import Array
from .twins import By, Likeness, likeness, twins

__all__ = ["Index", "Twin", "signature"]

# (what is sketched, slots in a band, what tells that there is any)
_BANDS = (("text", 5, "shingles"), ("code", 5, "tokens"), ("inputs", 3, "cases"))
_KEYS = 2 + sum(SIGNATURE[name].shape[0] // band for name, band, _ in _BANDS)
_FACTORS = np.random.default_rng(1).integers(2**62, 2**63, 5, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_DEEP = 32  # a bucket with more rows than this tells nothing apart; the latest are looked at


class Twin(NamedTuple):
    id: str
    similarity: float
    by: By


class Index:
    """The problems seen so far."""

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
        """The most similar twin among those seen, the earliest of equals."""
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
        """The file appears under its name only when it is complete."""
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
        """The rows that share a key with it, in order."""
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
        """(rows, keys) where each key's bucket is in `heads`; the last place is for keys that stand for nothing."""
        keys, there = _keys(rows)
        buckets = len(self._heads) // _KEYS
        places = (keys & np.uint64(buckets - 1)).astype(np.int64) + np.arange(_KEYS) * buckets
        return np.where(there, places, len(self._heads) - 1)

    def _link(self, start: int, stop: int) -> None:
        for row, places in enumerate(self._places(self._rows[start:stop]), start):
            self._before[row] = self._heads[places]
            self._heads[places] = row

    def _grow(self, rows: Array) -> None:
        """Room for twice as many rows as these, which are linked anew."""
        room = 1 << max(10, len(rows).bit_length())
        self._rows, self._before = np.zeros(room, SIGNATURE), np.full((room, _KEYS), -1, np.int32)
        self._rows[: len(rows)] = rows
        self._heads = np.full(room * _KEYS + 1, -1, np.int32)
        for start in range(0, len(rows), 4096):
            self._link(start, min(start + 4096, len(rows)))


def _keys(rows: Array) -> tuple[Array, Array]:
    """(rows, keys) numbers of which similar problems share one or more, and which of them stand for anything."""
    keys = [rows["exact"][:, None], rows["program"][:, None]]
    there = [key != 0 for key in keys]
    for name, band, size in _BANDS:
        key = (rows[name].reshape(len(rows), -1, band) * _FACTORS[:band]).sum(axis=2)  # (rows, bands)
        keys.append(key)
        there.append(np.broadcast_to((rows[size] != 0)[:, None], key.shape))
    return np.concatenate(keys, axis=1) * _FACTORS[0] >> np.uint64(24), np.concatenate(there, axis=1)
