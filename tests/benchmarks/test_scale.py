"""What a cluster should take, on paper: the arithmetic against what one GPU was measured to take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.training.scale import GPUS, PROMPT, SHAPES, UPDATED, estimate, generation, shares
from microcoder.config import find, load

ROOT = Path(__file__).parents[2]
FOUR = SHAPES["Qwen/Qwen3-4B-Instruct-2507"]


def test_the_operations_of_an_update_are_those_that_were_measured():
    """512 responses of 7,956 tokens in 342 s at 375 TFLOP/s, nothing recomputed: docs/results.md."""
    tokens, length = 512 * 7956, 7956 + 200
    work = 3 * FOUR.forward(tokens, tokens * length)
    assert work / 342 == pytest.approx(UPDATED, rel=0.02)
    assert "342 s, 375 TFLOP/s" in (ROOT / "docs/results.md").read_text()


def test_the_shares_of_the_memorys_rate_follow_from_the_tokens_that_vllm_was_measured_to_give():
    by_hand = 4_810 / 64 * (2 * 4.02e9 + 64 * (200 + 4096) * 147_456) / 4.24e12
    assert shares()[-1] == pytest.approx(by_hand, rel=0.01)
    assert "| Qwen3-4B | 64 x 8,192 | 4,790 | | 4,810 |" in (ROOT / "docs/results.md").read_text()


def test_a_cluster_of_twice_the_gpus_takes_half_the_time_to_update():
    one, two = (load(find("cluster-4b"), [f"cluster.nodes={n}", "cluster.address=auto"]) for n in (1, 2))
    found = [estimate(config, "h200", 0.5, 0.4, 3.0) for config in (one, two)]
    assert found[0]["update_s"] == pytest.approx(2 * found[1]["update_s"])
    by_hand = 5 * (2 * 4.02e9 + 4 * 36 * 4096 * (PROMPT + 8192) / 3) * 512 * (PROMPT + 4096) / (8 * 989e12 * 0.4)
    assert found[0]["update_s"] == pytest.approx(by_hand, rel=0.03)


def test_the_page_has_what_the_command_prints():
    page = (ROOT / "docs/explanation/scale.md").read_text()
    for name in ("cluster-4b", "cluster-32b"):
        config = load(find(name))
        seconds = sorted(generation(config, GPUS["h200"][1], share) for share in (shares()[0], shares()[-1]))
        assert re.search(rf"generation of a step .*\b{seconds[0]:.0f} to {seconds[1]:.0f} s", page)
