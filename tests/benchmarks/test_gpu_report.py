"""The page of `benchmarks.gpu arms report`, from hand-made folders whose numbers can be worked out by hand."""

from __future__ import annotations

import gzip
import json
import sys
import tarfile

import pytest

from benchmarks.gpu import arms
from benchmarks.gpu.choose import choose
from benchmarks.gpu.report import Comparison, report
from microcoder.config import load, to_toml
from microcoder.files import write_problems
from microcoder.schema import Problem, Test

LEVELS = {"a": "easy", "b": "easy", "c": "medium", "d": "hard"}
ASK = {
    "model": "m", "weights": "w", "suite": "s", "digest": "x", "style": "code", "chat": {}, "source": "file",
    "tries": 2, "temperature": 0.2, "top_p": 1.0, "top_k": 0, "limits": [64], "seed": 0, "chunk": 1, "judge": {},
}  # fmt: skip
STEP = {"truncated_share": 0.5, "masked_share": 0.25, "no_signal_share": 0.5, "entropy": 0.2, "step_s": 4.0}


@pytest.fixture
def data(tmp_path):
    tests = [Test("1\n", "1\n")]
    problems = [Problem(id=name, statement="?", kind="stdin", tests=tests, difficulty=LEVELS[name]) for name in LEVELS]
    (tmp_path / "data").mkdir()
    write_problems(tmp_path / "data" / "test.jsonl.gz", problems)
    return tmp_path / "data"


def evaluated(out, name, rights, suite="test", base=(), **ask):
    """An evaluation: {problem: whether each sample is right}; samples in `base` fail at the second test only."""
    folder = out / "bench" / f"{name}.{suite}"
    folder.mkdir(parents=True)
    ask = ASK | ask
    (folder / "bench.json").write_text(json.dumps(ask))
    more = {"base_tests": dict.fromkeys(rights, 1)} if suite.endswith("plus") else {}
    (folder / "scores.json").write_text(json.dumps({"scores": {}, **more}))
    samples, verdicts = [], []
    for problem, tries in rights.items():
        for number, right in enumerate(tries):
            samples.append({"problem_id": problem, "number": number, "text": "x", "tokens": 9})
            for limit in ask["limits"]:
                said = {} if right else {"message": f"test {int(problem in base)}: no"}
                found = {"id": f"{problem}#{number}@{limit}", "problem_id": problem, **said}
                verdicts.append(found | {"verdict": "accepted" if right and limit > 9 else "wrong_answer"})
    for file, lines in (("samples", samples), ("verdicts", verdicts)):
        (folder / f"{file}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def trained(out, name, preset, rewards, finished=True, **settings):
    folder = out / "runs" / name
    folder.mkdir(parents=True)
    words = [f"grpo.preset={preset}", *(f"{key.replace('__', '.')}={value}" for key, value in settings.items())]
    (folder / "config.toml").write_text(to_toml(load(None, words)))
    lines = [{"step": 0, "test_accuracy": 0.1}]
    for step, reward in enumerate(rewards, 1):
        lines.append({"step": step, "reward": reward, "accuracy": reward, "length_mean": 10.0 * step, "diversity": 0.5})
        lines[-1] |= STEP
    lines[-1]["test_accuracy"] = 0.3
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if finished:
        (folder / "summary.json").write_text(json.dumps({"status": "finished"}))


def rows_of(page, title):
    """The rows of a table by their first cell: {arm: {column: cell}}."""
    section = page.split(f"## {title}")[1].split("\n## ")[0]
    lines = [line.replace("\\", "")[2:-2].split(" | ") for line in section.splitlines() if line.startswith("|")]
    head = [cell if cell != "p" or n == 0 else f"p{n}" for n, cell in enumerate(lines[0])]
    return {line[0]: dict(zip(head, line, strict=True)) for line in lines[2:]}


@pytest.fixture
def out(tmp_path):
    """Two seeds of grpo_plus, two of microcoder, one of dapo that is neither finished nor scored."""
    out = tmp_path / "out"
    evaluated(out, "base", {"a": [1, 0], "b": [0, 0], "c": [0, 0], "d": [0, 0]})
    evaluated(out, "grpo_plus-s0", {"a": [1, 1], "b": [0, 0], "c": [1, 0], "d": [0, 0]})
    evaluated(out, "grpo_plus-s1", {"a": [1, 1], "b": [1, 0], "c": [0, 0], "d": [0, 0]})
    evaluated(out, "microcoder-s0", {"a": [1, 1], "b": [1, 1], "c": [1, 0], "d": [0, 0]})
    evaluated(out, "microcoder-s1", {"a": [1, 1], "b": [1, 1], "c": [1, 1], "d": [1, 0]})
    for seed in (0, 1):
        trained(out, f"grpo_plus-s{seed}", "grpo_plus", [0.1 + 0.1 * seed] * 10 + [0.3] * 10)
        trained(out, f"microcoder-s{seed}", "microcoder", [0.1] * 20)
    trained(out, "dapo-s0", "dapo", [0.1, 0.2], finished=False)
    return out


def test_the_table_has_accuracies_by_difficulty_and_gains(out, data):
    page = report(out, data)
    assert page == (out / "report.md").read_text(encoding="utf-8")
    rows = rows_of(page, "LeetCode problems newer than those of training: 2 samples each at T 0.2, limit 64")
    assert list(rows) == ["problems", "base", "grpo_plus", "microcoder"]
    assert [rows["problems"][level] for level in ("easy", "medium", "hard", "all")] == ["2", "1", "1", "4"]
    plain = {arm: [rows[arm][level].split()[0] for level in ("easy", "medium", "hard", "all")] for arm in rows}
    assert plain["base"] == ["25.0", "0.0", "0.0", "12.5"]  # a: 1 of 2
    assert plain["grpo_plus"] == ["62.5", "25.0", "0.0", "37.5"]  # a 100, b 25, c 25: 150 / 4
    assert plain["microcoder"] == ["100.0", "75.0", "25.0", "75.0"]
    assert rows["grpo_plus"]["seeds"] == "2" and rows["base"]["seeds"] == ""
    over = "over grpo_plus, the best baseline"
    assert rows["microcoder"]["over the untrained"].startswith("+62.5 (")
    assert rows["microcoder"][over].startswith("+37.5 (") and rows["microcoder"]["relative, %"].startswith("+100")
    assert rows["microcoder"]["p7"] == "0.125"  # four problems, all better: 2 of 16 sign flips
    assert rows["grpo_plus"][over] == rows["base"]["over the untrained"] == ""


def test_what_a_part_does_is_the_difference_of_two_arms_paired_by_seed(out, data):
    rows = rows_of(report(out, data), "What each part does")
    assert list(rows) == ["dynamic sampling, overlong shaping", "the conditional mask"]
    mask = rows["the conditional mask"]
    assert mask["arms"] == "microcoder - grpo_plus" and mask["LeetCode, newer, at 64"].startswith("+37.5 (")
    assert mask["p3"] == "0.250"  # three problems differ, all of them better: 2 of 8 sign flips
    assert mask["reward"].startswith("−0.2")  # 0.1 at the end against 0.3, in both seeds
    unmade = rows["dynamic sampling, overlong shaping"]  # dapo is neither scored nor finished
    assert unmade["LeetCode, newer, at 64"] == "" and unmade["reward"] == "not recorded"


def test_what_is_missing_is_named(out, data):
    (out / "bench" / "base.humanevalplus").mkdir()
    (out / "bench" / "base.humanevalplus" / "bench.json").write_text(json.dumps(ASK))
    page = report(out, data)
    assert "- dapo-s0 is not finished: 2 steps" in page and "- Not scored on test: dapo-s0" in page
    assert "No score of base on humanevalplus: the evaluation in" in page and "is not finished" in page


def test_every_suite_has_a_column_and_every_seed_a_row(out, data):
    evaluated(out, "base", {"p": [1, 0], "q": [0, 0]}, "humanevalplus", base="q")
    evaluated(out, "dapo-s0", {"p": [1, 1], "q": [0, 1]}, "humanevalplus")
    rows = rows_of(report(out, data), "All suites, limit 64")
    assert list(rows) == [
        "base",
        "grpo_plus",
        "grpo_plus-s0",
        "grpo_plus-s1",
        "dapo",
        "microcoder",
        "microcoder-s0",
        "microcoder-s1",
    ]
    assert rows["microcoder-s0"]["LeetCode, newer"].startswith("62.5 (")
    assert rows["base"]["HumanEval"].startswith("75.0 (") and rows["base"]["HumanEval+"].startswith("25.0 (")
    assert rows["dapo"]["HumanEval+"].startswith("75.0 (") and rows["dapo"]["LeetCode, newer"] == ""


def test_dynamics_are_the_ends_of_each_run_and_their_mean(out, data):
    rows = rows_of(report(out, data), "Dynamics")
    assert rows["grpo_plus"]["reward"] == "0.150 → 0.300"  # seeds begin at 0.1 and 0.2
    assert rows["grpo_plus"]["tokens"] == "15 → 195"  # of 20 steps, steps 1 and 2, and 19 and 20
    assert rows["grpo_plus"]["validation"] == "10.0% → 30.0%" and rows["grpo_plus"]["masked"] == "25.00% → 25.00%"
    assert rows["dapo"]["steps"] == "2" and rows["dapo"]["reward"] == "0.100 → 0.200"
    assert rows["dapo"]["s/step"] == "4.0" and rows["dapo"]["sampling"] == ""
    assert (out / "curves.png").stat().st_size and (out / "curves.svg").stat().st_size


def test_settings_that_arms_differ_in_are_shown_and_others_said_once(out, data):
    page = report(out, data)
    rows = rows_of(page, "What the arms differ in")
    assert rows["microcoder"]["grpo.mask"] == "conditional" and rows["dapo"]["grpo.dynamic_sampling"] == "3"
    assert "train.lr" not in rows["dapo"] and "`train.steps = " in page
    trained(out, "grpo_plus-s2", "grpo_plus", [0.1], train__lr="1e-5")
    assert " and " in rows_of(report(out, data), "What the arms differ in")["grpo_plus"]["train.lr"]


def test_a_limit_has_a_table_of_its_own(tmp_path, data):
    evaluated(tmp_path, "base", {"a": [1, 1], "b": [0, 0]}, limits=[8, 16])
    page = report(tmp_path, data)
    short, long = (
        rows_of(page, f"LeetCode problems newer than those of training: 2 samples each at T 0.2, limit {n}")
        for n in (8, 16)
    )
    assert (short["base"]["all"], long["base"]["all"].split()[0]) == ("0.0", "50.0")


def test_evaluations_of_other_problems_are_left_out_and_other_conditions_named(out, data):
    evaluated(out, "grpo-s0", {"a": [1, 1]}, digest="y")
    evaluated(out, "grpo-s1", {name: [1] for name in LEVELS}, tries=1)
    page = report(out, data)
    assert "Left out on test, since of other problems than most: grpo-s0" in page
    assert "NOT ALIKE on test: tries is 1 and 2" in page
    assert rows_of(page, "LeetCode problems newer")["grpo"]["seeds"] == "1"


def test_one_problem_is_too_few_for_a_difference(tmp_path, data):
    evaluated(tmp_path, "base", {"a": [1, 0]})
    evaluated(tmp_path, "grpo-s0", {"a": [1, 1]})
    row = rows_of(report(tmp_path, data), "LeetCode problems newer")["grpo"]
    assert (row["all"], row["over the untrained"]) == ("100.0", "")


def test_an_arm_is_a_baseline_unless_its_preset_is_microcoder(out):
    trained(out, "ours-s0", "microcoder", [0.1])
    found = Comparison(out)
    assert [arm for arm in found.arms if found.is_baseline(arm)] == ["grpo_plus", "dapo"]


def asked(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["arms", "report", *map(str, words)])
    return arms.main()


def test_the_command_prints_the_page(out, data, monkeypatch, capsys):
    assert asked(monkeypatch, "--out", out, "--data", data) == 0
    assert "## Dynamics" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["empty", "no data", "other data"])
def test_what_cannot_be_reported_is_refused_with_a_direction(what, out, data, tmp_path, monkeypatch, capsys):
    words = [
        "--out",
        tmp_path / "nothing" if what == "empty" else out,
        "--data",
        tmp_path if what == "no data" else data,
    ]
    if what == "other data":
        write_problems(data / "test.jsonl.gz", [Problem(id="z", statement="?", kind="stdin", tests=[Test("1", "1")])])
    said = {"empty": "holds no run", "no data": "name the folder with --data", "other data": "4 of the problems"}[what]
    with pytest.raises(SystemExit) as ended:
        asked(monkeypatch, *words)
    assert ended.value.code == 2 and said in capsys.readouterr().err


def test_the_best_arm_on_the_second_half_of_its_evaluations_is_chosen(tmp_path, monkeypatch, capsys):
    for lr, (peak, last) in {"1e-06": (0.2, 0.3), "1e-05": (0.9, 0.1)}.items():
        trained(tmp_path, f"lr{lr}-s0", "grpo_plus", [0.1] * 10, train__lr=lr)
        path = tmp_path / "runs" / f"lr{lr}-s0" / "metrics.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines[4]["test_accuracy"], lines[5]["test_accuracy"], lines[10]["test_accuracy"] = peak, last, last
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr(sys, "argv", ["arms", "choose", "--out", str(tmp_path)])
    assert arms.main() == 0
    said = capsys.readouterr()
    assert said.out == "train.lr=1e-06\n" and "lr1e-06              30.0% on validation, 1 seeds" in said.err


def test_nothing_is_chosen_from_nothing(tmp_path):
    trained(tmp_path, "a-s0", "grpo_plus", [0.1], finished=False)
    with pytest.raises(SystemExit, match="no finished run with an evaluation"):
        choose(tmp_path)


def test_a_bare_archive_has_no_texts_of_problems_and_gives_the_same_page(out, data, tmp_path):
    evaluated(out, "base", {"a": [1, 0], "b": [0, 0]}, suite="humanevalplus", base=["b"])
    page = report(out, data)
    for row in (
        {"problem": "a", "statement": "SECRET"},
        {"problem": "a", "completion": "kept", "message": "test 1: SECRET"},
    ):
        rows = out / "runs" / "grpo_plus-s0" / "rollouts" / "step_00001.jsonl.gz"
        rows.parent.mkdir(exist_ok=True)
        with gzip.open(rows, "at") as file:
            file.write(json.dumps(row) + "\n")
    for samples in out.glob("bench/*/samples.jsonl"):
        samples.write_text(samples.read_text().replace('"text": "x"', '"text": "SECRET"'))
    (out / "logs").mkdir()
    (out / "logs" / "a.log").write_text("SECRET")
    (volume,) = arms.pack(out, tmp_path / "packed", rollouts=2, bare=True)
    with tarfile.open(volume) as archive:
        archive.extractall(tmp_path / "bare", filter="data")
    texts = [gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
             for path in (tmp_path / "bare").rglob("*") if path.is_file()]  # fmt: skip
    assert not any(b"SECRET" in text or str(tmp_path).encode() in text for text in texts)
    assert any(b"kept" in text for text in texts)
    assert report(tmp_path / "bare", data) == page.replace(str(out), str(tmp_path / "bare"))
