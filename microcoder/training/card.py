"""A trained model for use elsewhere: whole, in bfloat16, adapters merged, a card with the run's figures; the hub."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path
from typing import Any

import torch

from ..config import Config
from ..config import load as load_config
from ..models import ModelSource, resolve
from ..models.names import HUB_ID
from ..models.weights import load, load_tokenizer
from ..runs import RunError, best_step, checkpoints, read_info, read_metrics


def export(run: str | Path, folder: str | Path, checkpoint: str = "last") -> Path:
    """Write the model of a run into `folder`, which must not be there yet. Return the checkpoint it was made of.

    checkpoint   last, best (by test accuracy, of those that are kept), or the step of one
    """
    run, folder = Path(run), Path(folder)
    info, config = read_info(run), load_config(run / "config.toml")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder} exists already; name a folder that does not")
    chosen, step = _chosen(run, config, checkpoint)
    found = resolve(str(chosen))
    base = resolve(config.model.name)
    source = found if found.adapter is None else ModelSource(found.name, base.path, found.adapter)
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    load(source, torch.bfloat16).save_pretrained(part)
    load_tokenizer(source).save_pretrained(part)
    written = part / "README.md"
    written.write_text(card(run, info, config, step), encoding="utf-8")
    for weights in part.glob("*.safetensors"):  # which safetensors lets only their owner read
        weights.chmod(stat.S_IMODE(written.stat().st_mode))
    if folder.exists():
        folder.rmdir()
    part.replace(folder)
    return chosen


def _chosen(run: Path, config: Config, wanted: str) -> tuple[Path, int]:
    """The folder of a checkpoint, and its step."""
    updates = config.train.train_batch_size // (config.train.ppo_mini_batch_size or config.train.train_batch_size)
    kept = {number // updates: run / "checkpoints" / f"checkpoint-{number}" for number in checkpoints(run)}
    if not kept:
        raise RunError(
            f"{run} has no checkpoint yet; one is written every train.save_every={config.train.save_every} steps"
        )
    if wanted == "last":
        return kept[max(kept)], max(kept)
    if wanted == "best":
        step = best_step(read_metrics(run), kept)
        if step is None:
            raise RunError(f"no checkpoint of {run} was evaluated at its step ({_listed(kept)}); use --checkpoint last")
        return kept[step], step
    if wanted.isdigit() and int(wanted) in kept:
        return kept[int(wanted)], int(wanted)
    raise RunError(
        f"{run} has no checkpoint {wanted}; it has those of {_listed(kept)}: --checkpoint last, best or a step"
    )


def _listed(kept: dict[int, Path]) -> str:
    return f"step{'s' * (len(kept) > 1)} {', '.join(map(str, sorted(kept)))}"


def card(run: Path, info: dict[str, Any], config: Config, step: int) -> str:
    """A model card: what it was made of, and how it did."""
    train, grpo = config.train, config.grpo
    lines = read_metrics(run)
    tests = [line for line in lines if line.get("test_accuracy") is not None and line["step"] <= step]
    named = config.model.name if "/" in config.model.name and not Path(config.model.name).exists() else None
    head = ["---", "library_name: transformers", "pipeline_tag: text-generation", "tags: [code, grpo, microcoder]"]
    head += [f"base_model: {named}"] * bool(named) + ["---", "", f"# {run.name}", ""]
    adapter = f", a LoRA adapter of rank {config.model.lora_rank}, merged" if config.model.lora_rank else ""
    about = [
        f"{config.model.name} after {step} steps of reinforcement learning with MicroCoder ({grpo.preset}{adapter}).",
        "Weights in bfloat16.",
        "",
        "| | |",
        "|---|---|",
        f"| problems | {config.data.train} |",
        f"| a step | {train.train_batch_size} problems x {grpo.samples}, up to {train.max_response_tokens} tokens |",
        f"| sampling temperature | {info.get('temperature', grpo.temperature)} |",
        f"| optimizer | {train.optimizer}, learning rate {train.lr:g} |",
        f"| seed | {train.seed} |",
        f"| versions | {json.dumps(info.get('versions', {}))} |",
    ]
    trained = [line for line in lines if line["step"] == step and line.get("reward") is not None]
    about += [f"| mean reward of the last step | {line['reward']:.3f} |" for line in trained]
    if tests:
        about += ["", f"Accuracy on {tests[0]['test_problems']} test problems ({config.data.test}), mean of "]
        about[-1] += f"{tests[0]['test_tries']} tries at temperature {train.eval_temperature:g}, with 95% intervals:"
        about += ["", "| step | accuracy | from | to |", "|---|---|---|---|"]
        rows = [tests[0], *tests[-1:]] if len(tests) > 1 else tests
        for line in rows:
            low, high = (line.get(f"test_accuracy_{side}") for side in ("low", "high"))
            span = [f"{value:.1%}" if value is not None else "" for value in (low, high)]
            about.append(f"| {line['step']} | {line['test_accuracy']:.1%} | {span[0]} | {span[1]} |")
    else:
        about += ["", "The run had no evaluation."]
    return "\n".join([*head, *about]) + "\n"


# --- the Hugging Face hub


def check_name(name: str) -> None:
    """Refuse what cannot be sent to, as far as this machine knows: what is no OWNER/NAME, or no token."""
    from huggingface_hub import get_token

    if not HUB_ID.fullmatch(name) or "/" not in name:
        raise RunError(f"{name!r} is no name on the hub: OWNER/NAME, of letters, digits, '-', '_' and '.'")
    if not get_token():
        raise RunError("sending to the hub needs a token that may write: hf auth login, or HF_TOKEN")


def send(folder: str | Path, name: str) -> str:
    """Send the files of a folder as the model OWNER/NAME, and return its address. A new repository is private."""
    from huggingface_hub import HfApi

    hub = HfApi()
    try:
        address = hub.create_repo(name, private=True, exist_ok=True)
        hub.upload_folder(repo_id=name, folder_path=folder, commit_message="Trained with MicroCoder")
    except Exception as error:  # of the hub, of its library, of what is on the way; the model is not lost
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise RunError(
            f"the model is in {folder}, but could not be sent: {reason}\nOnce that is mended: hf upload {name} {folder}"
        ) from None
    return str(address)
