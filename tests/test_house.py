"""Imports point downward only, and the rooms stay easy to hold in the head.

A new part of the package must be given its floor here first.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import microcoder

FLOORS = (  # a part may import the parts of the floors before its own
    {"schema"},
    {"files", "layout", "web", "stats", "prompts", "quoting"},
    {"config", "runs", "advise", "models", "starter"},
    {"judge", "grpo"},
    {"sampling"},
    {"collect"},
    {"data", "rewards"},
    {"evaluation"},
    {"training"},
    {"study", "view", "serve"},
    {"api"},
    {"cli"},
    {"__main__"},
)
FLOOR = {part: n for n, parts in enumerate(FLOORS) for part in parts}
NARROWER = {  # folder: (the only parts it may import, the only packages outside the standard library)
    "schema": (set(), set()),
    "files": ({"schema"}, {"pyarrow"}),
    "layout": (set(), set()),
    "web": (set(), set()),
    "stats": (set(), {"numpy"}),
    "judge": ({"schema", "judge"}, {"numpy", "ray"}),
    "judge.compare": ({"schema", "judge.compare", "judge.sandbox.values"}, {"numpy"}),
    "judge.sandbox": ({"judge.sandbox"}, set()),
    "grpo": ({"grpo"}, {"torch", "numpy"}),
    "config": ({"schema", "config"}, {"pydantic"}),
    "models": (
        {"schema", "models"},
        {"numpy", "torch", "transformers", "jinja2", "peft", "safetensors", "tokenizers", "huggingface_hub"},
    ),
    "starter": ({"schema", "starter"}, set()),
    "runs": ({"schema", "files", "runs"}, {"numpy", "matplotlib"}),
    "advise": ({"advise"}, set()),
    "sampling": ({"sampling"}, {"jinja2", "torch", "transformers", "triton", "deepspeed"}),
    "rewards": (
        {"schema", "files", "stats", "prompts", "config", "judge", "rewards"},
        {"verifiers", "httpx", "openenv"}  # in the modules of these names only
        | {"datasets", "lm_eval", "inspect_ai"}  # in functions of rewards.scorers only
        | {"torch", "ray", "nemo_rl", "skyrl_gym", "rllm"},  # in functions of rewards.hooks only
    ),
    "evaluation": (
        {
            "schema",
            "files",
            "layout",
            "stats",
            "prompts",
            "config",
            "models",
            "runs",
            "judge",
            "grpo",
            "sampling",
            "collect",
            "evaluation",
            "starter",
            "data.sources",
            "data.record",
            "data.endpoint",
        },
        {"numpy", "torch", "matplotlib", "huggingface_hub"},
    ),
    "study": (
        {"schema", "files", "stats", "config", "runs", "starter", "judge", "layout", "study"},
        {"numpy", "matplotlib", "PIL"},
    ),
    "view": (
        {"schema", "files", "web", "config", "runs", "advise", "view"},
        {"fastapi", "starlette", "uvicorn", "plotly", "numpy"},
    ),
    "serve": (
        {"schema", "web", "config", "judge", "serve"},
        {"fastapi", "starlette", "uvicorn", "pydantic"},
    ),
    "cli": (set(FLOOR), {"click", "rich"}),
}

MOST_MODULES = 324
MOST_LINES = 450
LONGER = {"schema": 495}  # every record of every file format stands in one place
TWINS = {  # file names that stand in two rooms, for both are the same thing in their room; cli/ has one a command
    "launch.py": {"study.launch", "training.launch"},  # starts runs
    "plan.py": {"study.plan", "training.plan"},  # what would be run
    "report.py": {"data.report", "study.report"},  # what came out, for readers
    "settings.py": {"data.settings", "training.verl.settings"},  # settings of one room
    "worker.py": {"judge.worker", "training.verl.worker"},  # what runs in each process
    "livecodebench.py": {"data.sources.livecodebench", "rewards.livecodebench"},  # its problems, and its metrics
    "icpc.py": {"data.sources.icpc", "judge.compare.icpc"},  # ICPC's problem packages, read and compared
}


def imports(path: Path, root: Path) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted name) for everything the file imports, wherever in the file it does so."""
    package = (root.name, *path.relative_to(root).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def within(name: str, folders: set[str]) -> bool:
    return any(name == folder or name.startswith(folder + ".") for folder in folders)


def faults(root: Path) -> list[str]:
    """Every import that points up or sideways, and every part that has no floor."""
    found = []
    for path in sorted(root.rglob("*.py")):
        dotted = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        part = dotted.split(".")[0]
        if path == root / "__init__.py":  # the front door only passes on what is asked for
            continue
        if part not in FLOOR:
            found.append(f"{dotted}: {part!r} has no floor in tests/test_house.py")
            continue
        rules = [rule for folder, rule in NARROWER.items() if within(dotted, {folder})]
        for line, name in imports(path, root):
            where = f"{dotted}:{line} imports {name}"
            top, _, rest = name.partition(".")
            if top == root.name:
                target = rest.split(".")[0]
                below = target == part or FLOOR.get(target, len(FLOORS)) < FLOOR[part]
                if rest != "__version__" and not (below and all(within(rest, parts) for parts, _ in rules)):
                    found.append(where)
            elif top not in sys.stdlib_module_names and not all(top in packages for _, packages in rules):
                found.append(where)
    return found


def test_imports_point_downward_only():
    assert faults(Path(microcoder.__file__).parent) == []


def untidy(root: Path) -> list[str]:
    """Every way in which the package has become hard to find one's way in."""
    found = []
    files = sorted(root.rglob("*.py"))
    if len(files) > MOST_MODULES:
        found.append(f"{len(files)} modules, more than {MOST_MODULES}: fuse those that are only opened on the way")
    classes, names = defaultdict(list), defaultdict(list)
    for path in files:
        text = path.read_text(encoding="utf-8")
        dotted = ".".join(path.relative_to(root).with_suffix("").parts)
        if (lines := len(text.splitlines())) > (most := LONGER.get(dotted, MOST_LINES)):
            found.append(f"{dotted} has {lines} lines, more than {most}")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(dotted)
        if path.name != "__init__.py" and not dotted.startswith("cli."):
            names[path.name].append(dotted)
    found += [f"class {name} is in {', '.join(where)}" for name, where in classes.items() if len(where) > 1]
    found += [
        f"{name} is the name of {', '.join(where)}"
        for name, where in names.items()
        if len(where) > 1 and set(where) != TWINS.get(name)
    ]
    return found


def test_the_rooms_are_tidy():
    assert untidy(Path(microcoder.__file__).parent) == []


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"a/one.py": "class A: ...", "b/two.py": "class B: ..."}, None),
        ({"a/one.py": "class A: ...", "b/two.py": "class A: ..."}, "class A is in a.one, b.two"),
        ({"a/one.py": "", "b/one.py": ""}, "one.py is the name of a.one, b.one"),
        ({"cli/one.py": "", "b/one.py": ""}, None),
        ({"training/plan.py": "", "study/plan.py": ""}, None),
        ({"a/plan.py": "", "study/plan.py": ""}, "plan.py is the name of a.plan, study.plan"),
        ({"a/one.py": "\n" * (MOST_LINES + 1)}, f"a.one has {MOST_LINES + 1} lines, more than {MOST_LINES}"),
        (
            {f"a/m{n}.py": "" for n in range(MOST_MODULES + 1)},
            f"{MOST_MODULES + 1} modules, more than {MOST_MODULES}: fuse those that are only opened on the way",
        ),
    ],
)
def test_the_rule_of_the_rooms_tells_good_from_bad(tmp_path, files, fault):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert untidy(tmp_path) == ([fault] if fault else [])


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("schema.py", "import json", None),
        ("schema.py", "import numpy", "schema:1 imports numpy"),
        ("config.py", "from .schema import Problem", None),
        ("config.py", "from . import judge", "config:1 imports house.judge"),
        ("config.py", "from . import runs", "config:1 imports house.runs"),
        ("judge/pool.py", "from ..schema import Problem\nimport numpy as np\nfrom .compare import tokens", None),
        ("judge/pool.py", "def f():\n    from ..config import load", "judge.pool:2 imports house.config.load"),
        ("judge/pool.py", "import house.grpo.loss", "judge.pool:1 imports house.grpo.loss"),
        ("judge/pool.py", "import click", "judge.pool:1 imports click"),
        ("judge/sandbox/__init__.py", "from . import box\nfrom .box import Box", None),
        ("judge/sandbox/box.py", "from .. import compare", "judge.sandbox.box:1 imports house.judge.compare"),
        ("judge/sandbox/box.py", "import numpy", "judge.sandbox.box:1 imports numpy"),
        ("cli/judge.py", "from .. import __version__\nfrom ..judge import Judge\nfrom . import Refused", None),
        ("training/trl.py", "from .. import Judge", "training.trl:1 imports house.Judge"),
        ("attic.py", "", "attic: 'attic' has no floor in tests/test_house.py"),
    ],
)
def test_the_rule_itself_tells_good_from_bad(tmp_path, file, text, fault):
    path = tmp_path / "house" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert faults(tmp_path / "house") == ([fault] if fault else [])
