"""The test forge: stronger tests for problems, from their own references and constraints.

    with Judge() as judge:
        for record in forge(records, judge):
            record.problem.extra["forge"]    # what was done, or the reason why nothing was

    space          the inputs that a problem allows, by its constraints (functions.py, layouts.py)
    search         inputs that kill mutants and other wrong programs, reduced to a small set
    label          expected outputs by the references, confirmed by the judge; a time limit
    answers        several right answers: a checker, or the input is left out

A problem is never lost: where nothing can be forged it stays as it is and says why. Each record has a thread of its
own, as in `verify`; results come in the order of the records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...judge import JudgeError
from ...judge.base import Judging
from ...schema import ACCEPTED, Problem
from ..filter.relevance import MANY_ANSWERS
from ..record import DataError, Dropped, Idle, Record, in_order
from ..verify.programs import check_sound, independent, judged, programs
from ..verify.references import LIMIT_S
from .answers import ONE, Rule, by_disagreement, rule
from .arguments.functions import function_space
from .equivalents import equivalents
from .examples import contradictions
from .finds import Find, reduced
from .label import SMALL_S, assertion, confirmed, limit_tests, time_limit, trusted, with_tests
from .llm import Author, NotWritten
from .run import ProgramRunner
from .search import SHORTEST_S, TIMES, Effort, Rival, Search, rivals_of
from .space import NoSpace, Space
from .stdin.layouts import stdin_space

__all__ = ["Effort", "ForgeOptions", "NoSpace", "forge", "forged"]

READ = 1_000_000  # characters of an existing input that new ones are learnt from; longer ones take minutes
Adversaries = Callable[[str], Iterable[tuple[str, str]]]  # problem id -> (name, program)


@dataclass(frozen=True, slots=True)
class ForgeOptions:
    """The settings of `forge`."""

    effort: Effort = field(default_factory=Effort)
    references: int = 4  # at most so many are asked
    patience_s: float = 10.0  # CPU seconds that a reference may take for a test that the problem came with
    time_multiple: float = 10.0  # of the slowest test of the references: the time limit; 0: none is set
    author: Author | None = None  # a language model that writes generators
    window: int = 0  # records in work at a time; 0: two for each worker of the judge


# A promise about the inputs, not about the problem: on others there may be several right answers.
_UNIQUE = re.compile(
    r"(?:guarante|assume|generated|each input|every input|test ?cases?\b)[^.\n]{0,80}?"
    r"(?:exactly one (?:valid )?(?:solution|answer)|(?:solution|answer)s? (?:is|are|will be) (?:always )?unique"
    r"|(?:unique|only one)(?: valid| possible)? (?:solution|answer))"
    r"|answer is guaranteed to be unique",
    re.I,
)


class Unforged(Exception):
    """The reason why a problem stays as it is. `reason` is one of a few words, for counting."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail


def forge(
    records: Iterable[Record],
    judge: Judging,
    *,
    options: ForgeOptions | None = None,
    adversaries: Adversaries = lambda ident: (),
) -> Iterator[Record]:
    """Yield each record in order, with stronger tests where they could be made. None is lost."""
    options = options or ForgeOptions()
    window = options.window or 2 * judge.workers
    made: list[ProgramRunner] = []

    def runner() -> ProgramRunner:
        made.append(ProgramRunner(judge.sandbox))
        return made[-1]

    runners = Idle(runner)
    work = partial(_forged, judge=judge, runners=runners, options=options, adversaries=adversaries)
    try:
        yield from in_order(records, work, window)
    finally:
        for one in made:  # after a stop some still run: nobody waits for them
            one.close()


def _forged(
    record: Record, *, judge: Judging, runners: Idle[ProgramRunner], options: ForgeOptions, adversaries: Adversaries
) -> Record:
    try:
        with runners.one() as runner:
            return forged(record, judge, runner, options, list(adversaries(record.problem.id)))
    except Unforged as why:
        _say(record, why.reason, why.detail)
    except (JudgeError, DataError, CancelledError):  # no record's doing: nothing can go on
        raise
    except Dropped as loss:
        _say(record, loss.reason, loss.detail)
    except NoSpace as why:
        _say(record, "no_space", str(why))
    except Exception as error:
        _say(record, "failed", f"{type(error).__name__}: {error}")
    return record


def _say(record: Record, reason: str, detail: str) -> None:
    before = record.problem.extra.get("forge")
    named = before.get("contradictions") if isinstance(before, dict) else None
    kept = {"contradictions": named} if named else {}
    record.problem.extra["forge"] = {"reason": reason, "detail": detail[:500], **kept}
    record.notes["forge"] = reason


def forged(
    record: Record,
    judge: Judging,
    runner: ProgramRunner,
    options: ForgeOptions,
    adversaries: Sequence[tuple[str, str]] = (),
) -> Record:
    """Forge tests for one problem. Raise Unforged or NoSpace with the reason where that cannot be done."""
    check_sound(record)
    problem = record.problem
    found = programs(record)
    right = [solution["code"] for solution in independent(found.right)[: options.references]]
    if not right:
        raise Unforged("no_reference", "it has no Python solution to label tests by")
    if promise := _UNIQUE.search(problem.statement):
        said = " ".join(promise[0].split())
        raise Unforged("unique_answer", f"{said!r}: no new input can be known to keep this promise")
    chosen_rule = rule(problem)
    compare, problem.compare = problem.compare, chosen_rule.applied(problem.compare)
    try:
        return _forged_by(record, judge, runner, options, chosen_rule, right, found.wrong, adversaries)
    except BaseException:
        problem.compare = compare
        raise


def _forged_by(
    record: Record, judge: Judging, runner: ProgramRunner, options: ForgeOptions, by: Rule, right: list[str],
    wrong: list[dict[str, str]], adversaries: Sequence[tuple[str, str]],
) -> Record:  # fmt: skip
    """Forge tests under a rule for several right answers."""
    problem, effort = record.problem, options.effort
    if problem.kind == "assert" and assertion(problem) is None:
        unknown = "its asserts are not of the form `assert f(x) == y`"
        raise Unforged("unknown_asserts", unknown if problem.entry_point else "no entry_point names its function")
    references, refused, cpu_s = trusted(problem, right, judge, options.patience_s)
    if not references:
        broken = all(": internal_error " in said for said in refused)
        raise Unforged("cannot_be_judged" if broken else "reference_fails", refused[0])
    contradicted = [] if by.open else contradictions(problem, judge, references[0])[:5]
    if contradicted:
        problem.extra["forge"] = {"contradictions": contradicted}  # known even if nothing can be forged
    space, llm = _space(problem, references, runner, options)
    known = [(f"solution {n}", solution["code"]) for n, solution in enumerate(wrong)]
    limit_s = problem.time_limit_s or LIMIT_S
    effort = effort.for_slow(cpu_s).within(limit_s)
    rivals = rivals_of(problem, references[0], [*known, *adversaries], effort)
    search = Search(problem, space, references, rivals, runner, effort, by)
    if problem.kind == "assert":
        before = _strength(problem, rivals, judge, cpu_s)
    else:
        search.examples()
        slow = [rival for rival in measured(rivals) if rival.endless and not rival.counted]
        accepted = _accepted(problem, slow, judge, cpu_s)  # the judge waits longer than the search
        before = _counted(problem, rivals, [rival for rival in rivals if rival.alive or rival in accepted])
    finds = search.run()
    if by is ONE and (looser := by_disagreement(problem, search.dissent.disputes)):
        problem.compare = looser.applied(problem.compare)  # restored by `forged` if nothing comes of it
        return _forged_by(record, judge, runner, options, looser, right, wrong, adversaries)
    left_out = search.left_out
    finds = search.undisputed(finds, before["living"])
    chosen = reduced(finds, effort.tests, effort.large, effort.test_kb << 10)
    most_s = min(max(2.0, 3 * effort.slowest_s), limit_s)
    labels, slowest = confirmed(problem, references, [find.label for find in chosen], judge, left_out, most_s)
    kept = [find for find in chosen if find.label in labels]
    if not kept:
        detail = ", ".join(f"{reason} ({count})" for reason, count in left_out.most_common(3))
        raise Unforged("no_test", detail or "no new input was found")
    if by.checker or by.unordered:
        problem.tags = [tag for tag in problem.tags if tag != MANY_ANSWERS]
    named = [f"reference {n + 1} stands alone on {count} inputs" for n, count in search.dissent.outvoted.most_common()]
    about = {
        "bounded_by": space.bounded_by,
        "unread": list(space.unread)[:20],
        **({"llm": llm} if llm else {}),
        "checker": "" if by.name == "one" else f"{by.name}: {by.said}"[:200],
        "contradictions": contradicted,
        "references": len(references),
        "refused": refused + named,
        "left_out": dict(left_out),
        "equivalent": equivalents(search, problem, runner),
        "silent": sum(rival.silent and not rival.made for rival in rivals),
    }
    return _written(record, about, references, rivals, kept, before, cpu_s, slowest, judge, options)


def _written(
    record: Record, about: dict[str, Any], references: list[str], rivals: list[Rival], kept: list[Find],
    before: dict[str, Any], cpu_s: float, slowest: float, judge: Judging, options: ForgeOptions,
) -> Record:  # fmt: skip
    """Put the forged tests behind the old ones, and write down where they come from."""
    problem = record.problem
    first = len(problem.asserts if problem.kind == "assert" else problem.tests)
    stronger = with_tests(problem, [find.label for find in kept])
    small = [find.label for find in kept if not find.limit]
    quick = with_tests(problem, small)
    problem.tests, problem.asserts = stronger.tests, stronger.asserts
    limit = time_limit(problem, max(cpu_s, slowest), options.time_multiple, references)
    if limit is not None:
        problem.time_limit_s = limit
    limit_tests(problem, references, judge, options.time_multiple)
    quick_s = max([cpu_s, *(label.cpu_s for label in small)])
    after = _strength(problem, rivals, judge, max(cpu_s, slowest), before, quick, quick_s)
    problem.extra["forge"] = {
        **about,
        "tests": [
            {
                "test": first + n,
                "by": find.candidate.by,
                "seed": find.candidate.seed,
                "killed": [name for kill in sorted(find.kills) if (name := rivals[kill].name) not in after["living"]][
                    :20
                ],
            }
            for n, find in enumerate(kept)
        ],
        "before": before,
        "after": after,
        "time_limit_s": limit,
    }
    record.notes["forge"] = "forged"
    record.did(
        f"forge: {len(kept)} tests added; mutants alive {before['alive']} -> {after['alive']} of {before['mutants']}"
    )
    return record


def _strength(
    problem: Problem, rivals: list[Rival], judge: Judging, slowest_s: float, before: dict[str, Any] | None = None,
    quick: Problem | None = None, quick_s: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    """How many mutants and adversaries the judge accepts; of those that lived before, if that is known.

    Mutants only get the tests of `quick`, if there is one, and the time that belongs to them: a mutant that loops would
    take long on each, and only an adversary is refused for its time.
    """
    lived = None if before is None else set(before["living"])
    tried = [rival for rival in measured(rivals) if lived is None or rival.name in lived]
    return _counted(problem, rivals, _accepted(problem, tried, judge, slowest_s, quick, quick_s))


def _accepted(
    problem: Problem, rivals: list[Rival], judge: Judging, slowest_s: float, quick: Problem | None = None,
    quick_s: float = 0.0,
) -> list[Rival]:  # fmt: skip
    """Those that the judge accepts. An adversary has the least time that a test has, for it may be right."""
    asked = []
    for rival in rivals:
        target, seconds = (quick, quick_s) if quick is not None and rival.counted else (problem, slowest_s)
        least = SHORTEST_S if rival.counted else SMALL_S
        limit = min(max(least, TIMES * seconds), problem.time_limit_s or LIMIT_S)
        asked.append(judge.submit(judged(target, limit), code=rival.code))
    verdicts = [future.result().verdict for future in asked]
    return [rival for rival, verdict in zip(rivals, verdicts, strict=True) if verdict == ACCEPTED]


def measured(rivals: list[Rival]) -> list[Rival]:
    """The rivals that strength is measured by: the mutants of `verify`, and adversaries."""
    return [rival for rival in rivals if not rival.silent and (rival.counted or not rival.what)]


def _counted(problem: Problem, rivals: list[Rival], living: list[Rival]) -> dict[str, Any]:
    wanted = measured(rivals)
    living = [rival for rival in living if rival in wanted]
    return {
        "tests": len(problem.asserts if problem.kind == "assert" else problem.tests),
        "mutants": sum(rival.counted for rival in wanted),
        "alive": sum(rival.counted for rival in living),
        "adversaries": sum(not rival.counted for rival in wanted),
        "adversaries_alive": sum(not rival.counted for rival in living),
        "living": [rival.name for rival in living],
    }


def _space(problem: Problem, references: list[str], runner: ProgramRunner, options: ForgeOptions) -> tuple[Space, str]:
    """The problem's space, with the inputs of a language model if one is asked; what became of that."""
    if options.author is None:
        return space_of(problem, references), ""
    own, missing = None, ""
    try:
        own = space_of(problem, references)
    except NoSpace as why:
        missing = str(why)
    try:
        return options.author.space(problem, own, runner, options.effort.seed), "used"
    except NotWritten as why:
        if own is None:
            raise NoSpace(f"{missing}; the language model: {why}") from None
        return own, str(why)


def space_of(problem: Problem, references: list[str]) -> Space:
    """The inputs that a problem allows. Raise NoSpace where nothing is known of them."""
    learnt = replace(problem, tests=[test for test in problem.tests if len(test.input) <= READ])
    if problem.tests and not learnt.tests:
        shortest = min(len(test.input) for test in problem.tests)
        raise NoSpace(f"its shortest input has {shortest:,} characters; inputs are learnt from up to {READ:,}")
    return stdin_space(learnt, references) if problem.kind == "stdin" else function_space(learnt, references)
