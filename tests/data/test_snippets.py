"""The Python of docs/explanation/difficulty.md runs as it is written, but for its numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

(PAGE,) = (Path(__file__).parents[2] / "docs").rglob("difficulty.md")


@pytest.mark.long
def test_the_snippet_predicts_calibrates_and_selects(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    smaller = code.replace('"train", 120', '"train", 60').replace("records[:16]", "records[:8]")
    assert smaller != code
    scope: dict = {}
    exec(smaller, scope)
    records, kept = scope["records"], scope["kept"]
    assert all(0 <= record.notes["difficulty"] <= 1 and 0 <= record.notes["success"] <= 1 for record in records)
    assert 0 < len(kept) < len(records) and "over" in capsys.readouterr().out
