"""The named algorithms, as values of `[grpo]`. All set the same keys, so that changing the name changes them all.

Differences are only the ones a name stands for: token-mean for all but `dr_grpo` and `gspo`. No preset sets samples,
temperature, or what a mask does (rho, mask_outcome, masked_in_group, repeat, repeat_tokens).

1. `grpo` keeps the reference model and the symmetric clip of GRPO, but not its mean over each response.
2. `grpo_plus` is the paper's baseline: GRPO without KL and with DAPO's wider upper clip.
3. `dapo` adds dynamic sampling and the soft punishment of overlong responses.
4. `dr_grpo` divides by neither the group's standard deviation nor the response's length.
5. `gspo` has one ratio for a response, hence bounds a thousandth as wide, and averages over responses.
6. `cispo` bounds the weight of a token instead of dropping it: below not at all, above at 5.
7. `dppo` drops tokens by how far their probability went, not by its ratio.
8. `microcoder` is the paper's algorithm; `temperature = "auto"` lets T(D) choose (`microcoder calibrate`).
"""

from __future__ import annotations

from typing import Any

_PLAIN: dict[str, Any] = {
    "eps": 0.2,
    "eps_high": 0.28,
    "dual_clip": 0.0,
    "kl": 0.0,
    "advantage_std": True,
    "reduction": "token_mean",
    "ratio": "token",
    "clip": "ppo",
    "mask": "none",
    "dynamic_sampling": 0,
    "overlong_buffer": 0,
}

PRESETS: dict[str, dict[str, Any]] = {
    "grpo": {**_PLAIN, "eps_high": 0.2, "kl": 0.001},
    "grpo_plus": _PLAIN,
    "dapo": {**_PLAIN, "dynamic_sampling": 3, "overlong_buffer": "auto"},
    "dr_grpo": {**_PLAIN, "eps_high": 0.2, "advantage_std": False, "reduction": "dr_grpo"},
    "gspo": {**_PLAIN, "eps": 3e-4, "eps_high": 4e-4, "reduction": "sequence_mean", "ratio": "sequence"},
    "cispo": {**_PLAIN, "eps": 1.0, "eps_high": 4.0, "clip": "cispo"},
    "dppo": {**_PLAIN, "eps": 0.2, "eps_high": 0.2, "clip": "divergence"},
    "microcoder": {**_PLAIN, "mask": "conditional"},
}

ABOUT = {
    "grpo": "GRPO: KL 0.001 to the start, symmetric clip 0.2",
    "grpo_plus": "the paper's GRPO+: no KL, clip 0.2 / 0.28",
    "dapo": "GRPO+ with dynamic sampling and overlong shaping",
    "dr_grpo": "no division by the group's deviation or the response's length",
    "gspo": "one ratio for a whole response, and narrow bounds",
    "cispo": "every token keeps a gradient, of bounded weight",
    "dppo": "tokens are dropped by how far their probability went, not by its ratio",
    "microcoder": "the paper's: GRPO+ with the conditional truncation mask (and T(D) where temperature is auto)",
}
