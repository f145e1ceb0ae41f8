"""Rules about the policy and its updates. D falls and responses grow in healthy runs too: neither alone is a fault."""

from __future__ import annotations

from statistics import median

from .history import History, mean
from .rule import rule


@rule(
    "warning",
    reason="the samples of a group have become alike, after which accuracy rises a little and then falls",
    remedy="grpo.temperature={warmer}; or grpo.temperature=auto, which raises it when D is about to settle too low",
    claim=34,
    figure=4,
)
def diversity_lost(history: History) -> str | None:
    ends = history.ends("diversity")
    return f"D fell from {ends[0]:.2f} to {ends[1]:.2f}" if ends and ends[1] < min(0.5 * ends[0], 0.2) else None


@rule(
    "warning",
    reason="the policy has become nearly certain of every token and explores no more",
    remedy="train.lr={slower}; the paper keeps it up by a higher clip and no KL term (grpo.preset=microcoder)",
    claim=33,
    figure=4,
)
def entropy_collapse(history: History) -> str | None:
    ends = history.ends("entropy")
    return f"entropy fell from {ends[0]:.3f} to {ends[1]:.3f}" if ends and ends[1] < min(0.25 * ends[0], 0.05) else None


@rule(
    "warning",
    reason="the policy is drifting towards noise: the temperature or the learning rate is too high",
    remedy="begin again, or from an earlier checkpoint, with grpo.temperature={cooler} or train.lr={slower}",
)
def entropy_explosion(history: History) -> str | None:
    ends = history.ends("entropy")
    return f"entropy rose from {ends[0]:.2f} to {ends[1]:.2f}" if ends and ends[1] > max(3 * ends[0], 1.0) else None


@rule(
    "warning",
    reason="length itself is being rewarded, or the answers have begun to repeat themselves",
    remedy="read some: microcoder rollouts RUN --truncated; then train.max_response_tokens={longer}, or "
    "grpo.overlong_buffer=auto, which takes reward from answers that nearly reach the limit",
)
def length_explosion(history: History) -> str | None:
    lengths, shares = history.last("length_mean", 12), history.last("truncated_share", 12)
    if not lengths or not shares or mean(shares[-2:]) < mean(shares[:2]) + 0.05:
        return None
    before, after = mean(lengths[:2]), mean(lengths[-2:])
    grew = f"responses grew from {before:.0f} to {after:.0f} tokens in 10 steps, and more are cut off"
    return grew if after > 1.5 * before else None


@rule(
    "error",
    reason="the update overflowed: the weights may be spoilt from here on",
    remedy="begin again, or from an earlier checkpoint, with train.lr={slower}",
)
def not_finite(history: History) -> str | None:
    names = [name for name in ("loss", "grad_norm") if history.broken(name)]
    return f"{' and '.join(names)} {'are' if names[1:] else 'is'} not a finite number" if names else None


@rule(
    "warning",
    reason="this batch pulled far harder than those before; now and then that is no harm, as gradients are clipped",
    remedy="if it happens often: train.lr={slower}",
)
def gradient_spike(history: History) -> str | None:
    norms = history.last("grad_norm", 11)
    usual = median(norms[:-1]) if norms else 0.0
    return f"the gradient's norm is {norms[-1]:.3g}, usually {usual:.3g}" if usual and norms[-1] > 10 * usual else None


@rule(
    "error",
    reason="the schedule has come to its end, or the rate was never set, so nothing is learnt any more",
    remedy="train.lr=1e-6 with train.schedule=constant",
)
def no_learning_rate(history: History) -> str | None:
    rates = history.last("learning_rate", 3)  # a warm-up begins with one 0, a decay ends with one
    return "the learning rate is 0" if rates and not any(rates) else None


@rule(
    "warning",
    reason="the policy has left the reference model far behind",
    remedy="train.lr={slower}; or, where that is wanted, no KL term: grpo.kl=0",
)
def kl_explosion(history: History) -> str | None:
    values = history.last("kl", 3)
    return f"the KL divergence is {mean(values):.2f} nats a token" if values and mean(values) > 0.5 else None


RULES = (
    diversity_lost,
    entropy_collapse,
    entropy_explosion,
    length_explosion,
    not_finite,
    gradient_spike,
    no_learning_rate,
    kl_explosion,
)
