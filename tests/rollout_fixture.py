"""One fixture of rollouts, and what `grpo` makes of it when called directly: what every engine is held against.

Directly means: a plain model, one response at a time, no padding; then the functions of `grpo`, and autograd.
"""

from __future__ import annotations

from functools import cache

import torch
from train_runs import settings

from microcoder.collect import Response
from microcoder.grpo import (
    Objective,
    group_advantages,
    overlong_penalty,
    policy_loss,
    token_logprobs,
    truncation_mask,
)
from microcoder.models import resolve
from microcoder.models.weights import load_tokenizer
from microcoder.schema import Problem, Test, Verdict
from microcoder.training.step import load_model

SAMPLES, LIMIT, REPEAT, TEMPERATURE = 4, 24, 8, 1.2
NANO = resolve("nano")
END = load_tokenizer(NANO).eos_token_id
CUT = LIMIT  # a response of this length has no end token
GROUPS = [  # the lengths and verdicts of the responses to each problem
    [(5, "accepted"), (9, "wrong_answer"), (CUT, "no_code"), (1, "no_code")],
    [(CUT, "no_code"), (CUT, "accepted"), (12, "accepted"), (7, "runtime_error")],
    [(8, "accepted"), (8, "internal_error"), (20, "wrong_answer"), (CUT, "time_limit")],
    [(6, "wrong_answer"), (10, "no_code"), (CUT, "no_code"), (3, "compile_error")],  # no signal
    [(22, "accepted"), (11, "wrong_answer"), (CUT, "no_code"), (CUT, "wrong_answer")],
    [(17, "wrong_answer"), (4, "accepted"), (CUT, "no_code"), (13, "accepted")],
]
LOOPING = (1, 0)  # the group and the sample that ends in repetition
PROBLEMS = [Problem(f"p{n}", tests=[Test("", "")]) for n in range(len(GROUPS))]


def fixture() -> list[list[Response]]:
    """Fresh responses, for the trainer writes into them; the same tokens in every call."""
    draw = torch.Generator().manual_seed(5)

    def tokens(count: int) -> list[int]:
        return torch.randint(2, 900, (count,), generator=draw).tolist()

    groups = []
    for n, group in enumerate(GROUPS):
        prompt = tokens(3 + 2 * n)
        rows = []
        for sample, (length, verdict) in enumerate(group):
            ids = tokens(length) if length == CUT else [*tokens(length - 1), END]
            if (n, sample) == LOOPING:
                ids[-REPEAT:] = ids[-2 * REPEAT : -REPEAT]
            rows.append(Response(PROBLEMS[n], prompt, sample, ids, [], length == CUT, "", Verdict(verdict)))
        groups.append(rows)
    return groups


def direct_advantages(rows, config):
    """(n,)"""
    verdicts = [row.verdict.verdict for row in rows]
    rewards = torch.tensor([float(verdict == "accepted") for verdict in verdicts])
    if config.grpo.overlong_buffer:
        rewards += overlong_penalty(torch.tensor([len(row.ids) for row in rows]), LIMIT, LIMIT // 5)
    masked = truncation_mask(
        [row.truncated for row in rows],
        verdicts,
        [(PROBLEMS.index(row.problem), row.sample) == LOOPING for row in rows],
        mask=config.grpo.mask,
        rho=config.grpo.rho,
        mask_outcome="incorrect",
        seed=config.train.seed,
        step=1,
        rows=range(len(rows)),
    )
    valid = torch.tensor([verdict != "internal_error" for verdict in verdicts])
    found = group_advantages(rewards, SAMPLES, std=config.grpo.advantage_std, valid=valid)
    return found.masked_fill(masked, 0.0)


@cache
def plain_model():
    return load_model(settings(), NANO)


def logprobs_of(model, row, temperature=TEMPERATURE):
    """(1, t) of one response, alone."""
    ids = torch.tensor([row.prompt + row.ids])
    logits = model(ids).logits[:, len(row.prompt) - 1 : -1]
    return token_logprobs(logits, ids[:, len(row.prompt) :], temperature)


@cache
def start_logprobs():
    """By response: the model as it is before the first update, which samples and, in a first step, is the reference."""
    with torch.no_grad():
        model = load_model(settings(), NANO)
        return {tuple(row.ids): logprobs_of(model, row) for group in fixture() for row in group}


def objective(config):
    grpo = config.grpo
    return Objective(grpo.eps, grpo.eps_high, grpo.dual_clip or None, grpo.kl, grpo.reduction, grpo.ratio, grpo.clip)


def direct_update(rows, advantages, weights, config, tokens, sequences):
    """(sums of what policy_loss returns, gradients) of one update over `rows`, with the policy at `weights`.

    `tokens` and `sequences` are those of the update, which may have more rows than these."""
    model = plain_model()
    model.load_state_dict(weights, strict=False)  # strict: the head is tied to the embedding and has no weights
    model.zero_grad()
    parts = []
    for row, advantage in zip(rows, advantages, strict=True):
        old = start_logprobs()[tuple(row.ids)]
        part = policy_loss(
            logprobs_of(model, row),
            old,
            advantage[None],
            torch.ones_like(old),
            objective(config),
            ref_logprobs=old if config.grpo.kl else None,
            tokens=tokens,
            sequences=sequences,
            limit=LIMIT,
        )
        part.loss.backward()
        parts.append(part)
    names = ("loss", "tokens", "clip_low", "clip_high", *(["kl"] if config.grpo.kl else []))
    sums = {name: sum(float(getattr(part, name).detach()) for part in parts) for name in names}
    return sums, {name: value.grad.clone() for name, value in model.named_parameters()}


def distance(found, expected):
    """|found - expected| / |expected|, over all tensors as one vector."""
    assert found.keys() == expected.keys()
    gap = torch.stack([(found[name] - expected[name]).norm() for name in expected]).norm()
    return float(gap / torch.stack([value.norm() for value in expected.values()]).norm())
