"""Two benches over the same problems: is one better, or is it chance?

Each problem is compared with itself, since problems differ far more than models do. The interval of the difference is a
paired bootstrap over problems; the p-value is that of a paired permutation test: were the two alike, each problem's
difference could as well have had the other sign. All orders are tried where at most 12 problems differ, else 20,000.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stats import bootstrap
from .layout import Table, aligned, counted, for_markdown, percent, piped, plain
from .records import BenchError

RESAMPLES = 10_000
DRAWS = 20_000
ENUMERATED = 12  # differing problems: 4,096 orders
LEVEL = 0.05
SHOWN = 10  # problems of each kind in the terminal

Tries = Mapping[str, Sequence[float]]
Floats = NDArray[np.float64]


def compare(before: Tries, after: Tries, *, seed: int = 0) -> dict[str, Any]:
    """{problem: 0 or 1 for each try} of both -> the comparison, ready for JSON; in shares, not in points.

    The numbers of tries need not agree. A problem without any try counts as one that this side does not have.
    """
    before, after = ({name: each for name, each in side.items() if len(each)} for side in (before, after))
    both = [name for name in before if name in after]
    if len(both) < 2:
        raise BenchError(
            f"the two have {len(both)} judged problems in common, of {len(before)} and {len(after)}, and it takes two "
            "to tell a difference from chance; compare benches of the same suite, release and dates"
        )
    scores = np.array([[np.mean(side[name]) for name in both] for side in (before, after)])  # (2, problems)
    change = scores[1] - scores[0]  # (problems,)
    low, high = bootstrap(change, RESAMPLES, seed)
    order = np.argsort(-np.abs(change), kind="stable")
    moved = [{"id": both[n], "before": float(scores[0, n]), "after": float(scores[1, n])} for n in order]
    result = {
        "problems": len(both),
        "before": float(scores[0].mean()),
        "after": float(scores[1].mean()),
        "difference": float(change.mean()),
        "low": low,
        "high": high,
        "p": sign_flip_p(change, seed=seed),
        "won": [each for each in moved if each["after"] > each["before"]],
        "lost": [each for each in moved if each["after"] < each["before"]],
        "equal": int((change == 0).sum()),
        "only_before": [name for name in before if name not in after],
        "only_after": [name for name in after if name not in before],
    }
    return {**result, "verdict": _verdict(result)}


def sign_flip_p(change: Floats, draws: int = DRAWS, seed: int = 0) -> float:
    """Two-sided: the share of sign flips of `change`  # (n,) whose sum lies as far from 0 as the real one."""
    sizes = np.abs(change[change != 0])  # a difference of 0 has no sign to flip
    bound = abs(change.sum()) - 1e-9  # equal sums, added up in another order, are equal
    if len(sizes) <= ENUMERATED:
        signs = np.array(list(itertools.product((-1, 1), repeat=len(sizes))))  # (2 ** n, n)
        return float((np.abs(signs @ sizes) >= bound).mean())
    distinct, counts = np.unique(sizes, return_counts=True)  # (d,), (d,)
    # of the problems with the same size of difference only the number of those that stay positive matters
    positive = np.random.default_rng(seed).binomial(counts, 0.5, size=(draws, len(counts)))
    sums = (2 * positive - counts) @ distinct  # (draws,)
    return float(((np.abs(sums) >= bound).sum() + 1) / (draws + 1))  # the real order is one of them


def comparison_text(result: Mapping[str, Any], names: tuple[str, str]) -> str:
    """For the terminal. `names` are those of the two sides."""
    tables = [aligned(table, SHOWN) for table in _tables(result)]
    return "\n\n".join([*map(plain, _lines(result, names)), *tables]) + "\n"


def comparison_markdown(result: Mapping[str, Any], names: tuple[str, str]) -> str:
    title = f"# {for_markdown(names[0])} and {for_markdown(names[1])}"
    return "\n\n".join([title, *map(for_markdown, _lines(result, names)), *map(piped, _tables(result))]) + "\n"


def _verdict(result: Mapping[str, Any]) -> str:
    difference, low, high = (f"{100 * result[name]:+.1f}" for name in ("difference", "low", "high"))
    p = f"p = {result['p']:.3f}" if result["p"] >= 0.001 else "p < 0.001"
    judgement = "more" if result["p"] < LEVEL else "not more"
    return f"the difference is {difference} points ({low} to {high}), {p}; that is {judgement} than chance would give"


def _lines(result: Mapping[str, Any], names: tuple[str, str]) -> Iterator[str]:
    before, after = names
    scores = f"{before} {percent(result['before'])}%, {after} {percent(result['after'])}%"
    yield f"{scores}, on the {result['problems']:,} problems that both have:"
    yield f"{result['verdict']}."
    won, lost = len(result["won"]), len(result["lost"])
    yield f"With {after}: {counted(won, 'problem')} better, {lost:,} worse, {result['equal']:,} the same."
    for key, name in (("only_before", before), ("only_after", after)):
        if result[key]:
            yield f"Left out: {counted(len(result[key]), 'problem')} that only {name} has."


def _tables(result: Mapping[str, Any]) -> Iterator[Table]:
    for title, key in (("Better", "won"), ("Worse", "lost")):
        if result[key]:
            rows = [(each["id"], percent(each["before"]), percent(each["after"])) for each in result[key]]
            yield Table(f"{title}, % of tries", ("problem", "before", "after"), rows)
