"""`microcoder doctor`: this machine, installed extras, layers of the sandbox, and how to get what is missing."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from .shown import echo

PACKAGES = ("numpy", "torch", "trl", "transformers", "verl", "ray", "vllm")
EXTRAS = {"train": "trl", "data": "selectolax", "view": "plotly", "serve": "uvicorn", "ray": "ray"}  # extra: its mark
CONCLUSIONS = {
    "full": "The judge will use the full sandbox here: namespaces, seccomp, Landlock and limits.",
    "landlock": "The judge will use the landlock sandbox here: seccomp, Landlock and limits, without namespaces.",
    "rlimits": "The judge will not start here unless asked with judge.sandbox=rlimits, which limits resources only: "
    "do not run programs with it that you do not trust.",
}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(as_json: bool) -> int:
    """Say what works on this machine: versions, cores, GPU, the languages of programs, and each layer of the sandbox.

    The exit status is 1 if programs cannot be judged safely here.
    """
    from ..judge.sandbox import probes

    findings: dict[str, Any] = {
        **machine(),
        "versions": versions(),
        "extras": {extra: importlib.util.find_spec(name) is not None for extra, name in EXTRAS.items()},
        "verl": verl(),
        "languages": languages(),
        "sandbox": [dataclasses.asdict(layer) for layer in probes.probe()],
        "best": probes.best(),
    }
    findings["conclusion"] = CONCLUSIONS[findings["best"]]
    if as_json:
        echo(json.dumps(findings, indent=2))
    else:
        _show(findings)
    return 0 if findings["best"] in ("full", "landlock") else 1


def versions() -> dict[str, str]:
    """Read versions from the installed metadata, since importing torch takes seconds."""
    from .. import __version__

    found = {"python": platform.python_version(), "microcoder": __version__}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def verl() -> str:
    """Say whether run.engine=verl can train from here. Ask another process, since verl prints while it is imported."""
    if importlib.util.find_spec("verl") is None:
        return "not installed here; it has an environment of its own: make verl"
    look = "from microcoder.training.verl.session import check; print(check(), end='')"
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", look],
        capture_output=True,
        text=True,
        env={**os.environ, "VERL_PLATFORM": "cpu", "VERL_LOGGING_LEVEL": "ERROR"},
    )
    fault = answer.stdout.strip() or (answer.stderr.strip().splitlines() or ["it ended without a message"])[-1]
    if answer.returncode or answer.stdout.strip():
        return f"cannot be used: {fault}"
    return "our plugin is registered; tested on CPUs, never yet with vLLM on GPUs"


def languages() -> dict[str, str]:
    """Say of each language besides Python whether it can be judged: compile and run a program in the sandbox."""
    from ..judge import Judge, JudgeError
    from ..judge.languages import LANGUAGES

    try:
        with Judge(workers=1) as judge:
            ran = {name: judge.run(known.trial, name).result() for name, known in LANGUAGES.items()}
    except JudgeError:
        return dict.fromkeys(LANGUAGES, "not without a sandbox")
    works = "works: a program was compiled and run in the sandbox"
    return {name: works if found.status == "ok" else found.message for name, found in ran.items()}


def machine() -> dict[str, Any]:
    from ..config import usable_cores

    return {
        "platform": platform.platform(),
        "cores": usable_cores(),
        "cores_of_machine": os.cpu_count() or 1,
        "memory_mb": _memory_mb(),
        "gpus": _gpus(),
    }


def _memory_mb() -> int:
    """Read how much memory this process may use: the machine's, or the container's limit where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        share = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        share = "max"
    return min(total, int(share)) // (1 << 20) if share.isdigit() else total // (1 << 20)


def _gpus() -> list[str]:
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()] if answer.returncode == 0 else []


def _show(findings: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from ..judge.languages import NAMES
    from .terminal import Terminal

    about = Table(box=None, show_header=False, padding=(0, 2))
    about.add_column(style="dim", no_wrap=True)
    about.add_column(overflow="fold")
    about.add_row("platform", findings["platform"])
    about.add_row("cores", f"{findings['cores']} usable of {findings['cores_of_machine']}")
    about.add_row("memory", f"{findings['memory_mb'] / 1024:.1f} GiB")
    about.add_row("GPU", Text("\n".join(findings["gpus"]) or "none found"))
    missing = [extra for extra, there in findings["extras"].items() if not there]
    about.add_row("extras", ", ".join(extra for extra, there in findings["extras"].items() if there) or "none")
    if missing:
        about.add_row("", f"not installed: {', '.join(missing)}; to add one: pip install 'microcoder[{missing[0]}]'")
    about.add_row("verl", findings["verl"])
    for name, finding in findings["languages"].items():
        about.add_row(NAMES[name], finding)
    about.add_row("versions", ", ".join(f"{name} {version}" for name, version in findings["versions"].items()))

    layers = Table("sandbox layer", "", "", box=box.SIMPLE_HEAD)
    for layer in findings["sandbox"]:
        words = [layer["detail"]] if layer["ok"] else [layer["detail"], layer["remedy"]]
        mark = Text("works", "green") if layer["ok"] else Text("missing", "red")
        layers.add_row(layer["name"], mark, Text("\n".join(w for w in words if w)))

    console = Terminal()
    console.print(about, layers)
    console.print(Text(findings["conclusion"]))
