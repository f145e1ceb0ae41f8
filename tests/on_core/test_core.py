"""What `pip install microcoder` gives without any extra, and what the rest says that needs one."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import microcoder as mc

EXAMPLES = Path(mc.__file__).parent / "examples"
PROBLEMS, SOLUTIONS = EXAMPLES / "problems.jsonl", EXAMPLES / "solutions.jsonl"
TOOLS = set("pip setuptools pkg_resources _distutils_hack pytest _pytest pluggy iniconfig packaging".split())
AIM_MB, BOUND_MB = 200, 300  # pyarrow alone takes 156 and numpy 71


def microcoder(*words, cwd=None):
    command = [sys.executable, "-m", "microcoder.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_nothing_heavy_is_installed():
    heavy = ["torch", "transformers", "trl", "datasets", "sklearn", "matplotlib", "fastapi", "ray", "verl"]
    assert [name for name in heavy if importlib.util.find_spec(name)] == []


def test_the_size_on_disk(capsys):
    """Print what the core and all that it needs take, without the tools of the environment."""
    sizes = {"microcoder": size(Path(mc.__file__).parent)}
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        name = path.name.partition(".")[0].partition("-")[0]
        if name not in TOOLS:
            sizes[name] = sizes.get(name, 0) + size(path)
    total, largest = sum(sizes.values()), sorted(sizes, key=sizes.__getitem__, reverse=True)[:4]
    with capsys.disabled():
        shares = ", ".join(f"{name} {sizes[name]:.0f}" for name in largest)
        print(f"\nthe core: {total:.0f} MB on disk (aim: {AIM_MB}), of which {shares}")
    assert {"pyarrow", "numpy"} <= set(sizes) and total < BOUND_MB


def size(path):
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def test_the_judge_command_gives_the_verdicts_written_beside_the_examples(tmp_path):
    out = tmp_path / "v.jsonl"
    done = microcoder("judge", PROBLEMS, SOLUTIONS, "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    expected = {row["id"]: row["expected"] for row in map(json.loads, SOLUTIONS.read_text().splitlines())}
    assert {row["id"]: row["verdict"] for row in map(json.loads, out.read_text().splitlines())} == expected


def test_judge_and_load_problems_work_from_python_with_parquet(tmp_path):
    from microcoder.files import write_problems

    write_problems(tmp_path / "p.parquet", mc.load_problems(PROBLEMS))
    problems = mc.load_problems(tmp_path / "p.parquet")
    assert [problem.id for problem in problems] == [problem.id for problem in mc.load_problems(PROBLEMS)]
    echo = mc.Problem(id="a", tests=[mc.Test("1", "1")])
    with mc.Judge() as judge:
        (verdict,) = [verdict for _, verdict in judge.map([(echo, "```python\nprint(input())\n```")])]
    assert verdict.accepted
    assert "torch" not in sys.modules


def test_rewards_work_and_what_needs_verifiers_names_it():
    from microcoder import rewards

    echo = mc.Problem(id="a", tests=[mc.Test("1", "1")])
    completions = ["```python\nprint(input())\n```", "no code"]
    assert rewards.CodeReward([echo], judge={"workers": 1})(completions, id=["a", "a"]) == [1.0, 0.0]
    env = rewards.CodeEnv([echo], judge={"workers": 1})
    env.reset()
    assert env.step(completions[0])[1] == 1.0
    with pytest.raises(ImportError, match=re.escape("pip install 'microcoder[verifiers]'")):
        rewards.verifiers_env("p.parquet")


def test_doctor_names_the_extras_that_are_missing():
    found = json.loads(microcoder("doctor", "--json").stdout)
    assert not any(found["extras"].values())
    assert "torch" not in found["versions"]


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("train demo", "train"),
        ("train demo --dry-run", "train"),
        ("train demo run.engine=verl", "verl"),
        ("calibrate demo", "train"),
        ("eval nano --suite starter", "train"),
        ("study run temperature", "train"),
        ("data run data.toml", "data"),
        ("view", "view"),
        ("serve", "serve"),
        ("judge p.jsonl s.jsonl --ray auto", "ray"),
        ("data run data.toml --ray auto", "data"),
    ],
)
def test_a_command_whose_extra_is_missing_says_in_one_line_what_to_type(tmp_path, words, extra):
    (tmp_path / "data.toml").write_text('collect.sources = [{path = "p.jsonl"}]\n')
    (tmp_path / "p.jsonl").write_bytes(PROBLEMS.read_bytes())
    (tmp_path / "s.jsonl").write_bytes(SOLUTIONS.read_bytes())
    (tmp_path / "runs").mkdir()
    done = microcoder(*words.split(), cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()  # at once: no step of the work comes before it
    assert line.endswith(f"pip install 'microcoder[{extra}]'")


@pytest.mark.parametrize(
    "words",
    ["ls", "config demo", "cp demo my.toml", "completion bash", "data config", "study ls", "train --help", "--help"],
)
def test_what_needs_no_extra_works(tmp_path, words):
    done = microcoder(*words.split(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
