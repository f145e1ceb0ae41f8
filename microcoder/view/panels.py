"""Which charts a run has: what the pages draw, in their order, and the words beside it.

Where several runs are laid over each other, a panel shows the first of its metrics, or `overlay`; one that is `alone`
is not shown then.
"""

from __future__ import annotations

from typing import Any

PARTS = ["generation_s", "judging_s", "update_s", "checkpoint_s", "other_s"]
VERDICTS = [
    "accepted", "wrong_answer", "runtime_error", "compile_error", "no_code",
    "time_limit", "memory_limit", "output_limit", "internal_error",
]  # fmt: skip
BAND = ["test_accuracy_low", "test_accuracy_high"]


def _panel(title: str, about: str, metrics: list[str], **more: Any) -> dict[str, Any]:
    return {"id": title.lower().replace(" ", "-"), "title": title, "about": about, "metrics": metrics, **more}


PANELS = [
    _panel("Reward", "mean over the responses of a step", ["reward"]),
    _panel(
        "Accuracy",
        "share of accepted programs: of the training step, and of held-out problems with their 95% interval",
        ["accuracy", "test_accuracy"],
        band=BAND,
        share=True,
    ),
    _panel(
        "Response length",
        "tokens: mean of all responses, mean of those that ended, and the limit",
        ["length_mean", "length_finished", "max_response_tokens"],
    ),
    _panel("Diversity D", "0: a group's samples are all alike; 1: they share nothing", ["diversity", "test_diversity"]),
    _panel("Entropy", "nats a token, of what was sampled", ["entropy"]),
    _panel("Clip fractions", "share of tokens whose ratio was clipped, below and above", ["clip_low", "clip_high"]),
    _panel(
        "Truncated and masked",
        "share of responses cut off at the limit, masked by the truncation mask, ending in repetition",
        ["masked_share", "truncated_share", "repeated_share"],
        share=True,
    ),
    _panel("Groups without signal", "share of groups whose rewards are all equal", ["no_signal_share"], share=True),
    _panel("Time per step", "seconds, split into parts", PARTS, stacked=True, overlay="step_s"),
    _panel(
        "Verdicts",
        "what the judge said of a step's responses",
        [f"verdicts.{verdict}" for verdict in VERDICTS],
        stacked=True,
        alone=True,
    ),
    _panel("Temperature", "of sampling; it changes at the stages only", ["temperature"]),
    _panel("Loss", "mean of the step's updates", ["loss"]),
    _panel("Gradient norm", "before it is clipped", ["grad_norm"]),
    _panel("KL", "to the starting model, nats a token", ["kl"]),
    _panel("Learning rate", "of the step's last update", ["learning_rate"]),
    _panel("Generation speed", "tokens a second", ["tokens_per_s"]),
]
METRICS = list(dict.fromkeys(name for panel in PANELS for name in (*panel["metrics"], *panel.get("band", []))))
METRICS += ["step_s"]
