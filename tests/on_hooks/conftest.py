"""lm-evaluation-harness, inspect_ai, OpenEnv and SkyRL's environments with our judge: `make test-hooks`.

Where they are not installed nothing is collected.
"""

import importlib.util

import pytest

import microcoder as mc
from microcoder.files import write_problems

NEEDED = ("lm_eval", "inspect_ai", "openenv", "skyrl_gym")
collect_ignore_glob = [] if all(map(importlib.util.find_spec, NEEDED)) else ["test_*.py"]


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """The folder of someone who has made a training set of two problems."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dataset").mkdir()
    double = mc.Problem("double", statement="Double it.", tests=[mc.Test("1", "2"), mc.Test("31337", "62674")])
    one = mc.Problem("one", statement="Say one.", tests=[mc.Test("", "1")])
    write_problems("dataset/problems.parquet", [double, one])
    return tmp_path
