"""The scores of a bench for people: text for the terminal, Markdown to keep, LaTeX for a paper.

`result` is what scores.json holds. Read here: "model", "suite", "problems", "tries", "temperature" and "seed", of which
any may be missing, and "scores", made by `score.py`. Text and Markdown show the same tables, but the terminal lists
only the first few answers that the policies disagree on. LaTeX is Table 1 of the paper; it needs the package booktabs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .layout import WIDTH, Table, aligned, counted, for_latex, for_markdown, known, percent, piped, plain
from .score import POLICIES

Result = Mapping[str, Any]
SHOWN = 10  # answers in the terminal
NAMES = {"atcoder": "AtCoder", "leetcode": "LeetCode", "codeforces": "Codeforces", "all": "All"}


def text(result: Result) -> str:
    parts = [textwrap.fill(plain(_head_line(result)), WIDTH), *map(aligned, _tables(result))]
    parts += [aligned(cases, SHOWN, ": see report.md") for cases in _disagreements(result["scores"])]
    return "\n\n".join([*parts, *(textwrap.fill(note, WIDTH) for note in _notes(result["scores"]))]) + "\n"


def markdown(result: Result) -> str:
    tables = (*_tables(result), *_disagreements(result["scores"]))
    return "\n\n".join([f"# {for_markdown(_head_line(result))}", *map(piped, tables), *_notes(result["scores"])]) + "\n"


def latex(result: Result) -> str:
    """A row for each limit and policy; a group of columns for each platform, in it a column for each difficulty."""
    rows = list(_rows(result["scores"]))
    groups: Result = rows[0][2]["table"] if rows else {"all": {"all": {}}}
    platforms = [for_latex(NAMES.get(name, name)) for name in groups]
    levels = [name.capitalize() for name in groups["all"]]
    wide, columns = len(levels), len(levels) * len(groups)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{for_latex(_head_line(result))}. Accuracy in \%.}}",
        rf"\begin{{tabular}}{{rl{'r' * columns}}}",
        r"\toprule",
        " & ".join(["", "", *(rf"\multicolumn{{{wide}}}{{c}}{{{name}}}" for name in platforms)]) + r" \\",
        " ".join(rf"\cmidrule(lr){{{start}-{start + wide - 1}}}" for start in range(3, 3 + columns, wide)),
        " & ".join(["Limit", "Policy", *levels * len(groups)]) + r" \\",
        r"\midrule",
    ]
    for limit, policy, of in rows:
        cells = [percent(cell["accuracy"]) for row in of["table"].values() for cell in row.values()]
        lines.append(" & ".join([limit, policy, *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def _head_line(result: Result) -> str:
    """Who was tested on what, and how."""
    problems, tries = result.get("problems"), result.get("tries")
    facts = [
        "" if problems is None else counted(problems, "problem") + ("" if tries is None else f" × {_tries(tries)}"),
        known("temperature {:g}", result.get("temperature"), ""),
        known("seed {}", result.get("seed"), ""),
    ]
    who = f"{result.get('model') or 'completions'} on {result.get('suite') or 'problems'}"
    return ": ".join(filter(None, (who, ", ".join(filter(None, facts)))))


def _tries(count: int) -> str:
    return "1 try" if count == 1 else f"{count} tries"


def _limit(limit: str) -> str:
    return f"{int(limit):,}" if int(limit) else "none"


def _tables(result: Result) -> Iterator[Table]:
    scores = result["scores"]
    yield _overview(scores)
    ks = sorted({k for at in scores.values() for policy in POLICIES for k in at[policy]["pass_at_k"]}, key=int)
    rows = [(limit, policy, *(percent(of["pass_at_k"].get(k)) for k in ks)) for limit, policy, of in _rows(scores)]
    yield Table("pass@k, %", ("limit", "policy", *(f"k={k}" for k in ks)), rows if ks else [], words=2)
    yield from _by_platform(scores)
    yield from _by_month(scores)
    yield _verdicts(scores)


def _overview(scores: Result) -> Table:
    head = ("limit", "exact, %", "robust, %", "truncated", "no code", "tokens", "if right", "D")
    rows = []
    for limit, at in scores.items():
        shares = (known("{:.1%}", at[name]) for name in ("truncated_share", "no_code_share"))
        lengths = (known("{:,.0f}", length) for length in (at["length"], at["robust"]["length_right"]))
        accuracies = (_cell(at[policy]) for policy in POLICIES)
        rows.append((_limit(limit), *accuracies, *shares, *lengths, known("{:.3f}", at["diversity"])))
    return Table("Accuracy (95% interval over problems), and what the answers are like", head, rows)


def _by_platform(scores: Result) -> Iterator[Table]:
    """Table 1 of the paper, a platform a line."""
    first: Result = next((of["table"] for _, _, of in _rows(scores)), {"all": {"all": {}}})
    levels = list(first["all"])
    if len(first) == len(levels) == 1:
        return
    rows = [("", "problems", name, [f"{cell['problems']:,}" for cell in row.values()]) for name, row in first.items()]
    for limit, policy, of in _rows(scores):
        rows += [(limit, policy, name, [_cell(cell, 0) for cell in row.values()]) for name, row in of["table"].items()]
    lines = [(*start, NAMES.get(name, name), *cells) for *start, name, cells in rows]
    yield Table("By platform and difficulty, %", ("limit", "policy", "platform", *levels), _once(lines, 2), words=3)


def _by_month(scores: Result) -> Iterator[Table]:
    rows = []
    for limit, at in scores.items():
        exact, robust = (at[policy]["months"] for policy in POLICIES)
        for month, cell in robust.items():
            rows.append((_limit(limit), month, f"{cell['problems']:,}", _cell(exact[month]), _cell(cell)))
    if len({month for _, month, *_ in rows}) > 1:
        yield Table("By month, %", ("limit", "month", "problems", *POLICIES), _once(rows, 1), words=2)


def _verdicts(scores: Result) -> Table:
    rows = []
    for limit, at in scores.items():
        exact, robust = (at[policy]["verdicts"] for policy in POLICIES)
        for name in dict.fromkeys((*exact, *robust)):
            rows.append((_limit(limit), name, f"{exact.get(name, 0):,}", f"{robust.get(name, 0):,}"))
    return Table("Verdicts", ("limit", "verdict", *POLICIES), _once(rows, 1), words=2)


def _disagreements(scores: Result) -> Iterator[Table]:
    for limit, at in scores.items():
        for policy in ("robust", "exact"):
            cases = at[f"only_{policy}"]
            if cases or policy == "robust":
                title = f"Accepted only by {policy}, limit {_limit(limit)}: {len(cases):,}"
                rows = [(case["id"], case["strategy"], case["message"]) for case in cases]
                yield Table(title, ("answer", "strategy", "what the other said"), rows, words=3)


def _notes(scores: Result) -> Iterator[str]:
    faults = sum(at["internal_errors"] for at in scores.values())
    if faults:
        yield (
            f"The judge failed on {counted(faults, 'answer')} (internal_error), counted as neither right nor wrong. "
            "The same command judges again."
        )
    missing = max((of["unjudged"] for _, _, of in _rows(scores)), default=0)
    if missing:
        yield f"No judged answer: {counted(missing, 'problem')}, in none of the accuracies."


def _rows(scores: Result) -> Iterator[tuple[str, str, Any]]:
    """(name of the limit, policy, what was scored under both)."""
    return ((_limit(limit), policy, at[policy]) for limit, at in scores.items() for policy in POLICIES)


def _cell(cell: Result, digits: int = 1) -> str:
    """With its interval; where all problems scored the same, resampling them says nothing."""
    low, high = cell["low"], cell["high"]
    interval = f" ({percent(low, digits)}-{percent(high, digits)})" if low is not None and low < high else ""
    return percent(cell["accuracy"]) + interval


def _once(rows: Sequence[tuple[str, ...]], columns: int) -> list[tuple[str, ...]]:
    """The same first columns as in the row before are left blank."""
    shown: list[tuple[str, ...]] = []
    for n, row in enumerate(rows):
        same = n > 0 and row[:columns] == rows[n - 1][:columns]
        shown.append(("",) * columns + row[columns:] if same else row)
    return shown
