"""Statements for problems.py: a story drawn from a seed, around a task, in the layouts that sources have.

Nearly every run of five words in a story has a drawn word in it, so no two of 100,000 stories are alike.
"""

from __future__ import annotations

import html
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

NAMES = """Ada Bram Chloe Dara Emil Farah Goran Hana Ilya Jonas Kira Lena Milo Nadia Omar Petra Quinn Rosa Sami Tara
    Uwe Vera Wanda Xenia Yusuf Zora""".split()
PLACES = """archive bakery castle dairy factory ferry forest gallery garden harbour hospital island kitchen library
    lighthouse market mill mine museum office orchard palace pharmacy post-office quarry school stadium station temple
    theatre tower valley village vineyard warehouse workshop zoo""".split()
THINGS = """anchor apple basket bell bicycle book bottle bridge button camera candle carpet chest clock coin compass
    crate drum engine envelope feather flag fountain ginger hammer helmet jar kettle key ladder lamp lantern ledger
    letter magnet map marble medal mirror needle notebook paddle parcel pebble pencil photograph pillow plate pump
    ribbon ring robot rope ruler saddle scale seed shelf shovel signal sledge spoon stamp statue stone stove table tent
    ticket tile token train umbrella valve vase violin wagon wheel whistle window""".split()
KINDS = """ancient blue borrowed brass broken bright careful cheap clean common copper crooked curious dark distant
    dusty empty expensive faded famous fragile frozen gentle golden green heavy hidden hollow honest huge iron lazy
    local loud lucky modern muddy narrow noisy painted patient plain polished proud quiet rare red round royal rusty
    sealed sharp silent silver simple sleepy slow smooth spare square steep strange striped sturdy thin tiny tired
    unusual warm weak wet wide wild wooden yellow""".split()
DEEDS = """arranged borrowed bought brought buried built carried checked cleaned collected copied counted delivered
    described divided exchanged filled gathered labelled lifted listed measured mended moved noticed numbered opened
    packed painted photographed placed polished prepared recorded repaired replaced sketched sold sorted stacked
    stored studied tested traded unpacked washed weighed wrapped""".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday spring summer autumn winter dawn noon midnight".split()
SENTENCES = (
    "{N} {d} {n} {k} {t}s near the {p} on {y}, and {N} {d} the {k} {t} that was left.",
    "Every {k} {t} in the {p} belongs to {N}, who {d} it beside a {k} {t}.",
    "Long ago the {p} was {k}; then {N} {d} its {k} {t}s for {n} coins.",
    "The {k} {p} keeps {n} {t}s, but only {N} knows which {k} {t} came from the {p}.",
    "“The {k} {t} isn’t mine,” says {N}, and {d} the {t} of the {k} {p} instead.",
    "Since {y} a {k} {t} costs {n} coins at the {p} — {N} {d} two {k} ones anyway.",
    "Nobody {d} the {t} from the {k} {p} while {N} was asleep under the {k} {t}.",
    "When {y} came, {N} {d} {n} {t}s, {N} {d} a {k} {t}, and the {p} closed.",
    "A {k} {t} stands between the {p} and the {k} {p} where {N} once {d} {n} {t}s.",
    "If the {t} is {k}, then {N} {d} it; a {k} {t} goes to the {p} by {y}.",
    "{N} and {N} have {d} each {k} {t} of the {p} for {n} days, with a {k} {t} to help.",
    "It takes {n} {k} {t}s to fill the {p}, as {N} {d} in the {k} {t} of {y}.",
)


@dataclass(frozen=True)
class Task:
    """What a statement has to tell."""

    head: str  # "Write solve(n) for an integer n. Return the result of:"
    steps: Sequence[str]
    reads: str  # what the input is, for programs that read; nothing for functions
    limits: Sequence[tuple[str, str, str]]  # (least, what, most)
    samples: Sequence[tuple[str, str]]


def story(rng: random.Random) -> list[str]:
    """Sentences, of 130 to 430 words in all."""
    return [_sentence(rng) for _ in range(rng.randint(8, 25))]


def _sentence(rng: random.Random) -> str:
    words: dict[str, Callable[[], str]] = {
        "{N}": lambda: rng.choice(NAMES), "{p}": lambda: rng.choice(PLACES), "{t}": lambda: rng.choice(THINGS),
        "{k}": lambda: rng.choice(KINDS), "{d}": lambda: rng.choice(DEEDS), "{y}": lambda: rng.choice(DAYS),
        "{n}": lambda: str(rng.randint(3, 999)),
    }  # fmt: skip
    text = rng.choice(SENTENCES)
    for slot, draw in words.items():
        first, *rest = text.split(slot)
        text = first + "".join(draw() + piece for piece in rest)
    return text


def as_markdown(told: Sequence[str], task: Task) -> str:
    parts = [*_paragraphs(told), "\n".join([task.head, *(f"- {step}" for step in task.steps)])]
    if task.reads:
        parts += ["## Input", task.reads, "## Output", "Print the result on one line."]
    for n, (given, expected) in enumerate(task.samples, 1):
        parts.append(f"Example {n}:\n\nInput: {given}\nOutput: {expected}")
    parts.append("Constraints:\n")
    return "\n\n".join(parts) + "\n".join(f"- `{low} <= {what} <= {most}`" for low, what, most in task.limits)


def as_html(told: Sequence[str], task: Task) -> str:
    parts = [f"<p>{html.escape(text).replace(' the ', ' the&nbsp;', 1)}</p>" for text in _paragraphs(told)]
    parts += [f"<p>{html.escape(task.head)}</p>", "<ul>"]
    parts += [f"<li>{html.escape(step)}</li>" for step in task.steps] + ["</ul>"]
    if task.reads:
        parts += [f"<h3>Input</h3><p>{task.reads}</p>", "<h3>Output</h3><p>Print the result on one line.</p>"]
    for n, sample in enumerate(task.samples, 1):
        given, expected = map(html.escape, sample)
        parts.append(
            f'<p><strong class="example">Example {n}:</strong></p>\n'
            f"<pre><strong>Input:</strong> {given}\n<strong>Output:</strong> {expected}</pre>"
        )
    limits = [f"<li><code>{low} &lt;= {what} &lt;= {_raised(most)}</code></li>" for low, what, most in task.limits]
    return "\n".join([*parts, "<p><strong>Constraints:</strong></p>", "<ul>", *limits, "</ul>"])


def as_latex(told: Sequence[str], task: Task) -> str:
    parts = [*_paragraphs(told), "\n".join([task.head, *(f"{n}. {step}" for n, step in enumerate(task.steps, 1))])]
    limits = [f"${low} \\le {what} \\le {most}$" for low, what, most in task.limits]
    parts += ["Input", f"{task.reads or 'The arguments as described.'} It holds that {' and '.join(limits)}."]
    parts += ["Output", "Print the result on one line." if task.reads else "Return the result."]
    for n, (given, expected) in enumerate(task.samples, 1):
        parts += [f"Sample Input {n}\n\n{given}", f"Sample Output {n}\n\n{expected}"]
    return "\n\n".join(parts)


LAYOUTS = (as_markdown, as_html, as_latex)


def _paragraphs(told: Sequence[str]) -> list[str]:
    return [" ".join(told[n : n + 5]) for n in range(0, len(told), 5)]


def _raised(number: str) -> str:
    base, caret, power = number.partition("^")
    return f"{base}<sup>{power}</sup>" if caret else number
