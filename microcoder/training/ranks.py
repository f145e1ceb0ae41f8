"""Several processes of one training: the first writes the run directory and speaks, the others only work along.

`start` makes them, one for each GPU, and waits. When one of them dies, the others are ended within GRACE_S seconds, and
the error says which one it was and why. They end with their parent, however that ends.

Clusters send SIGTERM when they want a machine back: a training, with one process or several, then finishes its step,
writes a checkpoint and ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..config import Config, to_toml, usable_cores
from ..runs import Run, RunError, read_info, read_metrics

GRACE_S = 15  # after the first death: a rank that is still there then is killed
REFUSED = 2  # the exit status of a usage error
TERMINATED = 128 + signal.SIGTERM  # the exit status after SIGTERM
PASSED_ON = signal.SIGUSR1  # SIGTERM for the ranks that `start` made, whom SIGTERM itself ends at once
REPORTS = "MICROCODER_RANK_REPORTS"  # in the environment of a rank that `start` made: where it leaves its last words
OPENED = "opened"  # a file there: the first rank has the run


class RankError(RuntimeError):
    """A rank ended before its time. The message says which and why."""


class Terminated(KeyboardInterrupt):
    """SIGTERM has come, and the training has ended in order."""


@contextlib.contextmanager
def noticing() -> Iterator[Callable[[], bool]]:
    """Catch SIGTERM: yield a function that says whether it has come. A second one ends the process."""
    if threading.current_thread() is not threading.main_thread():  # where no signal can be caught
        yield lambda: False
        return
    number, came = PASSED_ON if started() else signal.SIGTERM, list[int]()

    def notice(*_: Any) -> None:
        came.append(number)
        if not started():
            os.write(
                2, b"\nSIGTERM: this step is finished and saved, then the training ends; a second one ends it now\n"
            )
            signal.signal(number, signal.SIG_DFL)

    before = signal.signal(number, notice)
    try:
        yield lambda: bool(came)
    finally:
        signal.signal(number, before)


def wanted(config: Config) -> int:
    """How many ranks are to be started; 0: this process trains by itself, or is a rank already."""
    if config.run.engine != "trl" or "WORLD_SIZE" in os.environ:
        return 0
    import torch

    visible, asked = torch.cuda.device_count(), config.run.processes
    count = max(1, visible) if asked == "auto" else asked
    if visible and count > visible:
        raise ValueError(
            f"run.processes={count}, but {visible} GPU{'s are' if visible > 1 else ' is'} visible here, and each "
            f"process needs one of its own; set run.processes={visible} or auto, or use several machines, on each: "
            f"{torchrun(-(-count // visible), visible)}"
        )
    return count if count > 1 or visible > 1 else 0  # of several GPUs one is given to a rank: TRL would take them all


def start(config: Config, folder: Path, resume: bool, count: int) -> None:
    """Train in `folder` with `count` ranks on this machine, and wait for them.

    Raise ValueError where a rank refuses the settings, RankError where one dies, Terminated after SIGTERM.
    """
    with tempfile.TemporaryDirectory(prefix="microcoder-ranks-") as reports, noticing() as leaving:
        file = Path(reports) / "config.toml"
        file.write_text(to_toml(config), encoding="utf-8")
        command = [sys.executable, "-m", "microcoder.cli", "train", str(file), *["--resume"] * resume]
        command += [f"train.folder={folder.parent}", f"train.name={folder.name}"]
        environment = {"OMP_NUM_THREADS": str(max(1, usable_cores() // count)), **os.environ, REPORTS: reports}
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
        environment |= {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
        ranks: list[subprocess.Popen[bytes]] = []
        try:
            with _uninterrupted():  # between a fork and its entry in the list Ctrl-C would lose a rank
                ranks += [
                    subprocess.Popen(
                        command,
                        env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                        start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on once
                        preexec_fn=_end_with_parent,
                    )
                    for rank in range(count)
                ]
            failed = _first_failure(ranks, leaving)
        except Terminated:
            raise  # they have ended, and the first has written it down
        except KeyboardInterrupt:
            _end(ranks, signal.SIGINT)
            _closed(folder, resume, Path(reports), status="stopped", reason="interrupted")
            raise
        finally:
            _end(ranks, signal.SIGTERM)
        if failed is not None:
            raise _fault(failed, ranks[failed].returncode, count, Path(reports), folder, resume)


def _first_failure(ranks: Sequence[subprocess.Popen[bytes]], leaving: Callable[[], bool]) -> int | None:
    """Wait until all ranks have ended well, or one has not: its number. Of several at once, one that was killed."""
    told = 0.0
    while True:
        if leaving() and time.monotonic() > told + 1:  # again and again: one that still starts cannot hear it
            told = time.monotonic()
            for rank in ranks:
                rank.send_signal(PASSED_ON)
        codes = [rank.poll() for rank in ranks]
        if failed := {code: n for n, code in reversed(list(enumerate(codes))) if code and code != TERMINATED}:
            return failed[min(failed)]
        if None not in codes:
            if TERMINATED in codes:
                raise Terminated
            return None
        time.sleep(0.1)


def _end(ranks: Sequence[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    """Tell those that are still there to end; kill what is left after GRACE_S seconds."""
    left = [rank for rank in ranks if rank.poll() is None]
    for rank in left:
        rank.send_signal(number)
    until = time.monotonic() + GRACE_S
    while any(rank.poll() is None for rank in left) and time.monotonic() < until:
        time.sleep(0.1)
    for rank in left:
        if rank.poll() is None:
            rank.kill()
            rank.wait()


def _fault(rank: int, code: int, count: int, reports: Path, folder: Path, resume: bool) -> Exception:
    said = reports / f"rank-{rank}"
    words = said.read_text(encoding="utf-8") if said.exists() else ""
    if code == REFUSED and words:
        _closed(folder, resume, reports, status="failed", reason=words)
        return ValueError(words)
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
    how += ", perhaps for lack of memory" * (code == -signal.SIGKILL) + f": {words}" * bool(words)
    reason = f"rank {rank} of {count} {how}"
    kept = _closed(folder, resume, reports, status="failed", reason=reason)
    again = f"; to go on from the last checkpoint: microcoder train {folder} --resume" if kept else ""
    return RankError(f"{reason}; the other ranks were stopped{again}")


def _closed(folder: Path, resume: bool, reports: Path, **fields: Any) -> bool:
    """Write down how a run ended whose first rank could not; remove one in which nothing has happened yet.

    What the first rank has not opened is another's, or none: it is left alone.
    """
    if not (reports / OPENED).exists():
        return False
    if not resume and not read_metrics(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return False
    with contextlib.suppress(RunError), Run.resume(folder) as run:  # RunError: a process of the dead rank has its lock
        run.update(**fields)
    return True


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    from torch.multiprocessing import _prctl_pr_set_pdeathsig  # type: ignore[attr-defined]

    signal.signal(PASSED_ON, signal.SIG_IGN)  # until `noticing`
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # a child inherits what its parent blocks
    _prctl_pr_set_pdeathsig(signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def report(error: BaseException) -> None:
    """In a rank that `start` made: leave the reason why it ends to its parent."""
    if started():
        words = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        Path(os.environ[REPORTS], f"rank-{os.environ['RANK']}").write_text(words, encoding="utf-8")


def started() -> bool:
    """Whether `start` made this process; its parent then speaks of its end."""
    return REPORTS in os.environ


def devices() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def local() -> int:
    """The processes of this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def torchrun(machines: int, each: int) -> str:
    """The command that trains on several machines, the same on each of them."""
    meeting = "--rdzv-backend c10d --rdzv-endpoint HOST:29500 --rdzv-id my-run"
    return f"torchrun --nnodes {machines} --nproc-per-node {each} {meeting} -m microcoder.cli train my.toml"


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def first() -> bool:
    """Whether this process writes files and prints: rank 0."""
    return rank() == 0


def share(workers: int) -> int:
    """This process's part of a machine's cores; one that feeds a GPU keeps a core for itself."""
    return max(1, workers // local() - _cuda())


def together() -> None:
    """Wait for all processes: a barrier."""
    if devices() > 1:
        from accelerate import PartialState

        PartialState(cpu=not _cuda()).wait_for_everyone()


def shared(value: Any) -> Any:
    """The first process's value, in all of them: for decisions from files, which another process may read too early."""
    if devices() == 1:
        return value
    from accelerate.utils import broadcast_object_list

    together()  # which begins the connection
    return broadcast_object_list([value])[0]


def gathered(rows: list[Any]) -> list[Any]:
    """The rows of all processes, in all processes."""
    if devices() == 1:
        return rows
    from accelerate.utils import gather_object

    together()
    return list(gather_object(rows))


def open_run(make: Callable[[], Run], path: Path) -> Any:
    """The run in the first process, a FollowedRun of it in the others, once it is there. What the first one refuses,
    all refuse: they would wait for it.
    """
    run: Run | None = None
    refused: ValueError | None = None
    if first():
        try:
            run = make()
            if started():
                Path(os.environ[REPORTS], OPENED).touch()
        except ValueError as error:
            refused = error
    if said := shared(refused and str(refused)):
        raise refused or RunError(said)
    return run or FollowedRun(path)


class FollowedRun:
    """The run in processes other than the first: it can be read, and writing does nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def info(self) -> dict[str, Any]:
        return read_info(self.path)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        return read_metrics(self.path)

    def update(self, **fields: Any) -> None: ...
    def rewind(self, step: int) -> None: ...

    def __enter__(self) -> FollowedRun:
        return self

    def __exit__(self, *_: object) -> None: ...


class Silent:
    """An observer that does nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None: ...

    def step(self, metrics: dict[str, Any]) -> None: ...
    def phase(self, name: str) -> None: ...
    def note(self, text: str) -> None: ...
    def warn(self, advice: Any) -> None: ...


def _cuda() -> bool:
    import torch

    return torch.cuda.is_available()
