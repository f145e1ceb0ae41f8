"""Run an evaluation: sample a model, judge each sample while others are generated, then compute the scores.

`microcoder.collect` is the loop. An evaluation also resumes from its folder, and saves each sample and each verdict at
once.

1. The same program for the same problem is judged once, however many samples and limits contain it.
2. Each program runs once for both policies: `verdict` is that of robust, `also` that of exact.
3. If the judge itself failed on a program, the next run of the evaluation judges that program again.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from .. import __version__
from ..collect import FAULT, Collector
from ..config import Config, ConfigError, load
from ..judge.remote import open_judge
from ..prompts import OURS, says
from ..schema import Problem, Solution
from .catalog import Note, load_suite
from .completions import code_of, read_completions
from .folder import (
    Ask,
    ResultFolder,
    Scores,
    conditions,
    fingerprint,
    marks_of,
    slug,
    verdict_id,
    verdict_of,
)
from .score import score
from .suite import EvaluationError, Sample, Suite, check_temperature
from .tables import latex, markdown

QUEUE = 32  # waiting programs for each worker: more would keep the tests of many problems in memory
Make = Callable[[Sequence[str]], Iterable[Sample]]  # ids of known samples -> the other samples, as they are finished


class Watcher(Protocol):
    """Receives the progress of an evaluation."""

    def judged(self, before: bool) -> None:
        """Count one more verdict; `before`: it was in the folder already."""

    def say(self, text: str) -> None:
        """Show a sentence to the user."""


Watch = Callable[[int, str], AbstractContextManager[Watcher | None]]  # (number of verdicts to come, title)


def unwatched(verdicts: int, title: str) -> AbstractContextManager[None]:
    return nullcontext()


class Unjudged(NamedTuple):
    """A program without a verdict yet."""

    id: str  # of the verdict
    problem: int  # its number in the suite
    program: str | None  # None: the completion has no program


@dataclass(frozen=True)
class Exam:
    """A suite, and the conditions under which it is given to a model."""

    suite: Suite
    config: Config
    judge: dict[str, Any]  # options of Judge
    common: dict[str, Any]  # fields of Ask that do not depend on the model
    style: str = ""  # of the prompts, as asked for; "": the suite's, or that of a run

    def of(self, model: str, note: Note) -> Exam:
        """Return the exam for a model: a run gets the chat arguments and, on problem files, the style of its prompts.

        The styles of published suites stay, since their scores are compared with others.
        """
        if self.suite.style in OURS and (mute := [one.id for one in self.suite.problems if not says(one)]):
            raise EvaluationError(
                f"{self.suite.name}: {len(mute)} of {len(self.suite.problems)} problems, such as {mute[0]!r}, have "
                'neither "statement" nor "starter_code", of which prompts are made; no model can know what is asked'
            )
        try:
            trained = _training_of(model)
        except ConfigError as error:
            note(f"how {model} was trained cannot be read, so its prompts are the default ones ({error})")
            return self
        if trained is None:
            return self
        common = {**self.common, "chat": {**trained.model.chat, **self.common["chat"]}}
        if not self.style and self.suite.style in OURS:
            common["style"] = trained.data.style
        if common != self.common:
            note(f"the prompts are those that {model} was trained with: style {common['style']}, chat {common['chat']}")
        return replace(self, common=common)


def prepare(
    suite: str,
    settings: Sequence[str] = (),
    *,
    samples: int | None = None,
    temperature: float | None = None,
    limits: Sequence[int] = (),
    seed: int = 0,
    style: str | None = None,
    note: Note = lambda _: None,
    **which: Any,
) -> Exam:
    """Load a suite and choose its conditions; the suite has defaults for them. `which`: as for `load_suite`."""
    for word in settings:
        if not word.startswith(("judge.", "rollout.", "model.chat.", "model.chat=")):
            raise EvaluationError(f"{word}: an evaluation takes settings of judge and rollout, and model.chat")
        if word.startswith(("judge.policy=", "judge.also=")):
            name = word.partition("=")[0]
            raise EvaluationError(f"an evaluation is judged under exact and robust at once; leave {name} out")
    if style and style not in OURS:
        raise EvaluationError(f"--style {style}: it must be one of {', '.join(OURS)}; without it the suite's own")
    if samples is not None and samples < 1:
        raise EvaluationError(f"-n {samples}: at least one sample for each problem is needed")
    if temperature is not None:
        check_temperature(temperature)  # before a suite is made ready, which can take minutes
    config = load(None, settings)
    loaded = load_suite(suite, sandbox=config.judge.sandbox, note=note, **which)
    judge = config.judge.options()
    if "time_limit_s" not in config.judge.model_fields_set:
        judge["time_limit_s"] = loaded.time_limit_s
    if "reuse" not in config.judge.model_fields_set:
        judge["reuse"] = loaded.reuse
    common = {
        "suite": loaded.name,
        "digest": loaded.digest,
        "style": style or loaded.style,
        "chat": config.model.chat,
        "tries": loaded.tries if samples is None else samples,
        "temperature": loaded.temperature if temperature is None else temperature,
        "top_p": config.rollout.top_p,
        "top_k": config.rollout.top_k,
        "limits": tuple(limits) or loaded.limits,
        "seed": seed,
        "judge": conditions(judge),
    }
    return Exam(loaded, config, judge, common, style or "")


def _training_of(model: str) -> Config | None:
    """Return the settings of a run, also of one of its checkpoints; None for other models."""
    path = Path(model).absolute()
    run = path.parent.parent if path.parent.name == "checkpoints" else path
    there = all((run / name).is_file() for name in ("run.json", "config.toml"))
    return load(run / "config.toml") if there else None


def evaluate(
    model: str,
    suite: str,
    *,
    completions: str = "",
    missing: str = "refuse",
    server: str = "",
    key_env: str = "",
    concurrency: int = 32,
    output: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    note: Note = lambda _: None,
    watch: Watch = unwatched,
    **asked: Any,
) -> Scores:
    """Score a model, a model behind a server, or a file of completions; resume an evaluation that was stopped.

    asked   samples, temperature, limits and so on: as for `prepare`
    """
    if bool(model) == bool(completions):
        raise EvaluationError("name either a model to sample from, or a file to score with --completions")
    if server and completions:
        raise EvaluationError("--server is for a model, --completions for a file; leave one of them out")
    words = {"samples": "-n", "temperature": "--temperature", "limits": "--limit"}
    if completions and (named := [word for name, word in words.items() if asked.get(name) not in (None, (), [])]):
        raise EvaluationError(f"{', '.join(named)}: the file of --completions holds what was sampled; leave it out")
    exam = prepare(suite, note=note, **asked)
    if completions and exam.common["chat"]:
        raise EvaluationError("model.chat is for prompts, and --completions needs none; leave it out")
    exam = exam.of(model, note) if model else exam
    if completions:
        ask, make, total = _of_file(completions, exam, missing)
    elif server:
        ask, make, total = _of_server(model, exam, server, key_env, concurrency)
    else:
        from .local import LocalModel  # loads torch, which files of completions and servers do not need

        local = LocalModel(model, exam.config.rollout, note, exam.common["chat"])
        ask = local.ask(exam.common)
        make, total = partial(local.samples, ask, exam.suite.problems), len(exam.suite.problems) * ask.tries
    folder = Path(output) if output else default_folder(model or Path(completions).stem, exam)
    with ResultFolder(folder, ask, fresh) as kept, watch(total * len(ask.limits), "") as watcher:
        if watcher is not None and 0 < len(kept.samples) < total:
            watcher.say(f"{folder} holds {len(kept.samples)} of {total} samples; the others are made now")
        result = run(exam.suite, kept, make, exam.judge, watcher)
    return Scores(folder, result, max(ask.limits))


def default_folder(model: str, exam: Exam) -> Path:
    """Return the default folder: in the run, else below bench/. A style that is not the suite's is part of its name."""
    suite, style = exam.suite, exam.common["style"]
    name = slug(suite.name) + ("" if style == suite.style else f"-{style}")
    if (Path(model) / "run.json").exists():
        return Path(model) / "bench" / name
    return Path("bench") / slug(model) / name


def _of_file(path: str, exam: Exam, missing: str) -> tuple[Ask, Make, int]:
    samples = read_completions(path, exam.suite, missing=missing)
    tries = max(sample.number + 1 for sample in samples)
    given = {"tries": tries, "temperature": None, "top_p": 1.0, "top_k": 0, "limits": (0,), "seed": None}
    ask = Ask(model=path, weights=fingerprint(path), source="file", chunk=0, **{**exam.common, **given})

    def make(known: Sequence[str]) -> Iterator[Sample]:
        there = set(known)
        return (sample for sample in samples if sample.id not in there)

    return ask, make, len(samples)


def _of_server(model: str, exam: Exam, url: str, key_env: str, concurrency: int) -> tuple[Ask, Make, int]:
    from ..data.endpoint import Endpoint
    from .chat import ChatModel

    if exam.common["top_k"]:
        raise EvaluationError("the servers' protocol has no rollout.top_k; set it where the server is started")
    ask = Ask(model=model, weights=url, source="server", chunk=0, **exam.common).check()
    server = ChatModel(Endpoint(url, model, key_env, timeout_s=3600.0, concurrency=concurrency), concurrency)
    problems = exam.suite.problems
    every = [(n, k) for n in range(len(problems)) for k in range(ask.tries)]

    def make(known: Sequence[str]) -> Iterator[Sample]:
        there = set(known)
        work = [(n, k) for n, k in every if f"{problems[n].id}#{k}" not in there]
        return server.samples(
            work,
            problems,
            ask.style,
            temperature=ask.temperature or 0.0,
            limits=ask.limits,
            top_p=ask.top_p,
            seed=ask.seed,
            chat=ask.chat,
        )

    return ask, make, len(every)


def run(
    suite: Suite, folder: ResultFolder, make: Make, judge: dict[str, Any], watcher: Watcher | None = None
) -> dict[str, Any]:
    """Make the samples, judge and score them. Write the result into the folder and return it."""
    started = time.monotonic()
    options = {**judge, "policy": "robust", "also": "exact", "queue": judge["workers"] and QUEUE * judge["workers"]}
    with open_judge(options) as pool:
        collector: Collector[Unjudged] = Collector(pool)
        for asked, verdict in collector(
            _asked(suite, folder, make, watcher),
            key=lambda asked: (asked.problem, asked.program),
            program=lambda asked: (suite.problems.whole(asked.problem), _solution(suite, asked)),
        ):
            if verdict is not None:  # nothing is cut: the collector waits for every verdict
                folder.add_verdict(replace(verdict, id=asked.id))
            if watcher is not None:
                watcher.judged(before=False)
        sandbox = pool.sandbox
    base = suite.base_tests
    marks = marks_of(list(folder.samples.values()), folder.verdicts.done, folder.ask.limits, base)
    took = {
        "seconds": time.monotonic() - started,  # of this call
        "writing_s": collector.seconds["generation_s"],
        "judging_alone_s": collector.seconds["judging_s"],
        "programs_judged": collector.judged,
        "programs_cpu_s": collector.cpu_s,
    }
    result = {
        **folder.ask.to_dict(),
        "problems": len(suite.problems),
        "samples": len(folder.samples),
        **({"tests": suite.tests} if suite.tests else {}),
        **({"base_tests": base} if base else {}),
        "version": __version__,
        "python": platform.python_version(),
        "sandbox": sandbox,
        "took": took,
        "scores": score(marks, suite.problems, list(folder.samples.values())),
    }
    folder.write("scores.json", json.dumps(result, indent=1) + "\n")
    folder.write("report.md", markdown(result))
    folder.write("table.tex", latex(result))
    return result


def _asked(suite: Suite, folder: ResultFolder, make: Make, watcher: Watcher | None) -> Iterator[Unjudged]:
    """Yield the programs to judge: first of the samples in the folder, then of new ones, which are added to it."""
    numbers = {problem.id: n for n, problem in enumerate(suite.problems)}
    there = list(folder.samples.values())
    for sample in chain(there, map(folder.add, make([sample.id for sample in there]))):
        n = numbers[sample.problem_id]
        for limit in folder.ask.limits:
            known = verdict_of(sample, limit, folder.verdicts.done)
            if known is None or known.verdict == FAULT:
                found = program(sample, limit, folder.ask.style, suite.problems[n])
                yield Unjudged(verdict_id(sample, limit), n, found)
            elif watcher is not None:
                watcher.judged(before=True)


def _solution(suite: Suite, asked: Unjudged) -> Solution:
    given = {"completion": ""} if asked.program is None else {"code": asked.program}
    return Solution(suite.problems[asked.problem].id, **given)


def program(sample: Sample, limit: int, style: str, problem: Problem) -> str | None:
    """Extract the program of a sample that is cut at a limit."""
    if sample.is_code:
        return sample.text if sample.text.strip() else None
    return code_of(style, problem, sample.text[: sample.cuts.get(str(limit), len(sample.text))])
