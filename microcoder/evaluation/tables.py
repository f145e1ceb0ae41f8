"""Tables of scores and comparisons: text for the terminal, Markdown for a report, LaTeX for a paper.

`result` is the contents of scores.json. Of it, "model", "suite", "problems", "tries", "temperature" and "seed" are used
if present, and "scores", made by `score.py`. Text and Markdown show the same tables, but the terminal lists only the
first few answers that the policies disagree on. LaTeX has Table 1 of the paper, with the intervals on a line below; it
needs the package booktabs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..layout import (
    WIDTH,
    Table,
    aligned,
    counted,
    for_latex,
    for_markdown,
    in_latex,
    known,
    percent,
    piped,
    plain,
    tabular,
)
from .score import POLICIES

Result = Mapping[str, Any]
SHOWN = 10  # answers, or problems of each kind, in the terminal
ABREAST = 5  # columns of difficulties in one table
TABLE_1 = 16  # most columns of numbers; a wider table is split by platform
NAMES = {"atcoder": "AtCoder", "leetcode": "LeetCode", "codeforces": "Codeforces", "all": "All"}


def text(result: Result) -> str:
    parts = [textwrap.fill(plain(headline(result)), WIDTH), *map(aligned, _tables(result))]
    parts += [aligned(cases, SHOWN, ": see report.md") for cases in _disagreements(result["scores"])]
    return "\n\n".join([*parts, *(textwrap.fill(note, WIDTH) for note in _notes(result["scores"]))]) + "\n"


def markdown(result: Result) -> str:
    tables = (*_tables(result), *_disagreements(result["scores"]))
    return "\n\n".join([f"# {for_markdown(headline(result))}", *map(piped, tables), *_notes(result["scores"])]) + "\n"


def latex(result: Result) -> str:
    """Write LaTeX with a row for each limit and policy, and a group of columns (one a difficulty) for each platform."""
    rows = list(_rows(result["scores"]))
    caption = rf"{for_latex(headline(result))}. Accuracy in \%."
    if any(_span(cell, 0, "") for _, _, of in rows for row in of["table"].values() for cell in row.values()):
        caption = caption[:-1] + r", with its 95\% interval."
    groups: Result = rows[0][2]["table"] if rows else {"all": {"all": {}}}
    levels = list(groups["all"])
    wide, columns = len(levels), len(levels) * len(groups)
    if columns > TABLE_1:
        names = ("Limit", "Policy", "Platform", *map(str.capitalize, levels))
        return tabular(Table("", names, _platform_rows(result["scores"], levels), words=3), caption)
    platforms = [for_latex(NAMES.get(name, name)) for name in groups]
    head = [
        " & ".join(["", "", *(rf"\multicolumn{{{wide}}}{{c}}{{{name}}}" for name in platforms)]) + r" \\",
        " ".join(rf"\cmidrule(lr){{{start}-{start + wide - 1}}}" for start in range(3, 3 + columns, wide)),
        " & ".join(["Limit", "Policy", *[for_latex(name.capitalize()) for name in levels] * len(groups)]) + r" \\",
    ]
    lines = []
    for limit, policy, of in rows:
        cells = [cell for row in of["table"].values() for cell in row.values()]
        lines.append(" & ".join([limit, policy, *(percent(cell["accuracy"]) for cell in cells)]) + r" \\")
        spans = [rf"{{\scriptsize {span}}}" if (span := _span(cell, 0, "--")) else "" for cell in cells]
        if any(spans):
            lines.append(" & ".join(["", "", *spans]) + r" \\")
    return in_latex("rl" + "r" * columns, head, lines, caption)


def headline(result: Result) -> str:
    """Return a headline: model, suite, number of problems and conditions. Problems without a verdict do not count."""
    problems, tries = result.get("problems"), result.get("tries")
    scored = max((of["problems"] for _, _, of in _rows(result["scores"])), default=problems)
    answers = min((at["tries"] for at in result["scores"].values()), default=0)
    most = "up to " if tries is not None and answers < scored * tries else ""  # a file may hold one here, three there
    number = "" if problems is None else counted(problems, "problem")
    if problems is not None and scored < problems:
        number = f"{scored:,} of {number}"
    facts = [
        number + ("" if problems is None or tries is None else f" × {most}{_tries(tries)}"),
        known("temperature {:g}", result.get("temperature"), ""),
        known("seed {}", result.get("seed"), ""),
        "style reason" if result.get("style") == "reason" else "",
        f"chat {result['chat']}" if result.get("chat") else "",
    ]
    tests = f" ({result['tests']})" if result.get("tests") else ""
    who = f"{result.get('model') or 'completions'} on {result.get('suite') or 'problems'}{tests}"
    return ": ".join(filter(None, (who, ", ".join(filter(None, facts)))))


def _tries(count: int) -> str:
    return "1 try" if count == 1 else f"{count} tries"


def _limit(limit: str) -> str:
    return f"{int(limit):,}" if int(limit) else "none"


def _tables(result: Result) -> Iterator[Table]:
    scores = result["scores"]
    yield _overview(scores)
    yield from _base_and_plus(scores)
    ks = _ks(scores)
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
        accuracies = (cell_text(at[policy]) for policy in POLICIES)
        rows.append((_limit(limit), *accuracies, *shares, *lengths, known("{:.3f}", at["diversity"])))
    return Table("Accuracy (95% interval over problems), and what the answers are like", head, rows)


def _base_and_plus(scores: Result) -> Iterator[Table]:
    """Yield EvalPlus's two scores: the base tests alone, and base and plus tests together."""
    rows = []
    for limit, at in scores.items():
        for name, of in (("base", at.get("base")), ("base + plus", at)):
            if "base" in at:
                ks = [percent(of["robust"]["pass_at_k"].get(k)) for k in _ks(scores)]
                rows.append((_limit(limit), name, cell_text(of["robust"]), *ks))
    if rows:
        head = ("limit", "tests", "accuracy, %", *(f"pass@{k}" for k in _ks(scores)))
        yield Table("EvalPlus's two scores; all other tables count base and plus tests together", head, rows, words=2)


def _ks(scores: Result) -> list[str]:
    return sorted({k for at in scores.values() for policy in POLICIES for k in at[policy]["pass_at_k"]}, key=int)


def _by_platform(scores: Result) -> Iterator[Table]:
    """Yield Table 1 of the paper, one row for each platform, a few difficulties at a time."""
    first: Result = next((of["table"] for _, _, of in _rows(scores)), {"all": {"all": {}}})
    levels = list(first["all"])
    if len(first) == len(levels) == 1:
        return
    for start in range(0, len(levels), ABREAST):
        some = levels[start : start + ABREAST]
        counts = [("", "problems", NAMES.get(p, p), *(f"{row[level]['problems']:,}" for level in some))
                  for p, row in first.items()]  # fmt: skip
        head = ("limit", "policy", "platform", *some)
        title = "By platform and difficulty, %" + ", continued" * (start > 0)
        yield Table(title, head, _once(counts, 2) + _platform_rows(scores, some), words=3)


def _platform_rows(scores: Result, levels: Sequence[str]) -> list[tuple[str, ...]]:
    rows = [
        (limit, policy, NAMES.get(name, name), *(cell_text(row[level], 0) for level in levels))
        for limit, policy, of in _rows(scores)
        for name, row in of["table"].items()
    ]
    return _once(rows, 2)


def _by_month(scores: Result) -> Iterator[Table]:
    rows = []
    for limit, at in scores.items():
        exact, robust = (at[policy]["months"] for policy in POLICIES)
        for month, cell in robust.items():
            rows.append((_limit(limit), month, f"{cell['problems']:,}", cell_text(exact[month]), cell_text(cell)))
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
    """Yield (name of the limit, policy, scores) for each limit and policy."""
    return ((_limit(limit), policy, at[policy]) for limit, at in scores.items() for policy in POLICIES)


def cell_text(cell: Result, digits: int = 1) -> str:
    """Write an accuracy with its interval."""
    span = _span(cell, digits, "-")
    return percent(cell["accuracy"]) + (f" ({span})" if span else "")


def _span(cell: Result, digits: int, dash: str) -> str:
    """Write the interval; "" if all problems score the same, since a bootstrap of equal values is no information."""
    low, high = cell["low"], cell["high"]
    return f"{percent(low, digits)}{dash}{percent(high, digits)}" if low is not None and low < high else ""


def _once(rows: Sequence[tuple[str, ...]], columns: int) -> list[tuple[str, ...]]:
    """Replace repeated values in the first columns by blanks."""
    shown: list[tuple[str, ...]] = []
    for n, row in enumerate(rows):
        same = n > 0 and row[:columns] == rows[n - 1][:columns]
        shown.append(("",) * columns + row[columns:] if same else row)
    return shown


# ---- two evaluations


def comparison_text(result: Result, names: tuple[str, str]) -> str:
    """Write a comparison for the terminal. `names` are the names of the two sides."""
    tables = [aligned(table, SHOWN) for table in _moved(result)]
    return "\n\n".join([*map(plain, _sentences(result, names)), *tables]) + "\n"


def comparison_markdown(result: Result, names: tuple[str, str]) -> str:
    title = f"# {for_markdown(names[0])} and {for_markdown(names[1])}"
    return "\n\n".join([title, *map(for_markdown, _sentences(result, names)), *map(piped, _moved(result))]) + "\n"


def comparison_latex(result: Result, names: tuple[str, str]) -> str:
    """Write a comparison as LaTeX: both accuracies, difference with interval, p-value, problems won and lost."""
    before, after = names
    difference, low, high = (f"{100 * result[name]:+.1f}" for name in ("difference", "low", "high"))
    p = f"{result['p']:.3f}" if result["p"] >= 0.001 else "< 0.001"
    head = ("Problems", before, after, "Difference (95% interval)", "p", "Better", "Worse", "Same")
    counts = (f"{n:,}" for n in (len(result["won"]), len(result["lost"]), result["equal"]))
    row = (f"{result['problems']:,}", percent(result["before"]), percent(result["after"]))
    table = Table("", head, [(*row, f"{difference} ({low} to {high})", p, *counts)], words=0)
    facts = f"{before} and {after}, problem by problem"
    return tabular(table, rf"{for_latex(facts)}. Accuracy in \%, difference in points.")


def _sentences(result: Result, names: tuple[str, str]) -> Iterator[str]:
    before, after = names
    which = ", base tests alone" if result.get("tests") == "base" else ""
    scores = f"{before} {percent(result['before'])}%, {after} {percent(result['after'])}%{which}"
    groups = [result.get(f"{side}_each", ()) for side in ("before", "after")]
    have = "both" if max(map(len, groups)) < 2 else "all"
    yield f"{scores}, on the {result['problems']:,} problems that {have} have:"
    yield f"{result['verdict']}."
    for name, group in zip(names, groups, strict=True):
        if len(group) > 1:
            yield f"Each of {name}: {', '.join(map(percent, group))}%; the interval is over problems and over these."
    won, lost = len(result["won"]), len(result["lost"])
    yield f"With {after}: {counted(won, 'problem')} better, {lost:,} worse, {result['equal']:,} the same."
    for key, name in (("only_before", before), ("only_after", after)):
        if result[key]:
            yield f"Left out: {counted(len(result[key]), 'problem')} that only {name} has."


def _moved(result: Result) -> Iterator[Table]:
    for title, key in (("Better", "won"), ("Worse", "lost")):
        if result[key]:
            rows = [(each["id"], percent(each["before"]), percent(each["after"])) for each in result[key]]
            yield Table(f"{title}, % of tries", ("problem", "before", "after"), rows)
