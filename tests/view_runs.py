"""Run directories for the tests of the dashboard, written by the writer that training uses."""

from __future__ import annotations

import json
import math

from microcoder.runs import Run, write_rollouts

CONFIG = """[model]
name = "nano"
[grpo]
preset = "microcoder"
[train]
steps = 100
"""
HOSTILE = (
    "<script>document.body.dataset.hacked = 'yes'</script><img src=x onerror=\"document.body.dataset.hacked = 'yes'\">"
    "</script></style>\u202egnp.exe\u200b\x1b[31m<!--"
)
RIGHT = "```python\ndef f(x):\n    return x + 1  # plus one\n```"
STATEMENT = "Return x plus one."


def metrics(step: int) -> dict[str, object]:
    wave = math.sin(step)
    return {
        "reward": 0.5 + 0.1 * wave,
        "accuracy": 0.4 + 0.1 * wave,
        "length_mean": 60.0 + step,
        "length_finished": 50.0 + step,
        "diversity": 0.4 - step / 1e6,
        "entropy": 0.3,
        "clip_low": 0.0,
        "clip_high": 0.01,
        "truncated_share": 0.1,
        "masked_share": 0.05,
        "repeated_share": 0.0,
        "no_signal_share": 0.25,
        "temperature": 1.0 if step < 6 else 1.2,
        "max_response_tokens": 128,
        "verdicts": {"accepted": 3, "wrong_answer": 5},
        "generation_s": 2.0,
        "judging_s": 0.5,
        "update_s": 1.0,
        "other_s": 0.1,
        "step_s": 3.6,
        "rows": 8,
        **({"test_accuracy": 0.5, "test_accuracy_low": 0.4, "test_accuracy_high": 0.6} if step % 5 == 0 else {}),
    }


def rollout(row: int, problem: str, right: bool, **fields: object) -> dict[str, object]:
    record = {
        "row": row,
        "problem": problem,
        "sample": row % 4,
        "completion": RIGHT if right else "I do not know.",
        "code": RIGHT[10:-4] if right else "",
        "verdict": "accepted" if right else "wrong_answer",
        "strategy": "equal" if right else "",
        "message": "" if right else "test 1: got 3, expected 4",
        "reward": float(right),
        "advantage": 1.0 if right else -1.0,
        "length": 10 + row,
        "truncated": False,
        "repeated": False,
        "masked": False,
    }
    return record | fields


def step_rows(step: int) -> list[dict[str, object]]:
    """p0 is solved at odd steps, p1 never, p2 always; p1's last sample is cut off and masked, p0's first is hostile."""
    rows = [rollout(n, f"p{n // 4}", right=n >= 8 or (n < 4 and step % 2 == 1 and n > 0)) for n in range(12)]
    rows[7] |= {"truncated": True, "masked": True, "length": 128, "advantage": 0.0}
    rows[0] |= {"completion": HOSTILE + "\n```python\n# " + HOSTILE + "\n```", "message": HOSTILE, "advantage": -1.7}
    return rows


def make_run(path, steps: int = 10, status: str = "finished", rollouts: bool = True):
    with Run.create(path, CONFIG, {"engine": "trl", "model": "nano", "seed": 0}) as run:
        for step in range(1, steps + 1):
            run.log(step, metrics(step))
            if rollouts:
                write_rollouts(path, step, step_rows(step), dict.fromkeys(("p0", "p1", "p2"), STATEMENT))
        run.update(status=status)
    return path


def make_bench(path, right: int = 2):
    """Two problems with four tries each, of which the first `right` tries at b0 are accepted."""
    path.mkdir(parents=True)
    score = {"robust": {"accuracy": right / 8, "low": 0.1, "high": 0.4}}
    found = {"model": "nano", "suite": "tiny", "tries": 4, "problems": 2, "scores": {"64": score}}
    (path / "scores.json").write_text(json.dumps(found))
    (path / "report.md").write_text(f"# nano on tiny\n\n| limit | % |\n| --- | ---: |\n| 64 | **25** {HOSTILE} |\n")
    names = [(problem, n) for problem in ("b0", "b1") for n in range(4)]
    verdicts = [
        {"id": f"{p}#{n}@64", "problem_id": p, "verdict": "accepted" if p == "b0" and n < right else "wrong_answer"}
        for p, n in names
    ]
    samples = [{"problem_id": p, "number": n, "text": RIGHT, "tokens": 20} for p, n in names]
    (path / "verdicts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in verdicts))
    (path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in samples))
    return path


STUDY = """# The claims

1. one
2. two

|  | claim | nano |
| --- | --- | --- |
|  | [**Masks**](#masks) |  |
| 7 | a \\<b\\> \\~ c | **supported**<br>+1 (0 to 2) |

[![a figure](figures/one.png)](figures/one.svg)
"""


def make_study(path):
    path.mkdir(parents=True, exist_ok=True)
    (path / "report.json").write_text("{}")
    (path / "report.md").write_text(STUDY)
    (path / "figures").mkdir()
    (path / "figures" / "one.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return path
