"""Folders that look like models, and a program in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def tensors(path: Path) -> None:
    """A safetensors file with one tensor of 2 x 3 zeros."""
    header = json.dumps({"__metadata__": {}, "x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}})
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(24))


def model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    tensors(folder / "model.safetensors")
    return folder


def adapter(folder: Path, base: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
    tensors(folder / "adapter_model.safetensors")
    return folder


def run(program: str, **environment: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)
