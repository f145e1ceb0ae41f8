"""What the shell offers after a Tab: asked through the script itself, in a real bash."""

import os
import shutil
import subprocess
import sys

import pytest

ASK = """
microcoder() { "$PYTHON" -m microcoder.cli "$@"; }
compopt() { echo "compopt $2"; }
eval "$(microcoder completion bash)"
COMP_LINE="$LINE" COMP_POINT=${#LINE}
_microcoder_completion microcoder
printf '%s\\n' "${COMPREPLY[@]}"
"""


def run(*words, **options):
    return subprocess.run([sys.executable, "-m", "microcoder.cli", *words], capture_output=True, text=True, **options)


@pytest.fixture
def offered(tmp_path):
    """What bash offers for a line that ends at the cursor, in a folder with a few files."""
    (tmp_path / "runs" / "a").mkdir(parents=True)
    for name in ("my.toml", "of mine.toml", "problems.parquet", "notes.txt"):
        (tmp_path / name).touch()

    def ask(line, **environment):
        here = {
            **os.environ,
            "PYTHON": sys.executable,
            "LINE": line,
            "PYTHONPATH": os.pathsep.join(sys.path),
            **environment,
        }
        done = subprocess.run(["bash", "-c", ASK], capture_output=True, text=True, cwd=tmp_path, env=here, check=True)
        return done.stdout.splitlines()

    return ask


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_that_the_shell_accepts(shell):
    script = run("completion", shell).stdout
    assert "_MICROCODER_COMPLETE" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "answer"), [("microcoder ju", "judge"), ("microcoder judge a b judge.tim", "judge.time_limit_s=")]
)
def test_commands_and_settings_are_completed(words, answer):
    asked = {"_MICROCODER_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    assert f"plain,{answer}" in run(env={**os.environ, **asked}).stdout.splitlines()


@pytest.mark.parametrize("line", ["microcoder train demo grpo.pre", "microcoder train runs"])
def test_no_space_follows_a_word_that_is_not_complete(offered, line):
    assert offered(line) in (["compopt nospace", "grpo.preset="], ["compopt nospace", "runs/"])


def test_a_space_follows_a_word_that_is_complete(offered):
    assert offered("microcoder train dem") == ["demo"]


def test_values_of_a_setting_are_offered_without_what_bash_cut_off(offered):
    assert offered("microcoder train demo grpo.preset=d") == ["dapo", "dr_grpo", "dppo"]
    assert offered("microcoder train demo judge.reuse=") == ["true", "false"]
    assert offered("microcoder train demo data.train=p") == ["problems.parquet"]


def test_values_are_whole_words_where_bash_does_not_cut(tmp_path):
    line = "microcoder train demo grpo.preset=mi"
    asked = {
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_BREAKS": " \t\n",
        "_MICROCODER_COMPLETE": "bash_complete",
    }
    assert run(env={**os.environ, **asked}).stdout == "plain,grpo.preset=microcoder\n"


@pytest.mark.parametrize(
    ("line", "some", "none"),
    [
        ("microcoder train ", {"demo", "paper", "my.toml", "of\\ mine.toml", "runs/"}, {"notes.txt", "grpo.preset="}),
        ("microcoder train my.toml gr", {"grpo.preset=", "grpo.rho="}, {"demo"}),
        ("microcoder calibrate d", {"demo"}, {"nano"}),
        ("microcoder config ", {"demo", "my.toml"}, {"notes.txt"}),
        ("microcoder cp ", {"demo", "smollm2"}, {"my.toml"}),
        ("microcoder eval ", {"nano", "smollm2-135m", "runs/"}, {"demo"}),
        (
            "microcoder eval nano --suite ",
            {"livecodebench", "humaneval", "mbpp", "humanevalplus", "mbppplus", "starter", "problems.parquet"},
            set(),
        ),
        ("microcoder study run t", {"temperature", "truncation"}, {"starter"}),
        ("microcoder train runs/", {"runs/a/"}, {"demo"}),
    ],
)
def test_names_and_files_are_offered_where_they_fit(offered, line, some, none):
    found = {word for word in offered(line) if not word.startswith("compopt")}
    assert some <= found
    assert not none & found
