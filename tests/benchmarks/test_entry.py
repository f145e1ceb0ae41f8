"""benchmarks/: every subject has one entry point, and every part that it names can be called."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SUBJECTS = sorted(path.name for path in BENCHMARKS.iterdir() if any(path.glob("*.py")) and path.name != "shared")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_each_part_that_an_entry_point_names_has_a_main(subject):
    call = next(node for node in ast.walk(tree(subject, "__main__")) if isinstance(node, ast.Call))
    package, *parts = (argument.value for argument in call.args)
    assert package == f"benchmarks.{subject}"
    for part in parts or [subject]:
        assert "main" in {node.name for node in tree(subject, part).body if isinstance(node, ast.FunctionDef)}, part
        assert f"python -m benchmarks.{subject}" in ast.get_docstring(tree(subject, part)), part


def tree(subject: str, module: str) -> ast.Module:
    return ast.parse((BENCHMARKS / subject / f"{module}.py").read_text())


def test_a_subject_lists_its_parts_and_a_part_its_options():
    def said(*words):
        command = [sys.executable, "-m", "benchmarks.training", *words]
        return subprocess.run(command, cwd=BENCHMARKS.parent, capture_output=True, text=True)

    listed = said("--help")
    assert listed.returncode == 0 and "diversity    What the diversity D of a step costs" in listed.stdout
    assert said().returncode == said("nosuch").returncode == 2
    options = said("diversity", "--help")
    assert options.returncode == 0 and "benchmarks.training diversity [-h] [--json FILE]" in options.stdout
