"""The pipeline by itself: parts, resuming, what a changed setting makes anew, and a report. The steps are made up."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from microcoder.data import parts
from microcoder.data.dataset import write_dataset
from microcoder.data.parts import kept_parts, read_losses, read_records, write_part
from microcoder.data.pipeline import AHEAD, Cores, PipelineStep, run
from microcoder.data.record import Dropped, Record
from microcoder.data.report import page, steps_of
from microcoder.files import read_problems
from microcoder.schema import Problem, Test


class Told:
    """What the pipeline says."""

    def __init__(self):
        self.made, self.again, self.parts = [], [], 0

    def step(self, name, parts):
        pass

    def part(self, counts):
        self.parts += 1

    def done(self, name, counts, seconds, again):
        (self.again if again else self.made).append(name)


def shout(record, *, mark="!"):
    record.problem.statement += mark
    record.did(f"process: {mark}")
    return record


def odd_only(record, *, least=0):
    number = int(record.problem.id.rpartition("/")[2])
    record.notes["number"] = number
    if number % 2 == 0:
        raise Dropped("even", f"{number} is even")
    if number < least:
        raise Dropped("small", f"{number} < {least}")
    return record


def breaks(record):
    raise TypeError("not this one")


def last_digit(record):
    return int(record.problem.id.rpartition("/")[2]) % 10


def first_of_each():
    seen = {}

    def decide(ident, digit):
        if digit in seen:
            return Dropped("twin", f"of {seen[digit]}")
        seen[digit] = ident

    return decide


def stopping(record, *, at):
    if record.problem.id == at:
        raise KeyboardInterrupt
    return record


@contextlib.contextmanager
def streamed():
    yield lambda records: (record for record in records)


@pytest.fixture
def first(tmp_path):
    """Three parts of ten records."""
    for n in range(3):
        records = (
            Record(Problem(f"made/{n * 10 + k}", statement="Add \ud800 two.", tests=[Test("1", "1")], source="made"))
            for k in range(10)
        )
        write_part(tmp_path / "first", f"{n:05}", records)
    return kept_parts(tmp_path / "first")


STEPS = [
    PipelineStep("process", "1-shout", {"mark": "?"}, each=shout),
    PipelineStep("filter", "1-odd", {"least": 5}, each=odd_only),
    PipelineStep("filter", "2-twins", work=last_digit, decide=first_of_each),
    PipelineStep("verify", "1-judge", stream=streamed),
]


def ids(folder):
    return [record.problem.id for part in kept_parts(folder) for record in read_records(part)]


@pytest.mark.parametrize("workers", [1, 2])
def test_records_go_through_every_step_and_each_loss_has_its_reason(tmp_path, first, workers):
    out = tmp_path / "out"
    run(out, STEPS, first, "d", workers, Told())
    assert ids(out / "filter/1-odd") == [f"made/{n}" for n in range(5, 30, 2)]
    assert ids(out / "verify/1-judge") == ["made/5", "made/7", "made/9", "made/11", "made/13"]
    losses = [
        (record.problem.id, loss.reason, loss.detail)
        for part in sorted((out / "filter/2-twins/dropped").glob("*"))
        for record, loss in read_losses(part)
    ]
    assert ("made/15", "twin", "of made/5") in losses and len(losses) == 8
    done = json.loads((out / "filter/1-odd/done.json").read_text())
    assert (done["kept"], done["dropped"]) == (13, {"even": 15, "small": 2})


def test_what_is_dropped_is_what_came_in_not_what_the_step_had_begun_to_make_of_it(tmp_path, first):
    def half(record):
        record.problem.statement = "half done"
        raise Dropped("late")

    run(tmp_path, [PipelineStep("process", "half", each=half)], first[:1], "d", 1, Told())
    record, _ = next(read_losses(next((tmp_path / "process/half/dropped").glob("*"))))
    assert record.problem.statement == "Add \ud800 two."


def test_a_fault_of_a_step_is_a_drop_with_its_words(tmp_path, first):
    run(tmp_path, [PipelineStep("process", "bad", each=breaks)], first[:1], "d", 1, Told())
    losses = list(read_losses(next((tmp_path / "process/bad/dropped").glob("*"))))
    assert len(losses) == 10 and (losses[0][1].reason, losses[0][1].detail) == ("failed", "TypeError: not this one")


def test_a_second_run_makes_nothing_again(tmp_path, first):
    run(tmp_path / "out", STEPS, first, "d", 1, Told())
    told = Told()
    run(tmp_path / "out", STEPS, first, "d", 1, told)
    assert told.made == [] and told.again == [step.folder for step in STEPS] and told.parts == 0


def test_a_changed_setting_makes_its_step_and_the_later_ones_anew_and_no_earlier_one(tmp_path, first):
    run(tmp_path / "out", STEPS, first, "d", 1, Told())
    told = Told()
    changed = [STEPS[0], PipelineStep("filter", "1-odd", {"least": 7}, each=odd_only), *STEPS[2:]]
    run(tmp_path / "out", changed, first, "d", 1, told)
    assert told.again == ["process/1-shout"] and told.made == ["filter/1-odd", "filter/2-twins", "verify/1-judge"]
    assert ids(tmp_path / "out/verify/1-judge")[0] == "made/7"


def test_a_stopped_run_goes_on_where_it_was_and_ends_as_if_it_had_not_been_stopped(tmp_path, first, monkeypatch):
    stops = PipelineStep("filter", "1-odd", {"at": "made/15"}, each=stopping)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out", [stops], first, "d", 1, Told())
    folder = tmp_path / "out/filter/1-odd"
    assert [path.name for path in kept_parts(folder)] == ["00000.jsonl.gz"] and not (folder / "done.json").exists()
    written = []
    real = parts.write_part
    monkeypatch.setattr("microcoder.data.pipeline.write_part", lambda *a: written.append(a[1]) or real(*a))
    goes_on = PipelineStep("filter", "1-odd", {"at": "made/15"}, each=lambda record, *, at: record)
    run(tmp_path / "out", [goes_on], first, "d", 1, Told())
    assert written == ["00001", "00002"] and len(ids(folder)) == 30


def test_what_a_killed_run_had_begun_to_write_is_removed(tmp_path, first):
    left = tmp_path / "out/process/1-shout/kept/.00001.jsonl.gz.4711"
    run(tmp_path / "out", STEPS[:1], first, "d", 1, Told())
    (tmp_path / "out/process/1-shout/done.json").unlink()
    left.touch()
    run(tmp_path / "out", STEPS[:1], first, "d", 1, Told())
    assert not left.exists() and len(ids(tmp_path / "out/process/1-shout")) == 30


def test_decisions_in_order_are_the_same_after_a_stop(tmp_path, first):
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    twins = [STEPS[2]]
    run(whole, twins, first, "d", 1, Told())
    run(torn, twins, first, "d", 1, Told())
    for path in (torn / "filter/2-twins").rglob("00001.jsonl.gz"):  # as if it had been killed in the second part
        path.unlink()
    (torn / "filter/2-twins/done.json").unlink()
    run(torn, twins, first, "d", 1, Told())
    assert ids(torn / "filter/2-twins") == ids(whole / "filter/2-twins") == [f"made/{n}" for n in range(10)]


def test_no_more_parts_are_begun_than_there_is_room_for_and_results_come_in_order():
    taken = []

    def items():
        for n in range(100):
            taken.append(n)
            yield n

    with Cores(2) as cores:
        results = cores.map(abs, items())
        assert next(results) == 0
        assert len(taken) == 2 * AHEAD
        assert list(results) == list(range(1, 100))


@contextlib.contextmanager
def reading_ahead(most):
    """A stream that has up to 16 records in work; the most that it had is added to the list `most`."""

    def stream(records):
        waiting = []
        for record in records:
            waiting.append(record)
            most[:] = [max(len(waiting), *most)]
            if len(waiting) == 16:
                yield waiting.pop(0)
        yield from waiting

    yield stream


def test_a_stream_is_not_held_up_at_the_end_of_a_part(tmp_path, first):
    most = [0, 0]
    run(tmp_path, [PipelineStep("verify", "judge", stream=partial(reading_ahead, most))], first, "d", 1, Told())
    assert most == [16]  # a part has ten
    kept = [[record.problem.id for record in read_records(part)] for part in kept_parts(tmp_path / "verify/judge")]
    assert kept == [[f"made/{n}" for n in range(start, start + 10)] for start in (0, 10, 20)]


def test_a_stream_that_was_stopped_sees_only_the_parts_that_are_missing(tmp_path, first):
    step = [PipelineStep("verify", "judge", stream=streamed)]
    run(tmp_path, step, first, "d", 1, Told())
    for path in (tmp_path / "verify/judge").rglob("00001.jsonl.gz"):
        path.unlink()
    (tmp_path / "verify/judge/done.json").unlink()
    most = [0, 0]
    run(tmp_path, [PipelineStep("verify", "judge", stream=partial(reading_ahead, most))], first, "d", 1, Told())
    assert most == [10] and ids(tmp_path / "verify/judge") == [f"made/{n}" for n in range(30)]


def test_options_that_need_all_records_are_prepared_before(tmp_path, first):
    def highest(paths, cores, **_):
        return {"least": max(int(r.problem.id.rpartition("/")[2]) for path in paths for r in read_records(path))}

    run(tmp_path / "out", [PipelineStep("filter", "select", each=odd_only, prepare=highest)], first, "d", 1, Told())
    assert ids(tmp_path / "out/filter/select") == ["made/29"]


def test_the_data_set_reads_back_and_the_report_has_every_step_and_reason(tmp_path, first):
    out = tmp_path / "out"
    clean = [PipelineStep("process", "1-clean", each=lambda record: _clean(record)), *STEPS[1:]]
    last = run(out, clean, first, "d", 1, Told())
    write_dataset(out / "dataset", last, steps_of(out), "[collect]")
    found = [problem.id for problem in read_problems(out / "dataset/problems.parquet")]
    assert found == ["made/5", "made/7", "made/9", "made/11", "made/13"]
    text = page(out)
    for word in ("filter/1-odd", "even", "small", "twin", "5</b> of 30", " is even</summary>"):
        assert word in text
    import pyarrow.parquet as pq

    (row, *_) = pq.read_table(out / "dataset/verl.parquet").to_pylist()
    assert row["prompt"][0]["role"] == "user" and json.loads(row["reward_model"]["ground_truth"])["id"] == "made/5"
    assert "| made | 5 |" in (out / "dataset/README.md").read_text()


def _clean(record):
    record.problem.statement = "Add two."
    return record


def test_a_folder_without_steps_has_no_report(tmp_path):
    with pytest.raises(FileNotFoundError, match="microcoder data run"):
        page(tmp_path)


def test_workers_end_with_their_parent_even_if_it_is_killed():
    script = """
import time
from microcoder.data.pipeline import Cores
with Cores(2) as cores:
    print(*cores.map(abs, [1, -2]), flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=-1, text=True) as parent:
        assert parent.stdout.readline() == "1 2\n"
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        parent.kill()
    assert len(children) >= 2
    ends = time.monotonic() + 20
    while any(map(lives, children)):
        assert time.monotonic() < ends
        time.sleep(0.05)


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
