"""Send a model to the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from .names import HUB_ID
from .source import ModelError


def check(name: str) -> None:
    """Refuse what cannot be sent to, as far as this machine knows: what is no OWNER/NAME, or no token."""
    from huggingface_hub import get_token

    if not HUB_ID.fullmatch(name) or "/" not in name:
        raise ModelError(f"{name!r} is no name on the hub: OWNER/NAME, of letters, digits, '-', '_' and '.'")
    if not get_token():
        raise ModelError("sending to the hub needs a token that may write: hf auth login, or HF_TOKEN")


def send(folder: str | Path, name: str) -> str:
    """Send the files of a folder as the model OWNER/NAME, and return its address. A new repository is private."""
    from huggingface_hub import HfApi

    hub = HfApi()
    try:
        address = hub.create_repo(name, private=True, exist_ok=True)
        hub.upload_folder(repo_id=name, folder_path=folder, commit_message="Trained with MicroCoder")
    except Exception as error:  # of the hub, of its library, of what is on the way; the model is not lost
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ModelError(
            f"the model is in {folder}, but could not be sent: {reason}\nOnce that is mended: hf upload {name} {folder}"
        ) from None
    return str(address)
