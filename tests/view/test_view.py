"""What the dashboard reads: every run is shown as far as it can be read, quickly, and nothing outside its folder is."""

from __future__ import annotations

import gzip
import json
import os
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from view_runs import HOSTILE, make_bench, make_run, make_study, metrics, rollout

from microcoder.advise import new_advice
from microcoder.runs import Run, write_rollouts
from microcoder.view import find
from microcoder.view.export import spread
from microcoder.view.find import suspicions
from microcoder.view.follow import Columns, Remarks, thin
from microcoder.view.library import Library, Missing
from microcoder.view.questions import Questions


@pytest.fixture
def answers(tmp_path):
    make_run(tmp_path / "runs" / "a")
    return Questions(Library(tmp_path / "runs"))


# ---- what there is


def test_runs_bench_results_and_studies_are_found_at_any_depth(tmp_path):
    make_run(tmp_path / "runs" / "a", steps=1)
    make_run(tmp_path / "runs" / "out" / "nano" / "runs" / "b", steps=1)
    make_bench(tmp_path / "runs" / "a" / "bench" / "tiny")
    make_study(tmp_path / "runs" / "out")
    (tmp_path / "runs" / "a" / "checkpoints" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "checkpoints" / "x" / "run.json").write_text("{}")
    folders = Library(tmp_path / "runs").listing().folders
    assert {name: folder.kind for name, folder in folders.items()} == {
        "a": "run",
        "a/bench/tiny": "bench",
        "out": "study",
        "out/nano/runs/b": "run",
    }


def test_a_run_itself_can_be_named(tmp_path):
    make_run(tmp_path / "runs" / "a", steps=1)
    make_run(tmp_path / "runs" / "b", steps=1)
    assert list(Library(tmp_path / "runs" / "a").listing().folders) == ["a"]


def test_links_that_lead_out_are_not_followed_and_are_named(tmp_path):
    make_run(tmp_path / "elsewhere", steps=1)
    make_run(tmp_path / "runs" / "a", steps=1)
    (tmp_path / "runs" / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "runs" / "again").symlink_to(tmp_path / "runs")  # a circle
    listing = Library(tmp_path / "runs").listing()
    assert (list(listing.folders), listing.refused) == (["a"], ("out",))


@pytest.mark.parametrize("file", ["metrics.jsonl", "config.toml", "rollouts"])
def test_a_file_of_a_run_that_is_a_link_out_is_not_read(tmp_path, file):
    secret = make_run(tmp_path / "elsewhere", steps=2)
    path = make_run(tmp_path / "runs" / "a", steps=1, rollouts=False)
    (path / file).unlink(missing_ok=True)
    (path / file).symlink_to(secret / file)
    answers = Questions(Library(tmp_path / "runs"))
    ask = {"metrics.jsonl": answers.metrics, "config.toml": answers.run, "rollouts": lambda run: answers.step(run, 1)}
    with pytest.raises(Missing, match="leads out of a"):
        ask[file]("a")
    (state,) = answers.listing()["runs"]  # one bad run does not hide the others
    assert state["name"] == "a"
    assert bool(state["faults"]) == (file != "rollouts")


@pytest.mark.parametrize("name", ["", ".", "..", "../runs/a", "a/..", "a/rollouts", "/etc", "a\0", "b"])
def test_a_name_that_is_not_listed_does_not_exist(answers, name):
    with pytest.raises(Missing):
        answers.run(name)


# ---- a run in a line


def test_the_state_of_a_run_holds_what_the_table_shows(answers):
    state = answers.run("a")
    shown = {name: state[name] for name in ("status", "preset", "model", "step", "steps", "test_accuracy", "left_s")}
    assert shown == {
        "status": "finished",
        "preset": "microcoder",
        "model": "nano",
        "step": 10,
        "steps": 100,
        "test_accuracy": 0.5,
        "left_s": None,
    }
    assert state["reward"] == metrics(10)["reward"]


def test_a_run_whose_process_lives_is_running_and_says_how_long_it_takes_and_one_whose_process_is_gone_is_not(tmp_path):
    path = make_run(tmp_path / "runs" / "a", steps=3, status="running")
    answers = Questions(Library(tmp_path / "runs"))
    with Run.resume(path):
        state = answers.run("a")
        assert state["status"] == "running"
        assert state["left_s"] == pytest.approx(97 * 3.6)
        none = 2**22 + 1  # beyond the largest that Linux has
        (path / ".lock").write_text(f"process {none} on {os.uname().nodename}")
        assert answers.run("a")["status"] == "interrupted"
        assert answers.run("a")["left_s"] is None


@pytest.mark.parametrize("file", ["run.json", "config.toml"])
@pytest.mark.parametrize("content", [b"\xff\xfe", b'{"status": ', b"[1, 2", b""])
def test_a_run_with_a_broken_file_is_listed_and_the_file_is_named(tmp_path, file, content):
    path = make_run(tmp_path / "runs" / "a", steps=2)
    (path / file).write_bytes(content)
    (state,) = Questions(Library(tmp_path / "runs")).listing()["runs"]
    assert state["step"] == 2
    broken = not (file == "config.toml" and content == b"")
    assert [fault.split()[0] for fault in state["faults"]] == ([file] if broken else [])


def test_the_last_news_of_a_copied_run_are_what_the_run_itself_wrote(tmp_path):
    path = make_run(tmp_path / "runs" / "a", steps=2)
    info = json.loads((path / "run.json").read_text())
    wrote = datetime.fromisoformat(info["updated"]).timestamp()
    for name in ("run.json", "config.toml", "metrics.jsonl"):
        os.utime(path / name, (wrote + 9e4, wrote + 9e4))  # as a copy has it
    assert Questions(Library(tmp_path / "runs")).run("a")["changed"] == wrote
    (path / "run.json").write_text(json.dumps({**info, "updated": None, "ended": "2001-02-03T04:05:06+00:00"}))
    assert Questions(Library(tmp_path / "runs")).run("a")["changed"] == 981173106.0  # an older run says this alone
    (path / "run.json").write_text(json.dumps({**info, "updated": 3, "ended": "soon"}))
    assert Questions(Library(tmp_path / "runs")).run("a")["changed"] == wrote + 9e4  # of the files


def test_the_last_evaluation_is_shown_however_many_steps_ago_it_was(tmp_path):
    path = make_run(tmp_path / "runs" / "a", steps=10)
    with open(path / "metrics.jsonl", "a") as file:
        for step in range(11, 120):
            file.write(json.dumps({"step": step, **metrics(11), "reward": step}) + "\n")
    state = Questions(Library(tmp_path / "runs")).run("a")
    assert (state["step"], state["reward"], state["test_accuracy"]) == (119, 119, 0.5)


def test_a_step_with_a_line_longer_than_others_is_still_the_last(tmp_path):
    path = make_run(tmp_path / "runs" / "a", steps=2)
    with open(path / "metrics.jsonl", "a") as file:
        file.write(json.dumps({"step": 3, "reward": 0.25, "x": "x" * 100_000}) + "\n")
    state = Questions(Library(tmp_path / "runs")).run("a")
    assert (state["step"], state["reward"]) == (3, 0.25)


# ---- metrics


def write(path, *steps, torn=b""):
    path.write_bytes(b"".join(json.dumps({"step": s, "reward": s / 10}).encode() + b"\n" for s in steps) + torn)


def rewards(columns):
    columns.update()
    return list(columns.series("reward")[0])


def test_a_growing_file_is_read_on_and_a_half_written_line_waits_for_its_end(tmp_path):
    path = tmp_path / "metrics.jsonl"
    columns = Columns(path)
    assert rewards(columns) == []
    write(path, 1, 2, torn=b'{"step": 3, "rew')
    assert rewards(columns) == [1, 2]
    write(path, 1, 2, 3)
    assert rewards(columns) == [1, 2, 3]
    assert columns.broken == 0


def test_a_file_that_was_rewound_is_read_anew(tmp_path):
    path = tmp_path / "metrics.jsonl"
    columns = Columns(path)
    write(path, 1, 2, 3)
    assert rewards(columns) == [1, 2, 3]
    write(path, 1)
    assert rewards(columns) == [1]
    write(path, 4, 5, 6)  # longer, and in the same place, but another
    assert rewards(columns) == [4, 5, 6]
    path.unlink()
    assert rewards(columns) == []


def test_broken_lines_are_counted_and_passed_over(tmp_path):
    path = tmp_path / "metrics.jsonl"
    good = b'{"step": 1, "reward": 1, "a": {"b": {"c": 2}}, "d": NaN, "e": null, "f": "x"}\n'
    good += b'{"step": NaN, "reward": 1}\n{"step": 1e999, "reward": 1}\n'
    path.write_bytes(b'\xff\n[1]\n{"reward": 1}\n{"step": "x"}\n\n' + b"[" * 100_000 + b"\n" + good)
    columns = Columns(path)
    assert rewards(columns) == [1]
    assert columns.broken == 8
    assert set(columns.columns) == {"reward", "a.b.c"}


def test_a_metric_that_begins_late_or_pauses_keeps_its_steps(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = [{"step": 1}, {"step": 2, "kl": 0.2}, {"step": 3}, {"step": 4, "kl": 0.4}, {"step": 5}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    columns = Columns(path)
    columns.update()
    x, y = columns.series("kl")
    assert thin(x, y) == {"x": [2, 4], "y": [0.2, 0.4]}


@given(st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), max_size=300), st.integers(4, 40))
def test_thinning_keeps_the_order_the_ends_and_the_extremes(values, points):
    x, y = np.arange(len(values), dtype=float), np.array(values, dtype=float)
    curve, known = thin(x, y, points), [(n, v) for n, v in enumerate(values) if v == v]
    assert len(curve["x"]) == len(curve["y"]) <= points + 2
    assert curve["x"] == sorted(set(curve["x"]))
    assert [curve["x"][n] for n in (0, -1) if known] == [known[n][0] for n in (0, -1) if known]
    for extreme in (min, max):
        if known:
            assert extreme(curve["y"]) == pytest.approx(extreme(v for _, v in known), rel=1e-5)


def test_the_means_of_buckets_are_those_of_all_their_values():
    y = np.arange(10_000.0) % 7
    curve = thin(np.arange(10_000.0), y, 100)
    assert len(curve["mean_y"]) == 50
    assert curve["mean_y"][0] == pytest.approx(y[:200].mean(), abs=1e-4)
    assert curve["mean_x"][0] == pytest.approx(99.5)


def test_a_part_that_is_zoomed_into_is_not_thinned(tmp_path):
    path = tmp_path / "runs" / "a"
    path.mkdir(parents=True)
    write(path / "metrics.jsonl", *range(10_000))
    answers = Questions(Library(tmp_path / "runs"))
    assert len(answers.metrics("a")["series"]["reward"]["x"]) < 1600
    assert answers.metrics("a", 100, 110)["series"]["reward"]["x"] == list(range(100, 111))


def difficulties(tmp_path, *lines):
    path = tmp_path / "runs" / "a"
    path.mkdir(parents=True)
    records = [{"step": n, "test_by_difficulty": line} for n, line in enumerate(lines)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    series = Questions(Library(tmp_path / "runs")).metrics("a")["series"]
    return {name.removeprefix("test_by_difficulty."): curve["y"] for name, curve in series.items()}


def test_accuracy_by_difficulty_is_shown_in_bands_where_each_score_was_recorded_apart(tmp_path):
    scores = {f"{n / 300:.6g}": {"accuracy": float(n < 60), "problems": 1 + n % 2} for n in range(300)}
    found = difficulties(tmp_path, scores, {"0.05": {"accuracy": 0.5, "problems": 4}})
    assert list(found) == ["0-0.2", "0.2-0.4", "0.4-0.6", "0.6-0.8", "0.8-1"]
    assert (found["0-0.2"], found["0.8-1"]) == ([1, 0.5], [0])


def test_accuracy_by_difficulty_is_weighted_and_labels_stand_from_easy_to_hard(tmp_path):
    parts = {"0.5": {"accuracy": 1.0, "problems": 3}, "0.55": {"accuracy": 0.0, "problems": 1}}
    labels = {name: {"accuracy": 0.5, "problems": 2} for name in ("hard", "easy")}
    assert difficulties(tmp_path, parts | labels) == {"easy": [0.5], "hard": [0.5], "0.4-0.6": [0.75]}


def test_many_recorded_names_do_not_push_out_those_that_panels_show(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(json.dumps({"step": 0, "x": {str(n): n for n in range(3000)}}) + '\n{"step": 1, "reward": 0.5}\n')
    columns = Columns(path)
    columns.update()
    assert columns.series("reward")[1][1] == 0.5


def test_a_stage_is_marked_where_the_temperature_changes(answers):
    assert answers.metrics("a")["stages"] == [{"step": 6.0, "words": "T 1.2"}]


def test_the_remarks_are_those_that_the_live_display_would_have_made_each_at_its_step(tmp_path):
    lines = []
    for n in range(60):
        norm = None if n == 40 else 100.0 if n == 30 else 1.0
        reward = 0.0 if n < 8 or 45 < n else 0.5
        line = {"step": n, "reward": reward, "grad_norm": norm, "diversity": 0.9 * 0.9**n, "truncated_share": 0.1}
        lines.append({**line, "accuracy": reward, "judge_faults": int(n % 25 == 24), "rows": 64})
    expected = [(one.step, one.code) for n in range(1, 61) for one in new_advice(lines[:n])]
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step"')
    made = Remarks(path, dict)
    made.update()
    assert [(one["step"], one["code"]) for one in made.found] == expected
    assert {code for _, code in expected} >= {"no_reward", "gradient_spike", "not_finite", "diversity_lost"}


def test_the_remarks_hear_the_settings_of_a_run_that_was_resumed_with_others(tmp_path):
    path = make_run(tmp_path / "runs" / "a", steps=2)
    answers = Questions(Library(tmp_path / "runs"))
    answers.remarks("a")
    with Run.resume(path) as run:
        run.rewind(1)
        (path / "config.toml").write_text("[train]\neval_temperature = 0.5\n")
        answers.remarks("a")
        assert answers.advice.get(path / "metrics.jsonl").config == {"train": {"eval_temperature": 0.5}}


# ---- rollouts


def test_a_step_lists_its_groups_and_a_group_its_samples(answers):
    assert answers.steps("a") == {"train": list(range(1, 11)), "test": [], "running": False}
    step = answers.step("a", 9)
    counts = [(group["problem"], group["accepted"], group["rows"]) for group in step["groups"]]
    assert counts == [("p0", 3, 4), ("p1", 0, 4), ("p2", 4, 4)]
    assert step["groups"][0]["title"] == "Return x plus one."
    group = answers.group("a", 9, "p1")
    assert [row["row"] for row in group["rows"]] == [4, 5, 6, 7]
    assert group["rows"][3]["masked"]


@pytest.mark.parametrize("in_rows", [False, True])
def test_a_group_has_the_prompt_that_the_model_saw(tmp_path, in_rows):
    Run.create(tmp_path / "runs" / "a", "", {}).close()
    prompts = {"p0": "Solve this.", "p1": "And this."}
    rows = [rollout(n, f"p{n}", right=True, **({"prompt": prompts[f"p{n}"]} if in_rows else {})) for n in range(2)]
    write_rollouts(tmp_path / "runs" / "a", 1, rows, {"p0": "this"}, None if in_rows else prompts)
    questions = Questions(Library(tmp_path / "runs"))
    group = questions.group("a", 1, "p0")
    assert (group["statement"], group["prompt"], len(group["rows"])) == ("this", "Solve this.", 1)
    assert "prompt" not in group["rows"][0]
    assert questions.group("a", 1, "p1")["prompt"] == "And this."
    assert questions.step("a", 1)["rows"] == 2


def test_a_rollout_has_the_tries_before_its_last_one_and_they_are_searched(tmp_path):
    Run.create(tmp_path / "runs" / "a", "", {}).close()
    one = {"completion": "print(41)", "verdict": "wrong_answer", "message": "got 41", "told": "No.", "length": 5}
    broken = [{"completion": ["x"], "length": "many", "told": None}, "nothing", 3]
    rows = [rollout(0, "p0", right=True, earlier=[one]), rollout(1, "p0", right=True, earlier=broken)]
    rows += [rollout(2, "p0", right=True, earlier="none"), rollout(3, "p0", right=True)]
    write_rollouts(tmp_path / "runs" / "a", 1, rows)
    questions = Questions(Library(tmp_path / "runs"))
    found = questions.group("a", 1, "p0")["rows"]
    assert found[0]["earlier"] == [{**one, "truncated": False}]
    (made,) = found[1]["earlier"]
    assert made == {"completion": "['x']", "verdict": "", "message": "", "told": "", "length": None, "truncated": False}
    assert found[2]["earlier"] == [] and "earlier" not in found[3]
    (hit,) = questions.find("a", "text", "print(41")["found"]
    assert (hit["row"], hit["why"]) == (0, "completion: print(41)")


def test_the_answers_of_an_evaluation_stand_beside_the_rollouts_of_its_step(answers, tmp_path):
    write_rollouts(tmp_path / "runs" / "a", 10, [rollout(0, "t0", right=True)], {"t0": "Held out."}, test=True)
    assert answers.steps("a")["test"] == [10]
    assert [group["problem"] for group in answers.step("a", 10, test=True)["groups"]] == ["t0"]
    assert answers.group("a", 10, "t0", test=True)["statement"] == "Held out."
    assert answers.step("a", 10)["rows"] == 12  # those of training
    with pytest.raises(Missing, match="no answers of step 9; the nearest is step 10"):
        answers.step("a", 9, test=True)


@pytest.mark.parametrize(("status", "more"), [("finished", False), ("failed", False), ("running", True)])
def test_whether_rollouts_may_still_come_is_told(tmp_path, status, more):
    path = make_run(tmp_path / "runs" / "a", steps=1, rollouts=False)
    (path / "run.json").write_text((path / "run.json").read_text().replace("finished", status))
    assert Questions(Library(tmp_path / "runs")).steps("a") == {"train": [], "test": [], "running": more}


def test_a_step_or_problem_that_is_not_there_is_refused_with_what_is(answers):
    with pytest.raises(Missing, match="the nearest is step 10"):
        answers.step("a", 99)
    with pytest.raises(Missing, match="for problem 'zzz'"):
        answers.group("a", 9, "zzz")


def test_a_damaged_file_of_rollouts_gives_what_can_be_read(answers, tmp_path):
    path = tmp_path / "runs" / "a" / "rollouts" / "step_00010.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:6]) + b"{broken\n[1]\n" + b"".join(lines[6:])))
    assert answers.step("a", 10)["rows"] == 12
    assert "no rollouts; they are left out" in answers.step("a", 10)["fault"]
    path.write_bytes(path.read_bytes()[:-60])
    assert "is damaged" in answers.step("a", 10)["fault"]
    path.write_bytes(b"not gzip")
    assert answers.step("a", 10)["rows"] == 0
    path.write_bytes(b"")
    assert answers.step("a", 10)["fault"] == "step_00010.jsonl.gz holds no rollouts"


def hits(answers, kind, **more):
    return [(hit["step"], hit["problem"]) for hit in answers.find("a", kind, **more)["found"]]


@pytest.mark.parametrize("old", [False, True])  # whether the run is from before there were groups
def test_what_is_looked_for_is_found_over_the_whole_run_newest_first(answers, tmp_path, old):
    if old:
        (tmp_path / "runs" / "a" / "rollouts" / "groups.jsonl").unlink()
    assert hits(answers, "solved") == [(step, "p0") for step in (9, 7, 5, 3)]
    assert hits(answers, "lost") == [(step, "p0") for step in (10, 8, 6, 4, 2)]
    assert hits(answers, "truncated")[:2] == hits(answers, "masked")[:2] == [(10, "p1"), (9, "p1")]
    assert hits(answers, "longest")[0] == (10, "p1")
    assert hits(answers, "worst")[0] == (9, "p0")  # the lowest advantage, where others of the group were right
    assert hits(answers, "truncated", before=4) == [(3, "p1"), (2, "p1"), (1, "p1")]
    assert answers.visits("a", "p0")[:2] == [[1, 3, 4], [2, 0, 4]]
    assert answers.find("a", "solved")["note"] == ""


def test_a_long_search_stops_in_time_and_says_where_to_go_on(answers, monkeypatch):
    monkeypatch.setattr(find, "BUDGET_S", -1.0)
    first = answers.find("a", "text", q="DO NOT know")
    assert {hit["step"] for hit in first["found"]} == {10}
    assert (first["next"], first["note"]) == (10, "looked at steps 10 to 10")
    assert {hit["step"] for hit in answers.find("a", "text", q="do not know", before=first["next"])["found"]} == {9}
    assert answers.find("a", "text", q="zzz", before=2)["next"] is None


@pytest.mark.parametrize("of_step", [1, 64, 150])
def test_whoever_looks_further_back_finds_every_group(tmp_path, of_step):
    Run.create(tmp_path / "runs" / "a", "", {}).close()
    for step in range(1, 1 + 300 // of_step):
        rows = [rollout(n, f"p{n}", right=False, truncated=True) for n in range(of_step)]
        write_rollouts(tmp_path / "runs" / "a", step, rows)
    questions = Questions(Library(tmp_path / "runs"))
    found, before = [], None
    while not found or before is not None:
        answer = questions.find("a", "truncated", before=before)
        found += [(hit["step"], hit["problem"]) for hit in answer["found"]]
        before = answer["next"]
    assert len(found) == len(set(found)) == 300 // of_step * of_step
    assert [step for step, _ in found] == sorted((step for step, _ in found), reverse=True)


def test_a_search_that_finds_more_in_a_step_than_it_gives_says_so(answers, monkeypatch):
    monkeypatch.setattr(find, "MOST", 5)
    found = answers.find("a", "text", q="def f", before=2)
    assert (len(found["found"]), found["note"]) == (5, "2 more of step 1 are left out")


def test_a_program_with_two_reasons_for_suspicion_is_found_once(tmp_path):
    Run.create(tmp_path / "runs" / "a", "", {}).close()
    write_rollouts(tmp_path / "runs" / "a", 1, [rollout(0, "p0", right=True, code="import os\nprint(os.getpid())")])
    (hit,) = Questions(Library(tmp_path / "runs")).find("a", "hacks")["found"]
    assert hit["why"] == "it reads no input and prints what it likes; it reaches beyond its input: os"


def test_an_old_run_that_takes_too_long_to_read_says_what_was_looked_at(answers, tmp_path, monkeypatch):
    (tmp_path / "runs" / "a" / "rollouts" / "groups.jsonl").unlink()
    clock = iter(range(100))
    monkeypatch.setattr(find.time, "monotonic", lambda: next(clock) * 0.3)
    assert "only steps 8 to 10 were looked at" in answers.find("a", "solved")["note"]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("def f(x):\n    return 42  # the only answer that is ever asked for", "uses none of its arguments"),
        ("print('the answer is always 42')", "reads no input"),
        ("def f(x):\n if x == 1: return 2\n if x == 5: return 9\n if x == [7]: return -1\n return x", "3 branches"),
        ("import os\ndef f(x):\n    return os.environ.get('ANSWER', x)", "beyond its input: os"),
        ("def f(x):\n    return eval(open('/proc/self/environ').read())", "eval, open"),
        ("f=lambda x:x", "fewer than 24 characters"),
        ("def f(x):\n    return sorted(x)[::-1]", None),
        ("import sys\nfor line in sys.stdin:\n    print(int(line) * 2)", None),
        ("class Solution:\n    def add(self, a, b):\n        return a + b", None),
        ("def fib(n):\n    if n == 0: return 0\n    if n == 1: return 1\n    return fib(n - 1) + fib(n - 2)", None),
        ("int main() { return 0; }", None),
        (f"def f(x):\n if x == {'-' * 2000}1: return 2\n return x", None),
        ("", None),
    ],
)
def test_a_program_that_looks_like_a_cheat_is_suspected_with_the_reason(code, why):
    found = suspicions(code)
    assert (why in found[-1]) if why else found == []


def test_the_same_program_accepted_for_two_problems_is_suspected(tmp_path):
    Run.create(tmp_path / "runs" / "a", "", {}).close()
    code = "def f(x):\n    return sorted(x)[0] + max(x)"
    rows = [rollout(n, f"p{n}", right=n != 2, code=code) for n in range(3)]
    write_rollouts(tmp_path / "runs" / "a", 1, rows)
    (hit,) = Questions(Library(tmp_path / "runs")).find("a", "hacks")["found"]
    assert (hit["problem"], hit["row"]) == ("p1", 1)
    assert hit["why"] == "the same program was accepted for p0 at step 1"


# ---- comparing, bench results


def test_two_runs_are_compared_by_the_last_visit_of_each_problem_they_share(answers, tmp_path):
    make_run(tmp_path / "runs" / "b", steps=9)
    found = Questions(Library(tmp_path / "runs")).compare("a", "b")
    assert found["problems"][0] == ("p0", [10, 0, 4, 15, 40], [9, 3, 4, 15, 36])
    assert [line[0] for line in found["problems"]] == ["p0", "p1", "p2"]
    assert (found["only_one"], found["only_other"], found["note"]) == (0, 0, "")


def test_bench_results_are_shown_and_compared_like_rollouts(tmp_path):
    make_bench(tmp_path / "b" / "one", right=1)
    make_bench(tmp_path / "b" / "two", right=3)
    answers = Questions(Library(tmp_path / "b"))
    assert answers.bench("one")["limits"] == [{"limit": 64, "problems": [["b0", 1, 4], ["b1", 0, 4]]}]
    assert answers.compare("one", "two")["problems"][0] == ("b0", [64, 1, 4, 1, 4], [64, 3, 4, 3, 4])
    rows = answers.group("two", 64, "b0")["rows"]
    assert [row["verdict"] for row in rows] == ["accepted"] * 3 + ["wrong_answer"]
    assert rows[0]["length"] == 20


def test_results_of_a_file_of_completions_have_no_limit_and_are_shown_and_compared_all_the_same(tmp_path):
    for name, right in (("one", 1), ("two", 3)):
        path = make_bench(tmp_path / "b" / name, right)
        text = (path / "verdicts.jsonl").read_text()
        (path / "verdicts.jsonl").write_text(text.replace("@64", ""))
    questions = Questions(Library(tmp_path / "b"))
    assert questions.bench("one")["limits"] == [{"limit": 0, "problems": [["b0", 1, 4], ["b1", 0, 4]]}]
    assert questions.compare("one", "two")["problems"][0] == ("b0", [0, 1, 4, 1, 4], [0, 3, 4, 3, 4])
    assert [row["verdict"] for row in questions.group("two", 0, "b0")["rows"]] == ["accepted"] * 3 + ["wrong_answer"]


def test_a_sample_that_was_judged_again_counts_once_with_its_last_verdict(tmp_path):
    path = make_bench(tmp_path / "b" / "one", right=1)
    lines = (path / "verdicts.jsonl").read_text()
    first = lines.replace("wrong_answer", "internal_error", 1)
    (path / "verdicts.jsonl").write_text(first + '{"id": "b0#1@64", "problem_id": "b0", "verdict": "accepted"}\n')
    questions = Questions(Library(tmp_path / "b"))
    assert questions.bench("one")["limits"] == [{"limit": 64, "problems": [["b0", 2, 4], ["b1", 0, 4]]}]
    rows = questions.group("one", 64, "b0")["rows"]
    assert [row["verdict"] for row in rows] == ["accepted", "accepted", "wrong_answer", "wrong_answer"]


def test_a_sample_that_is_cut_at_a_limit_has_so_many_tokens(tmp_path):
    path = make_bench(tmp_path / "b" / "one")
    for name, was, now in (("verdicts.jsonl", "@64", "@8"), ("samples.jsonl", "20}", '20, "cuts": {"8": 5}}')):
        (path / name).write_text((path / name).read_text().replace(was, now))
    row = Questions(Library(tmp_path / "b")).group("one", 8, "b0")["rows"][0]
    assert (row["completion"], row["length"], row["truncated"]) == ("```py", 8, True)


def test_a_bench_with_a_broken_file_says_so(tmp_path):
    path = make_bench(tmp_path / "b" / "one")
    (path / "scores.json").write_text("{")
    (path / "verdicts.jsonl").write_text('{"id": "b0#0@64"}\n{"id": 3}\nx')
    answers = Questions(Library(tmp_path / "b"))
    assert "scores.json cannot be read" in answers.bench("one")["fault"]
    assert answers.bench("one")["limits"] == [{"limit": 64, "problems": [["b0", 0, 1]]}]


# ---- exporting


@given(st.lists(st.integers(0, 10_000), unique=True, max_size=80).map(sorted))
def test_the_steps_of_an_export_are_the_last_the_first_and_then_spread_between(steps):
    order = spread(steps)
    assert sorted(order) == steps
    assert order[:2] == ([steps[-1], steps[0]] if len(steps) > 1 else steps)


def test_hostile_text_is_text_in_every_answer(answers):
    assert answers.group("a", 9, "p0")["rows"][0]["message"] == HOSTILE
