"""MicroCoder-GRPO as plain functions: values in, values out. Every engine calls these for advantages and loss.

| the paper says                                       | here            |
|------------------------------------------------------|-----------------|
| A, the advantage within a group                      | `advantages.py` |
| DAPO's overlong shaping (a baseline)                 | `advantages.py` |
| conditional truncation mask, rho, U(0, 1)            | `truncation.py` |
| repeat(o, m)                                         | `truncation.py` |
| the ratio's probabilities, at temperature T(D)       | `loss.py`       |
| the clipped objective, eps, eps_high, beta_0 (KL)    | `loss.py`       |
| output diversity D                                   | `diversity.py`  |
| T(D), the temperature to train with                  | `temperature.py`|
| staged temperature, context extension                | `stages.py`     |

Where we differ from the paper; each file says more:

1. 1e-6 is added to the deviation of the rewards; equal rewards give exactly 0; a response without a reward leaves its
   group (`advantages.py`).
2. The paper states the mask's outcome in three ways; `mask_outcome` selects one, equation 2's by default. A mask drops
   the advantage only: the tokens stay in the denominator (`truncation.py`).
3. Draws are hashes of (seed, step, row), so that resume is exact (`truncation.py`, `mixing.py`).
4. A repetition may have any period up to m, if asked for, and m shrinks with limits below 4K (`truncation.py`).
5. Ratio and clip are per token, and the tokens of an update are averaged, as in DAPO; the mean of sequence means and
   Dr.GRPO's constant divisor can be chosen (`loss.py`).
6. D and T(D) are our definitions, since the paper gives none (`diversity.py`, `temperature.py`).
"""

from .advantages import group_advantages, has_signal, overlong_penalty
from .diversity import diversity, group_diversity
from .loss import Loss, Objective, effective_share, mismatch, policy_loss, token_entropy, token_logprobs
from .stages import Stage, plan, segments, stage_at
from .temperature import Choice, TemperatureProbe, choose_temperature
from .truncation import draws, ends_in_repetition, repeat_tokens, truncation_mask

__all__ = [
    "Choice",
    "Loss",
    "Objective",
    "Stage",
    "TemperatureProbe",
    "choose_temperature",
    "diversity",
    "draws",
    "effective_share",
    "ends_in_repetition",
    "group_advantages",
    "group_diversity",
    "has_signal",
    "mismatch",
    "overlong_penalty",
    "plan",
    "policy_loss",
    "repeat_tokens",
    "segments",
    "stage_at",
    "token_entropy",
    "token_logprobs",
    "truncation_mask",
]
