"""`microcoder judge`: problems and solutions in, verdicts out, each as soon as it is known."""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from ..schema import ACCEPTED, POLICIES, VERDICTS, Problem, Solution, Verdict
from . import Refused
from .completion import complete_setting
from .settings import Setting, WithSettings
from .shown import echo, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..config import JudgeConfig
    from ..files import BadLine, VerdictLog
    from .terminal import Progress

SHOWN = 10  # bad lines that are printed one by one; the rest are only counted


SLOWEST = 3


@click.command("judge", cls=WithSettings)
@click.argument("problems", type=click.Path())
@click.argument("solutions", type=click.Path())
@click.argument("overrides", nargs=-1, metavar="[section.key=value ...]", shell_complete=complete_setting)
@click.option("-o", "--output", type=click.Path(),
    help="Append verdicts to this .jsonl file; what it holds is not judged again, unless the program, its problem or "
    "the settings are others now, or the judge had failed. Of several lines with one id, the last counts.")  # fmt: skip
@click.option("--config", "config_file", type=click.Path(), help="A TOML file with settings.")
@click.option("--workers", cls=Setting, setting="judge.workers")
@click.option("--policy", cls=Setting, setting="judge.policy", type=click.Choice(POLICIES))
@click.option("--ray", metavar="ADDRESS", help="Short for judge.on=ray:ADDRESS; auto: this machine's cluster.")
@click.option("--all-tests", is_flag=True, help="Short for judge.stop_at_first_failure=false.")
@click.option("--fresh", is_flag=True, help="Start the output file over instead of continuing it.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the first so many solutions.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def command(
    problems: str,
    solutions: str,
    overrides: tuple[str, ...],
    output: str | None,
    config_file: str | None,
    workers: str | None,
    policy: str | None,
    ray: str | None,
    all_tests: bool,
    fresh: bool,
    limit: int | None,
    as_json: bool,
) -> int:
    """Judge every program in SOLUTIONS by the tests in PROBLEMS and print a summary.

    Both are .jsonl, .jsonl.gz, .json (a list) or .parquet. A solution is {"problem_id": ..., "code": ...}, or
    "completion" in place of "code": a model's whole answer, whose last fenced block is judged. The
    "language" of a solution is "python" (the default); for stdin problems also cpp, java, javascript, go or rust.

    The exit status is 0 whatever the programs are worth, and 1 if a line could not be read or the judge failed.
    """
    from ..config import ConfigError, load
    from ..files import FileError
    from ..judge import JudgeError

    short = {"judge.workers": workers, "judge.policy": policy, "judge.stop_at_first_failure": "false" * all_tests}
    short["judge.on"] = f"ray:{ray}" if ray else None
    settings = [*overrides, *(f"{name}={value}" for name, value in short.items() if value)]
    try:
        config = load(config_file, settings).judge
        _check_paths(problems, solutions, output, fresh)
        return _judge(problems, solutions, config, output, fresh, limit, as_json)
    except (ConfigError, FileError, JudgeError) as error:
        raise Refused(str(error)) from None


def _check_paths(problems: str, solutions: str, output: str | None, fresh: bool) -> None:
    if output is None:
        if fresh:
            raise click.UsageError("--fresh starts an output file over, but none is named; add -o FILE")
        return
    for path in (problems, solutions):
        if os.path.realpath(path) == os.path.realpath(output):
            raise Refused(f"-o {output} is one of the files to read; name another file for the verdicts")


def _judge(
    problems_path: str,
    solutions_path: str,
    config: JudgeConfig,
    output: str | None,
    fresh: bool,
    limit: int | None,
    as_json: bool,
) -> int:
    from ..files import VerdictLog, count_records
    from ..judge.remote import open_judge
    from .terminal import Progress

    tally, bad = Tally(), BadLines()
    total = min(count_records(solutions_path), limit or 1 << 62)
    problems = _read_problems(problems_path, bad, tally)
    options = config.options()
    try:
        # the interrupt passes through the judge's own exit, which then drops what is waiting instead of finishing it
        with open_judge(options) as judge, contextlib.ExitStack() as stack:
            log = stack.enter_context(VerdictLog(output, fresh)) if output else None
            if log and log.done:
                echo(f"{output} holds {len(log.done)} verdicts; what has not changed is not judged again", err=True)
            key = Key(config)
            started, layer, used = time.monotonic(), judge.sandbox, judge.workers
            progress = stack.enter_context(Progress(total))
            for solution, verdict in judge.map(_pairs(solutions_path, problems, limit, log, key, bad, tally, progress)):
                if log:
                    verdict.digest = key.of(problems[solution.problem_id], solution)
                    log.append(verdict)
                tally.add(verdict)
                progress.step(judged=True)
            wall_s = time.monotonic() - started
    except KeyboardInterrupt:
        echo(f"\nstopped after {tally.judged + tally.resumed} of {total} programs; {_kept(output, fresh)}", err=True)
        return 130
    if key.changed:
        echo(
            f"{key.changed} verdicts in {output} were of another program, problem or setting: judged anew; of lines "
            "with the same id the last one counts",
            err=True,
        )
    about = {"workers": used, "policy": config.policy, "sandbox": layer, "output": output}
    summary = tally.summary(wall_s, **about)
    if as_json:
        echo(json.dumps(summary, indent=2))
    else:
        from .terminal import Terminal

        Terminal().print(render(summary))
    return _exit_status(summary, bad)


def _kept(output: str | None, fresh: bool) -> str:
    if output is None:
        return "no verdict was kept, as no -o FILE was given"
    return f"their verdicts are in {output}; to go on, run the same command again{' without --fresh' * fresh}"


def _read_problems(path: str, bad: BadLines, tally: Tally) -> dict[str, Problem]:
    from ..files import read_problems

    problems = {}
    for problem in read_problems(path):
        if isinstance(problem, Problem):
            problems[problem.id] = problem
        else:
            tally.unreadable += 1
            bad.report(problem)
    if not problems:
        raise Refused(f"{path} holds no problem that can be used; the order is: microcoder judge PROBLEMS SOLUTIONS")
    return problems


def _pairs(
    path: str,
    problems: dict[str, Problem],
    limit: int | None,
    log: VerdictLog | None,
    key: Key,
    bad: BadLines,
    tally: Tally,
    progress: Progress,
) -> Iterator[tuple[Problem, Solution]]:
    """Yield the solutions that are still to be judged; count those that are skipped."""
    from ..files import read_solutions

    for solution in itertools.islice(read_solutions(path, problems), limit):
        if not isinstance(solution, Solution):
            tally.unreadable += 1
            bad.report(solution, progress)
            progress.step(judged=False)
        elif log and solution.id in log.done:
            before = log.done[solution.id]
            if before.problem_id != solution.problem_id:
                raise Refused(
                    f"{log.path} holds verdicts of other solutions: its {solution.id!r} is for problem "
                    f"{before.problem_id!r}, here it is for {solution.problem_id!r}; name another file with -o"
                )
            problem = problems[solution.problem_id]
            if before.verdict == "internal_error":  # the judge may be well now
                yield problem, solution
                continue
            if before.digest != key.of(problem, solution):
                key.changed += 1
                yield problem, solution
                continue
            tally.add(before, resumed=True)
            progress.step(judged=False)
        else:
            yield problems[solution.problem_id], solution


class Key:
    """The digest of everything that a verdict depends on: problem, program and settings."""

    SETTINGS = ("policy", "also", "stop_at_first_failure", "time_limit_s", "time_factor", "memory_mb", "output_mb")

    def __init__(self, config: JudgeConfig) -> None:
        self.settings = json.dumps({name: getattr(config, name) for name in self.SETTINGS})
        self.changed = 0  # verdicts that are there, under another digest

    def of(self, problem: Problem, solution: Solution) -> str:
        program = [solution.code, solution.completion, solution.language, self.settings, problem.fingerprint()]
        return hashlib.blake2b(json.dumps(program).encode(), digest_size=12).hexdigest()


class BadLines:
    """Print the first few bad lines, and count the others."""

    def __init__(self) -> None:
        self.count = 0

    def report(self, bad: BadLine, progress: Progress | None = None) -> None:
        self.count += 1
        if self.count <= SHOWN:
            (progress.say if progress else lambda text: echo(text, err=True))(str(bad))


def _exit_status(summary: dict[str, Any], bad: BadLines) -> int:
    if bad.count > SHOWN:
        echo(f"... and {bad.count - SHOWN} more lines that could not be used", err=True)
    faults = summary["verdicts"].get("internal_error", 0)
    if summary["unreadable"]:
        echo(f"exit status 1: {summary['unreadable']} lines could not be used and were not judged", err=True)
    if faults:
        echo(f"exit status 1: the judge itself failed on {faults} programs (internal_error)", err=True)
    return 1 if faults or summary["unreadable"] else 0


@dataclass(slots=True)
class Tally:
    """Count verdicts: those of this run, and those that an earlier run left in the output."""

    judged: int = 0
    resumed: int = 0
    unreadable: int = 0
    inside: int = 0
    cpu_s: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    strategies: Counter[str] = field(default_factory=Counter)
    slowest: list[tuple[float, str]] = field(default_factory=list)  # a heap of the few largest

    def add(self, verdict: Verdict, resumed: bool = False) -> None:
        self.resumed += resumed
        self.judged += not resumed
        self.inside += verdict.inside
        self.cpu_s += verdict.cpu_s
        self.verdicts[verdict.verdict] += 1
        if verdict.verdict == ACCEPTED and verdict.strategy:
            self.strategies[verdict.strategy] += 1
        entry = (verdict.cpu_s, verdict.id)
        if len(self.slowest) < SLOWEST:
            heapq.heappush(self.slowest, entry)
        else:
            heapq.heappushpop(self.slowest, entry)

    def summary(self, wall_s: float, **about: Any) -> dict[str, Any]:
        """Everything that is shown; `about` holds what the run knows of itself: sandbox, workers, policy, output."""
        return {
            "programs": self.judged + self.resumed,
            "verdicts": {name: self.verdicts[name] for name in VERDICTS if self.verdicts[name]},
            "unreadable": self.unreadable,
            "judged": self.judged,
            "resumed": self.resumed,
            "wall_s": round(wall_s, 3),
            "programs_per_s": round(self.judged / wall_s, 2) if wall_s > 0 else 0.0,
            "cpu_s": round(self.cpu_s, 3),
            "slowest": [{"id": ident, "cpu_s": round(cpu, 4)} for cpu, ident in sorted(self.slowest, reverse=True)],
            "strategies": dict(self.strategies.most_common()),
            "inside": self.inside,
            **about,
        }


def render(summary: dict[str, Any]) -> RenderableType:
    """Return the summary as a rich table: verdicts first, then speed and settings."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    total = summary["programs"]
    verdicts = Table("verdict", box=box.SIMPLE_HEAD)
    verdicts.add_column("programs", justify="right")
    verdicts.add_column("share", justify="right")
    for name, count in summary["verdicts"].items():
        style = {ACCEPTED: "green", "internal_error": "red"}.get(name)
        verdicts.add_row(name, str(count), f"{100 * count / total:.1f}%", style=style)
    verdicts.add_section()
    verdicts.add_row("all", str(total), "", style="bold")
    if summary["unreadable"]:
        verdicts.add_row("unreadable", str(summary["unreadable"]), "", style="red")

    facts = Table(box=None, show_header=False, padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in _facts(summary):
        facts.add_row(name, Text(text))  # Text: an id such as [x] is not markup
    return Group(verdicts, facts)


def _facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    resumed = f"; {summary['resumed']} were judged before" if summary["resumed"] else ""
    inside = " (a test ran in the program's own process: a weaker promise)" if summary["inside"] else ""
    return [
        (
            "speed",
            f"{summary['programs_per_s']} programs/s ({summary['judged']} in {summary['wall_s']:.1f} s, "
            f"{summary['workers']} workers){resumed}",
        ),
        ("cpu", f"{summary['cpu_s']:.1f} s in the programs"),
        ("slowest", ", ".join(f"{visible(s['id'])} ({s['cpu_s']:.2f} s)" for s in summary["slowest"]) or "-"),
        ("accepted by", ", ".join(f"{name} {count}" for name, count in summary["strategies"].items()) or "-"),
        ("judged inside", f"{summary['inside']}{inside}"),
        ("policy", summary["policy"]),
        ("sandbox", summary["sandbox"]),
    ]
