"""Trainings on verl that are small enough for tests. What imports verl is imported late: conftest.py comes first."""

from __future__ import annotations

import contextlib
from pathlib import Path

from train_runs import TINY

from microcoder.config import load, to_toml
from microcoder.models import resolve
from microcoder.runs import Run, read_metrics
from microcoder.training.plan import batches, stages_of
from microcoder.training.ranks import Silent
from microcoder.training.verl.session import session, train, write_files
from microcoder.training.verl.settings import compiled

CPU = ("run.engine=verl", "cluster.gpus_per_node=0")


def settings(*more):
    return load(None, [*TINY, *CPU, *more])


def trained(path, *more):
    """A run, from its beginning or from its last checkpoint on; the lines of its metrics."""
    config = settings(*more)
    with Run.resume(path) if path.exists() else Run.create(path, to_toml(config), {}) as run:
        train(config, run, Silent())
    return read_metrics(path)


def theirs(config):
    """What verl is given for the first stage."""
    from microcoder.training.verl.trainer import composed

    counts = batches(config, config.cluster.processes)
    return composed(compiled(config, stages_of(config)[0], counts, resolve("nano").path, Path("/runs/a")))


@contextlib.contextmanager
def spied(path, config, stage, problems, prompts, ends):
    """A trainer whose processes are up, and note the weights before and the gradients of each update."""
    from spying import SpiedTrainer

    from microcoder.training.verl.trainer import VerlSetup, composed

    counts = batches(config, config.cluster.processes)
    with Run.create(path, to_toml(config), {}) as run:
        write_files(path / "data", (problems, prompts), range(len(problems)), ([], []), 0)
        theirs = composed(compiled(config, stage, counts, resolve("nano").path, path))
        with session(config, theirs):
            known = {problem.id: problem for problem in problems}
            setup = VerlSetup(config, run, counts, Silent(), known, range(len(problems)), 0, ends, str)
            trainer = SpiedTrainer(theirs, setup, stage, 1)
            trainer.init()
            trainer.global_steps, trainer.curr_step_profile = 1, False  # as `fit` has them
            yield trainer
