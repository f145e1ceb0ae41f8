"""Problems for speed.py: as many as wanted, from a seed, no two alike but those that are planted.

    write(folder, 10_000) -> the sources' files and the evaluation set's, each written once

The tests and programs are the starter's (`microcoder.starter`), which prove themselves; the story around each is drawn.
A problem's id says what it is: `made/2-00017`, and among 100 there are about

    1 `-copy`   the very same text under another id, in other case
    2 `-twin`   another layout, two sentences gone, some tests gone
    2 `-leak`   the story of an evaluation problem around another task
    2 `-unfree` a licence that is not allowed
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from benchmarks.data.stories import LAYOUTS, Task, story
from microcoder.files import write_problems
from microcoder.schema import Problem, Test
from microcoder.starter import Draft, draw
from microcoder.starter.drafts import Value, inputs
from microcoder.starter.generate import build, trace

SOURCES = 4
EVALUATION = 500
ALLOWED = ["MIT", "Apache-2.0", "CC BY 4.0"]
SHARES = {"": 0.93, "copy": 0.01, "twin": 0.02, "leak": 0.02, "unfree": 0.02}
POOL = 50  # problems that a copy or a twin is made of
READS = {
    "int": "The only line has an integer n.",
    "text": "The only line has a text s.",
    "numbers": "The only line has integers xs, separated by spaces.",
}
LIMITS = {
    "int": [("-10^9", "n", "10^9")],
    "text": [("0", "s.length", "40")],
    "numbers": [("0", "xs.length", "40"), ("-10^9", "xs[i]", "10^9")],
    "words": [("0", "ws.length", "40"), ("1", "ws[i].length", "40")],
}


def write(folder: Path, count: int, seed: int = 0) -> tuple[list[Path], Path]:
    """(the sources' files, the evaluation set's). A file that is there is taken as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    evaluation = folder / "evaluation.jsonl"
    files = [folder / f"source-{n}.jsonl" for n in range(SOURCES)]
    jobs = [(evaluation, SOURCES, EVALUATION), *((file, n, count // SOURCES) for n, file in enumerate(files))]
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        list(pool.map(partial(_write, seed), [job for job in jobs if not job[0].exists()]))
    return files, evaluation


def _write(seed: int, job: tuple[Path, int, int]) -> None:
    path, source, count = job
    found = (made.problem(f"evaluation/{n}") for n, made in enumerate(originals(seed, source)))
    write_problems(path, islice(found if source == SOURCES else problems(seed, source), count))


@dataclass(frozen=True)
class Made:
    """A problem before it is written down."""

    story: list[str]
    draft: Draft
    kernel: Problem  # the starter's
    layout: int
    drawn: dict[str, str]  # date, licence

    def problem(self, ident: str) -> Problem:
        return replace(self.kernel, id=ident, statement=self.statement(), source="made", lineage=[], **self.drawn)

    def statement(self) -> str:
        head, *steps = self.kernel.statement.split("\n- ")
        reads = READS[self.draft.takes] if self.kernel.kind == "stdin" else ""
        samples = [(t.input.strip(), t.output.strip()) for t in self.kernel.tests]
        samples = [(given, expected) for given, expected in samples if given and expected][:2]
        return LAYOUTS[self.layout](self.story, Task(head, steps, reads, LIMITS[self.draft.takes], samples))


def problems(seed: int, source: int) -> Iterator[Problem]:
    """Of one source, without end; the first ones are the same however many are taken."""
    rng = random.Random(f"{seed} {source} planted")
    pool: list[Made] = []
    for number, made in enumerate(originals(seed, source)):
        what = rng.choices(list(SHARES), list(SHARES.values()))[0] if len(pool) == POOL else ""
        ident = f"made/{source}-{number:05}" + f"-{what}" * bool(what)
        origin = rng.choice(pool) if what else made
        if what == "copy":
            copied = origin.problem(ident)
            yield replace(copied, statement=copied.statement.replace(". ", ".  "))
        elif what == "twin":
            tests = rng.sample(origin.kernel.tests, len(origin.kernel.tests) - 1)
            gone = rng.randrange(len(origin.story))
            told = origin.story[:gone] + origin.story[gone + 1 :]
            kernel = replace(origin.kernel, tests=tests)
            yield replace(origin, story=told, kernel=kernel, layout=(origin.layout + 1) % len(LAYOUTS)).problem(ident)
        elif what == "leak":
            yield replace(made, story=story_of(seed, SOURCES, rng.randrange(EVALUATION))).problem(ident)
        elif what == "unfree":
            yield replace(made, drawn=made.drawn | {"licence": "all rights reserved"}).problem(ident)
        else:
            pool = [*pool[-POOL + 1 :], made]
            yield made.problem(ident)


def originals(seed: int, source: int) -> Iterator[Made]:
    """Different tasks, each with a story of its own."""
    rng = random.Random(f"{seed} {source}")
    tried: set[bytes] = set()
    number = 0
    while True:
        draft = draw(rng, rng.randint(1, 6))
        if draft.takes != "words":
            draft = replace(draft, kind=rng.choice(["stdin", "function"]))
        digest = hashlib.sha256(json.dumps([draft.composition, draft.arguments]).encode()).digest()[:12]
        if digest[0] % (SOURCES + 1) != source or digest in tried:  # no two sources have the same task
            continue
        tried.add(digest)
        kernel = build(draft)
        if kernel is not None:
            date = f"{rng.randint(2015, 2025)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
            drawn = {"date": date, "licence": rng.choice(ALLOWED)}
            kernel = _finished(rng, draft, kernel)
            yield Made(story_of(seed, source, number), draft, kernel, rng.randrange(len(LAYOUTS)), drawn)
            number += 1


def story_of(seed: int, source: int, number: int) -> list[str]:
    return story(random.Random(f"{seed} {source} {number} story"))


def _finished(rng: random.Random, draft: Draft, kernel: Problem) -> Problem:
    """With 6 to 15 tests, one or two right programs, and one that is wrong."""
    further = (found for value in islice(inputs(draft.takes, rng), 5, 40) if (found := trace(draft, value)) is not None)
    tests = [*kernel.tests, *(_test(draft, values) for values in islice(further, rng.randrange(10)))]
    right, wrong = kernel.solutions[:2]
    commented = {**right, "code": draft.program(comments=[True] * len(draft.steps))}
    return replace(kernel, tests=tests, solutions=[right, *rng.choice([[], [commented]]), wrong])


def _test(draft: Draft, values: list[Value]) -> Test:
    if draft.kind == "function":
        return Test(json.dumps([values[0]]), json.dumps(values[-1]))
    given, expected = (" ".join(map(str, v)) if isinstance(v, list) else str(v) for v in (values[0], values[-1]))
    return Test(f"{given}\n", f"{expected}\n")
