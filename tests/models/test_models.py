"""Names -> weights: what each name stands for, and that a folder of the cache is made once and as a whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from model_folders import adapter, model, run, tensors

from microcoder.models import ModelError, ModelSource, is_cached, known, names, resolve
from microcoder.models.source import cache, make_once

ROOT = Path(__file__).parents[2]


# --- folders, run directories, adapters, hub ids


def cut(file: Path, keep: int = -1) -> None:
    file.write_bytes(file.read_bytes()[:keep])


def test_a_folder_with_a_config_and_weights_is_the_model(tmp_path, monkeypatch):
    folder = model(tmp_path / "m")
    assert resolve(str(folder)) == ModelSource(str(folder), str(folder))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("m", "./m", "~/m"):
        assert resolve(name) == ModelSource(name, str(folder))  # absolute: it is still right after a change of folder
        assert is_cached(name)


def test_of_a_run_directory_the_newest_checkpoint_by_number_is_taken(tmp_path):
    for n in (9, 10, 100):
        model(tmp_path / "runs/a/checkpoints" / f"checkpoint-{n}")
    (tmp_path / "runs/a/checkpoints/checkpoint-last").mkdir()
    newest = str(tmp_path / "runs/a/checkpoints/checkpoint-100")
    for folder in ("runs/a", "runs/a/checkpoints"):
        assert resolve(str(tmp_path / folder)).path == newest


@pytest.mark.parametrize("keep", [0, 4, 20, -1])
def test_a_checkpoint_whose_weights_were_cut_off_is_passed_over_and_the_note_says_so(tmp_path, keep):
    for n in (1, 2):
        model(tmp_path / "checkpoints" / f"checkpoint-{n}")
    cut(tmp_path / "checkpoints/checkpoint-2/model.safetensors", keep)
    source = resolve(str(tmp_path))
    assert source.path.endswith("checkpoint-1")
    assert source.note == "checkpoint-2 not complete, checkpoint-1 taken"
    cut(tmp_path / "checkpoints/checkpoint-1/model.safetensors", keep)
    with pytest.raises(ModelError, match=r"no checkpoint of .* has all its weights: checkpoint-2, checkpoint-1"):
        resolve(str(tmp_path))


def test_weights_in_shards_count_only_when_every_shard_is_whole(tmp_path):
    folder = model(tmp_path / "m")
    for n in (1, 2):
        tensors(folder / f"{n}.safetensors")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})
    )
    assert is_cached(str(folder))
    cut(folder / "2.safetensors")
    assert not is_cached(str(folder))


def test_an_adapter_comes_with_the_model_it_was_trained_on(tmp_path):
    base = model(tmp_path / "base")
    on_folder, on_hub = adapter(tmp_path / "a", str(base)), adapter(tmp_path / "run/checkpoints/checkpoint-3", "o/n")
    assert resolve(str(on_folder)) == ModelSource(str(on_folder), str(base), str(on_folder))
    assert resolve(str(tmp_path / "run")) == ModelSource(str(tmp_path / "run"), "o/n", str(on_hub))


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ("/moved/away", r"adapter for the model '/moved/away', which cannot be loaded: there is no folder"),
        (None, 'has no "base_model_name_or_path"'),
        ("{folder}/other", "adapter for another adapter"),
    ],
)
def test_an_adapter_without_a_model_under_it_says_what_to_change(tmp_path, base, words):
    adapter(tmp_path / "other", "o/n")
    folder = adapter(tmp_path / "a", base and base.format(folder=tmp_path))
    with pytest.raises(ModelError, match=words):
        resolve(str(folder))


@pytest.mark.parametrize("name", ["Qwen/Qwen3-0.6B", "a/b", "HuggingFaceTB/SmolLM2-135M-Instruct"])
def test_a_hub_id_is_passed_on_as_it_is(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert resolve(name) == ModelSource(name, name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "no model is called ''; known are nano, smollm2-135m"),
        ("smollm2", "did you mean 'smollm2-135m'?"),
        ("Nano", "did you mean 'nano'?"),
        ("gpt2", "a hub id such as Qwen/Qwen3-0.6B"),
        ("runs/b", "there is no folder runs/b; did you mean 'bb'?"),  # not a hub id: there is a folder runs
        ("./x", "there is no folder ./x"),
        ("~nobody-of-that-name/x", "there is no folder ~nobody"),
        ("a/b/c", "there is no folder a/b/c"),
        (
            "runs/bb/w.txt",
            "is no GGUF file: it begins with b''; name a .gguf file, or the folder that the weights are in: ",
        ),
        ("runs/bb/x.gguf", "there is no file runs/bb/x.gguf"),
        ("runs/bb", "holds no model: there is neither config.json"),
    ],
)
def test_a_name_that_stands_for_nothing_says_what_would(tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/bb").mkdir(parents=True)
    (tmp_path / "runs/bb/w.txt").touch()
    with pytest.raises(ModelError) as error:
        resolve(name)
    assert words in str(error.value)
    assert not is_cached(name)


def test_nano_is_part_of_the_package_and_a_folder_of_that_name_is_dot_slash_nano(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = model(tmp_path / "nano")
    monkeypatch.setattr(names, "NANO", tmp_path / "package/nano")
    assert (known()[0].parameters, is_cached("nano")) == (0, False)
    with pytest.raises(ModelError, match=r"scripts/train_nano\.py"):
        resolve("nano")
    shipped = model(tmp_path / "package/nano")
    assert resolve("nano").path == str(shipped)
    assert resolve("./nano").path == str(mine)
    assert (known()[0].parameters, known()[0].where, is_cached("nano")) == (6, str(shipped), True)


def test_importing_the_module_and_listing_the_models_is_light(tmp_path):
    program = (
        "import sys; from microcoder.models import known\n"
        "print({'torch', 'transformers', 'huggingface_hub', 'numpy'} & set(sys.modules))\n"
        "known(); print({'torch', 'transformers'} & set(sys.modules))"
    )
    assert run(program, MICROCODER_CACHE=str(tmp_path)) == "set()\nset()\n"


# --- the cache


def test_the_cache_is_where_the_environment_says_or_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MICROCODER_CACHE", "~/mine")
    assert cache() == tmp_path / "mine"
    monkeypatch.setenv("MICROCODER_CACHE", "")
    assert cache() == tmp_path / ".cache/microcoder"


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, OSError(28, "No space left on device")])
def test_an_interrupted_making_leaves_nothing_and_can_be_done_again(tmp_path, error):
    def interrupted(folder):
        (folder / "half").write_text("made")
        raise error

    with pytest.raises((KeyboardInterrupt, RuntimeError, ModelError)):
        make_once(tmp_path / "m", interrupted, print)
    assert [p.name for p in tmp_path.iterdir()] == ["m.lock"]
    make_once(tmp_path / "m", lambda folder: (folder / "whole").touch(), print)
    assert [p.name for p in (tmp_path / "m").iterdir()] == ["whole"]


MAKE = """
import os, sys, time
from pathlib import Path
from microcoder.models.source import make_once
def make(folder):
    (folder / "half").touch()
    {}
    print("made")
make_once(Path(sys.path[-1]) / "m", make, print)
"""


def test_what_a_killed_process_left_is_not_taken_for_a_model(tmp_path):
    program = f"import sys; sys.path.append({str(tmp_path)!r})" + MAKE.format("os.kill(os.getpid(), 9)")
    with pytest.raises(subprocess.CalledProcessError):
        run(program)
    assert not (tmp_path / "m").exists()
    assert (tmp_path / "m.part/half").exists()
    make_once(tmp_path / "m", lambda folder: (folder / "whole").touch(), print)
    assert [p.name for p in (tmp_path / "m").iterdir()] == ["whole"]
    assert not (tmp_path / "m.part").exists()


def test_of_several_processes_one_makes_the_folder_and_the_others_wait(tmp_path):
    program = f"import sys; sys.path.append({str(tmp_path)!r})" + MAKE.format("time.sleep(1)")
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = [subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE) for _ in range(3)]
    said = "".join(process.communicate()[0] for process in started)
    assert [process.returncode for process in started] == [0, 0, 0]
    assert said.count("made") == 1
    assert (tmp_path / "m/half").exists()


def test_a_cache_that_cannot_be_written_says_how_to_choose_another(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match=r"cannot write .*: File exists; .* export MICROCODER_CACHE="):
        make_once(tmp_path / "file/m", lambda folder: None, print)
