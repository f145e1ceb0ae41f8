"""Tasks whose right answers need room: follow a little program for k steps and print the end; and three ways to answer.

    python -m benchmarks.testbed tasks --out FOLDER              # FOLDER/train.jsonl and FOLDER/test.jsonl

A program has a start and k lines (k = 2 to 16), each with a label; x counts modulo 5. So one guess of five is right,
whatever k is. The split is by a fixed hash of the statement: a fifth of all programs is in `test`, none in both,
whatever the seed. A problem's k is its difficulty_score; its difficulty is a band: 2-4, 5-8, 9-12 or 13-16.

The styles of an answer, told apart by the first word, which is the first token of the testbed's models:

    direct   a guess at once: 12 tokens
    trace    every line with x before and after it, 12 tokens each, then the answer: 12 k + 12 tokens
    loop     the start again and again, with a period of 4 tokens, and no end
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from microcoder.files import write_problems
from microcoder.schema import ACCEPTED, Problem, Test
from microcoder.study.measures import STYLES

Split = Literal["train", "test"]
Style = Literal["direct", "trace", "loop"]
STEPS = range(2, 17)  # k
BANDS = (range(2, 5), range(5, 9), range(9, 13), range(13, 17))
MODULUS = 5
OPERATIONS = ("+1", "+2", "+3", "+4", "*2", "*3", "*4")  # each one token
LABELS = "abcdefghijklmnop"  # one letter a line, so that a label is one token
LOOP_LINES = 60  # of 4 tokens: longer than any trace


class Task(NamedTuple):
    """A little program: x at the start, and an operation for each line."""

    start: int
    lines: tuple[str, ...]

    @property
    def statement(self) -> str:
        lines = "".join(f"\n{label}: {line}" for label, line in zip(LABELS, self.lines, strict=False))
        return f"Start with x = {self.start}, modulo {MODULUS}.{lines}\nPrint x after line {LABELS[self.k - 1]}."

    @property
    def k(self) -> int:
        return len(self.lines)

    @property
    def split(self) -> Split:
        digest = hashlib.sha256(self.statement.encode()).digest()
        return "test" if int.from_bytes(digest[:8], "big") % 5 == 0 else "train"

    def values(self) -> list[int]:
        """Return x at the start and after each line."""
        found = [self.start]
        for line in self.lines:
            found.append(after(found[-1], line))
        return found

    def problem(self) -> Problem:
        """Make a Problem with its one test; the wrong solutions are all other answers."""
        statement, right = self.statement, self.values()[-1]
        codes = {f"print({n})\n": ACCEPTED if n == right else "wrong_answer" for n in range(MODULUS)}
        return Problem(
            id="testbed/" + hashlib.sha256(statement.encode()).hexdigest()[:16],
            kind="stdin",
            statement=statement,
            tests=[Test("", f"{right}\n")],
            time_limit_s=1.0,
            difficulty=next(f"{band[0]}-{band[-1]}" for band in BANDS if self.k in band),
            difficulty_score=self.k,
            source="testbed",
            language="en",
            licence="Apache-2.0",
            solutions=[{"code": code, "language": "python", "verdict": verdict} for code, verdict in codes.items()],
        )


def after(x: int, line: str) -> int:
    n = int(line[1:])
    return (x + n if line[0] == "+" else x * n) % MODULUS


def tasks(split: Split, rng: random.Random, steps: Sequence[int] = STEPS) -> Iterator[Task]:
    """Draw tasks of a split without end; the same one may come again."""
    while True:
        lines = tuple(rng.choice(OPERATIONS) for _ in range(rng.choice(steps)))
        task = Task(rng.randrange(MODULUS), lines)
        if task.split == split:
            yield task


def problems(split: Split, count: int, seed: int = 0, steps: Sequence[int] = STEPS) -> list[Problem]:
    """Generate `count` different problems; each k in turn, and a k without further ones is skipped."""
    streams = {k: _different(split, random.Random(f"testbed {split} {seed} {k}"), k) for k in steps}
    found: list[Problem] = []
    while streams and len(found) < count:
        for k in tuple(streams):
            if (task := next(streams[k], None)) is None:
                del streams[k]
            else:
                found.append(task.problem())
    if len(found) < count:
        raise ValueError(
            f"{count} {split} problems were asked for, but there are only {len(found)} with k of {list(steps)}; "
            "ask for fewer, or add a larger k"
        )
    return found[:count]


def _different(split: Split, rng: random.Random, k: int) -> Iterator[Task]:
    """Draw different tasks with k lines, until 1,000 in a row were drawn before."""
    seen: set[Task] = set()
    idle = 0
    for task in tasks(split, rng, [k]):
        idle = idle + 1 if task in seen else 0
        if idle == 1000:
            return
        if task not in seen:
            seen.add(task)
            yield task


def answer(task: Task, style: Style, rng: random.Random, guess: float = 0.25, slip: float = 0.002) -> str:
    """Write an answer in a style. A loop has no end; the others end in a program in a fence.

    guess: share of right ones among the direct answers. slip: share of wrong ones among the lines of a trace.
    """
    if style == "loop":
        return "loop" + f"\nx is {task.start}" * LOOP_LINES
    if style == "direct":
        right = task.values()[-1]
        wrong = [n for n in range(MODULUS) if n != right]
        return _fenced("direct", right if rng.random() < guess else rng.choice(wrong))
    x, text = task.start, "trace"
    for label, line in zip(LABELS, task.lines, strict=False):
        y = after(x, line)
        if rng.random() < slip:
            y = rng.choice([n for n in range(MODULUS) if n != y])
        text += f"\n{label}: {line}, x was {x}, so now is {y}"
        x = y
    return _fenced(text, x)


def _fenced(head: str, x: int) -> str:
    return f"{head}\n```python\nprint({x})\n```"


def style_of(completion: str) -> str:
    """Return the style that the first word of a completion reveals, or `other`."""
    word = completion.split(None, 1)[0] if completion.strip() else ""
    return word if word in STYLES else "other"


def priors(trace: float, loop: float) -> Mapping[Style, float]:
    """Return the share of each style; what is left is direct."""
    if min(trace, loop) < 0 or trace + loop > 1:
        raise ValueError(f"the shares of trace and loop are {trace:g} and {loop:g}; their sum must lie within 0 and 1")
    return {"direct": 1 - trace - loop, "trace": trace, "loop": loop}


def steps_to(most: int) -> range:
    """Return every k up to the largest."""
    if most not in STEPS:
        raise ValueError(f"the largest k is {most}; it must lie between {STEPS[0]} and {STEPS[-1]}")
    return range(STEPS[0], most + 1)


def write(folder: Path, train: int, test: int, seed: int, most: int) -> None:
    """Write train.jsonl and test.jsonl into a folder."""
    found = [
        (split, problems(split, count, seed, steps_to(most))) for split, count in (("train", train), ("test", test))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for split, each in found:
        write_problems(folder / f"{split}.jsonl", each)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--train", type=int, default=20_000, metavar="N")
    parser.add_argument("--test", type=int, default=300, metavar="N")
    parser.add_argument("--most", type=int, default=16, metavar="K", help="the largest k, from 2 to 16")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    try:
        write(args.out, args.train, args.test, args.seed, args.most)
    except ValueError as error:
        parser.error(str(error))
    print(f"{args.out}: {args.train} problems in train.jsonl, {args.test} in test.jsonl")
    return 0


if __name__ == "__main__":
    sys.exit(main())
