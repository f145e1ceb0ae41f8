"""Weights, adapters and tokenizers that do not fit are refused by name; nothing is made up in their place."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from click.testing import CliRunner
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file

from microcoder.cli import cli
from microcoder.models import ModelError, resolve
from microcoder.models.weights import load, load_tokenizer


@pytest.fixture
def nano(tmp_path):
    """A copy of nano."""
    return shutil.copytree(resolve("nano").path, tmp_path / "copy")


@pytest.fixture
def adapter(nano, tmp_path):
    base = load(resolve(str(nano)), torch.float32)
    made = get_peft_model(base, LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM"))
    made.peft_config["default"].base_model_name_or_path = str(nano)
    made.save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter"


def change(file, make):
    weights = load_file(file)
    save_file(make(weights), file, {"format": "pt"})


def test_missing_weights_are_named_and_not_drawn_at_random(nano):
    gone = "model.layers.0.self_attn.q_proj.weight"
    change(nano / "model.safetensors", lambda all_: {name: w for name, w in all_.items() if name != gone})
    with pytest.raises(ModelError, match=f"lacks 1 of its weights, such as {gone}"):
        load(resolve(str(nano)), torch.float32)


def test_weights_of_another_size_than_the_config_says_are_an_error_with_a_direction(nano):
    config = json.loads((nano / "config.json").read_text())
    (nano / "config.json").write_text(json.dumps(config | {"intermediate_size": config["intermediate_size"] + 1}))
    done = CliRunner().invoke(cli, ["eval", "run", str(nano), "--suite", "starter", "--first", "1", "-n", "1"])
    assert done.exit_code == 2 and "do not fit its config.json" in done.output


def test_an_adapter_of_another_model_is_refused(adapter):
    file = adapter / "adapter_model.safetensors"
    change(file, lambda all_: {name.replace("layers", "blocks"): w for name, w in all_.items()})
    with pytest.raises(ModelError, match="does not fit"):
        load(resolve(str(adapter)), torch.float32)


def test_an_adapter_brings_its_own_tokenizer_and_template(adapter):
    tokenizer = load_tokenizer(resolve(str(adapter)))
    tokenizer.chat_template = "{% for message in messages %}NEW {{ message['content'] }}{% endfor %}"
    tokenizer.save_pretrained(adapter)
    assert load_tokenizer(resolve(str(adapter))).chat_template.startswith("{% for message in messages %}NEW")
    assert load(resolve(str(adapter)), torch.float32) is not None


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% if foo %}{{ x", "the chat template cannot be read"),
        (
            "{% if messages[0].role == 'user' %}{{ raise_exception('no such role') }}{% endif %}",
            "refuses the prompt: no such role; try another style",
        ),
    ],
)
def test_a_template_that_cannot_be_used_is_an_error_with_a_direction(nano, template, words):
    (nano / "chat_template.jinja").write_text(template)
    command = ["eval", "run", str(nano), "--suite", "starter", "--first", "1", "-n", "1"]
    command += ["-o", str(nano.parent / "scores")]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 2 and words in done.output, done.output
