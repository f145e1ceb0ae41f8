"""The Python and console blocks of the README, the tutorials and one long example run, at a small size.

A page has one folder, in which its blocks run in their order.

1. A block with a title is a file of that name.
2. A command whose comment says what it needs (`# needs a GPU and the hub`) is only parsed.
3. `make` and `pip` are not run: the target and the extra have to exist. Other programs (`git`, `hf`) are not run.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import microcoder as mc
from microcoder.cli import cli
from microcoder.files import write_problems

ROOT = Path(__file__).resolve().parents[2]
OTHERS = [ROOT / "README.md", ROOT / "docs" / "explanation" / "difficulty.md"]
PAGES = [*OTHERS, *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SIZE = {
    "train.steps": 1,
    "train.train_batch_size": 2,
    "train.micro_batch_size": 8,
    "train.eval_every": 0,
    "train.eval_tries": 1,
    "train.max_response_tokens": 64,
    "data.test_size": 4,
    "data.train_size": 20,
    "grpo.samples": 4,
}
IN_PYTHON = {  # what is written: what runs
    'problems("train", 40)': 'problems("train", 24)',
    'problems("train", 120)': 'problems("train", 60)',
    "records[:16]": "records[:4]",
    "labelled(records), strict=True))": "labelled(records), strict=True), trees=10)",
    '"train.steps": 4': str(SIZE)[1:-1],
    'suite="starter"': 'suite="starter", first=4, samples=1, limit=64',
}
OTHER_PROGRAMS = {"git", "cd", "hf"}
OF_COMMANDS = {  # how a command begins: what is added to it
    "microcoder train": " " + " ".join(f"{name}={value}" for name, value in SIZE.items()),
    "microcoder eval": " --first 4 -n 1 --limit 64",
}


def blocks(page):
    return list(BLOCK.finditer(page.read_text(encoding="utf-8")))


def commands(block):
    return [line[2:] for line in block["text"].splitlines() if line.startswith("$ ")]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.name == "README.md":  # what its reader brings along
        write_problems("problems.jsonl", mc.load_problems(ROOT / "microcoder" / "examples" / "problems.jsonl"))
        Path("data.toml").write_text('[[collect.sources]]\npath = "problems.jsonl"\n[difficulty]\nby = "none"\n')
    names = {"__name__": "__main__"}
    ran = 0
    for block in blocks(page):
        if block["title"]:
            Path(block["title"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "python":
            text = block["text"]
            for written, small in IN_PYTHON.items():
                text = text.replace(written, small)
            exec(compile(text, name_of(page), "exec"), names)
            ran += 1
        elif block["kind"] == "console":
            for command in commands(block):
                ran += run_or_check(command, tmp_path)
    assert ran, "no block of this page runs"


def run_or_check(command, folder):
    """Run it, or check that it could be run; whether it was run."""
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), command
    elif words[0] == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        wanted = re.search(r"\[(.+)\]", words[-1])
        assert set(wanted[1].split(",") if wanted else ()) <= set(extras), command
    elif words[0] in OTHER_PROGRAMS:
        return False
    elif re.search(r"#.*\bneeds\b", command):
        parse(words)
    else:
        return run(command, folder)
    return False


def parse(words):
    """Raise click.UsageError where the command or an option of it does not exist."""
    assert words[0] == "microcoder"
    context = cli.make_context("microcoder", words[1:])
    _, command, rest = cli.resolve_command(context, words[1:])
    command.make_context(words[1], rest, parent=context)


def run(command, folder):
    line = shlex.join(shlex.split(command, comments=True))
    if "--dry-run" not in line:
        line += next((more for start, more in OF_COMMANDS.items() if line.startswith(start)), "")
    script = f'microcoder() {{ {shlex.quote(sys.executable)} -m microcoder.cli "$@"; }}\n{line}'
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=here, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return True


def test_a_command_that_is_only_parsed_is_refused_when_it_cannot_be_parsed():
    with pytest.raises(Exception, match="No such option"):
        parse(["microcoder", "train", "my.toml", "--dry"])
    with pytest.raises(Exception, match="there is no command"):
        parse(["microcoder", "trian", "my.toml"])


def test_the_readme_is_one_that_people_finish():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 130
