"""The policy loss and its gradient."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microcoder.grpo import Objective, policy_loss

steady = settings(deadline=None, max_examples=50)
REDUCTIONS = ("token_mean", "sequence_mean", "dr_grpo")
LIMIT = 10
KINDS = [{}, {"dual_clip": 1.5}, {"ratio": "sequence"}, {"clip": "cispo"}, {"clip": "divergence"}]


def f64(values):
    return torch.tensor(values, dtype=torch.float64)


def loss_of(ratios, advantages, mask=None, totals=None, **settings):
    """Loss of a batch given by its ratios: the old log-probabilities are 0, so the ratio is exp(logprobs)."""
    lp = f64(ratios).log().requires_grad_()
    mask = torch.ones_like(lp) if mask is None else torch.tensor(mask)
    totals = totals or {"tokens": int(mask.sum()), "sequences": len(lp), "limit": LIMIT}
    out = policy_loss(lp, torch.zeros_like(lp), f64(advantages), mask, Objective(**settings), **totals)
    out.loss.backward()
    return out, lp.grad


# Two rollouts of two tokens, worked by hand with eps 0.2 and eps_high 0.28:
#   A = +1, ratios 1.5 and 1.1: min(1.5, 1.28) = 1.28 and min(1.1, 1.1) = 1.1
#   A = -2, ratios 0.5 and 4.0: min(-1.0, 0.8 * -2) = -1.6 and min(-8, 1.28 * -2) = -8
RATIOS, ADVANTAGES = [[1.5, 1.1], [0.5, 4.0]], [1.0, -2.0]


def test_two_rollouts_worked_by_hand():
    out, grad = loss_of(RATIOS, ADVANTAGES)
    assert out.loss.item() == pytest.approx((-1.28 - 1.1 + 1.6 + 8) / 4)
    # d(-r A)/d logp = -r A where the ratio itself was the smaller one, and 0 where the clip was
    assert grad.flatten().tolist() == pytest.approx([0, -1.1 / 4, 0, 8 / 4])
    assert (out.tokens.item(), out.clip_low.item(), out.clip_high.item(), out.clip_dual.item()) == (4, 1, 1, 0)
    assert out.ratio.item() == pytest.approx(1.5 + 1.1 + 0.5 + 4.0)
    assert out.kl is None


def test_a_clip_is_counted_only_where_it_takes_effect():
    ratios = [0.5, 0.9, 1.0, 1.2, 1.5, 3.5]
    out, grad = loss_of([ratios, ratios, ratios], [1.0, -1.0, 0.0], dual_clip=3.0)
    assert (out.clip_low.item(), out.clip_high.item(), out.clip_dual.item()) == (1, 2, 1)
    assert grad[:2].eq(0).sum() == 1 + 2 + 1


def test_the_dual_clip_bounds_the_loss_of_a_bad_response():
    out, grad = loss_of(RATIOS, ADVANTAGES, dual_clip=3.0)  # the last token: 3 * 2 = 6 instead of 8
    assert out.loss.item() == pytest.approx((-1.28 - 1.1 + 1.6 + 6) / 4)
    assert grad.flatten().tolist() == pytest.approx([0, -1.1 / 4, 0, 0])
    assert out.clip_dual.item() == 1


def test_the_dual_clip_leaves_good_responses_alone():
    plain, grad = loss_of([[0.5, 1.1, 9.0]], [1.0])
    dual, dual_grad = loss_of([[0.5, 1.1, 9.0]], [1.0], dual_clip=1.5)
    assert plain.loss == dual.loss and torch.equal(grad, dual_grad) and dual.clip_dual.item() == 0


def test_one_ratio_for_a_response_worked_by_hand():
    # ratios 4 and 1: sqrt(4 * 1) = 2 for both tokens, beyond 1.28 where A > 0; with A = -1 it counts in full, and
    # d(2)/d logp = 2 / 2 tokens
    out, grad = loss_of([[4.0, 1.0], [4.0, 1.0]], [1.0, -1.0], ratio="sequence", reduction="sequence_mean")
    assert out.loss.item() == pytest.approx((-1.28 + 2) / 2)
    assert grad.flatten().tolist() == pytest.approx([0, 0, 1 / 2, 1 / 2])
    assert (out.clip_low.item(), out.clip_high.item(), out.ratio.item()) == (0, 2, pytest.approx(8))


def test_one_ratio_for_a_response_does_not_see_what_is_no_token_of_it():
    padded, grad = loss_of([[4.0, 1.0, 9.0]], [-1.0], [[1, 1, 0]], ratio="sequence")
    assert padded.loss.item() == pytest.approx(2)
    assert grad.flatten().tolist() == pytest.approx([1, 1, 0])
    assert loss_of([[4.0, 1.0]], [-1.0], [[0, 0]], ratio="sequence")[0].loss.item() == 0


def test_cispo_worked_by_hand():
    # the gradient of log p, whose weight is the ratio, from 0.8 to 1.28, times the advantage
    out, grad = loss_of(RATIOS, ADVANTAGES, clip="cispo")
    assert grad.flatten().tolist() == pytest.approx([-1.28 / 4, -1.1 / 4, 0.8 * 2 / 4, 1.28 * 2 / 4])
    weighed = [1.28 * math.log(1.5), 1.1 * math.log(1.1), -2 * 0.8 * math.log(0.5), -2 * 1.28 * math.log(4)]
    assert out.loss.item() == pytest.approx(-sum(weighed) / 4)
    assert (out.clip_low.item(), out.clip_high.item()) == (1, 2)


def test_a_divergence_is_bounded_where_a_token_went_far_in_the_direction_of_its_advantage():
    # p_old -> p: 0.01 -> 0.03 is three times as likely and hardly moved; 0.5 -> 0.8 moved by 0.3
    old, new = f64([[0.01, 0.5, 0.8]] * 2).log(), f64([[0.03, 0.8, 0.5]] * 2).log().requires_grad_()
    totals = {"tokens": 6, "sequences": 2, "limit": LIMIT}
    objective = Objective(0.2, 0.25, clip="divergence")
    out = policy_loss(new, old, f64([1.0, -1.0]), torch.ones(2, 3), objective, **totals)
    out.loss.backward()
    assert (out.clip_high.item(), out.clip_low.item()) == (1, 1)
    good, bad = [-3 / 6, 0, -0.625 / 6], [3 / 6, 1.6 / 6, 0]
    assert new.grad.flatten().tolist() == pytest.approx(good + bad)


def test_the_three_reductions_on_unequal_lengths():
    # ratio 1, A = 1 over 3 tokens and A = -1 over 1: token losses -1 -1 -1 and +1
    ratios, advantages, mask = [[1.0, 1, 1], [1, 1, 1]], [1.0, -1.0], [[1, 1, 1], [1, 0, 0]]
    losses = {r: loss_of(ratios, advantages, mask, reduction=r) for r in REDUCTIONS}
    assert losses["token_mean"][0].loss.item() == pytest.approx(-2 / 4)
    assert losses["sequence_mean"][0].loss.item() == pytest.approx((-3 / 3 + 1) / 2)
    assert losses["dr_grpo"][0].loss.item() == pytest.approx(-2 / (2 * LIMIT))
    # how much a token of the long response moves the policy beside the token of the short one
    weights = {r: (grad[0, 0] / -grad[1, 0]).item() for r, (_, grad) in losses.items()}
    assert weights == pytest.approx({"token_mean": 1, "sequence_mean": 1 / 3, "dr_grpo": 1})


def test_the_kl_term_worked_by_hand():
    # policy 1/2, reference 1/4: gap = log(1/2), k3 = 1/2 - log(1/2) - 1 = log 2 - 1/2; dk3/dlogp = 1 - exp(gap) = 1/2
    lp = f64([[0.5]]).log().requires_grad_()
    ref = f64([[0.25]]).log()
    totals = {"tokens": 1, "sequences": 1, "limit": LIMIT}
    objective = Objective(kl=0.1)
    out = policy_loss(lp, lp.detach(), f64([0.0]), torch.ones(1, 1), objective, ref_logprobs=ref, **totals)
    out.loss.backward()
    assert out.loss.item() == pytest.approx(0.1 * (math.log(2) - 0.5))
    assert out.kl.item() == pytest.approx(math.log(2) - 0.5)
    assert lp.grad.item() == pytest.approx(0.1 * 0.5)


def test_without_a_kl_weight_a_reference_is_only_measured():
    lp, ref = f64([[-1.0]]).requires_grad_(), f64([[-2.0]])
    totals = {"tokens": 1, "sequences": 1, "limit": LIMIT}
    with_ref = policy_loss(lp, lp.detach(), f64([1.0]), torch.ones(1, 1), Objective(), ref_logprobs=ref, **totals)
    without = policy_loss(lp, lp.detach(), f64([1.0]), torch.ones(1, 1), Objective(), **totals)
    assert with_ref.loss == without.loss
    assert with_ref.kl.item() == pytest.approx(math.exp(-1)) and not with_ref.kl.requires_grad


@st.composite
def batches(draw):
    """Everything policy_loss takes: some rows empty, some advantages 0, ratios on both sides of every clip."""
    n, t = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    lengths = torch.tensor(draw(st.lists(st.integers(0, t), min_size=n, max_size=n)))
    mask = torch.arange(t) < lengths[:, None]
    old = -normal(n, t).abs()
    advantages = normal(n) * torch.tensor(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    return {
        "logprobs": old + 0.7 * normal(n, t),
        "old_logprobs": old,
        "advantages": advantages,
        "mask": mask,
        "objective": Objective(
            kl=draw(st.sampled_from([0.0, 0.5])),
            reduction=draw(st.sampled_from(REDUCTIONS)),
            **draw(st.sampled_from(KINDS)),
        ),
        "ref_logprobs": old + 0.5 * normal(n, t),
        "tokens": int(mask.sum()),
        "sequences": n,
        "limit": LIMIT,
    }


def with_gradient(batch):
    lp = batch["logprobs"].clone().requires_grad_()
    out = policy_loss(**batch | {"logprobs": lp})
    out.loss.backward()
    return out, lp.grad


@steady
@given(batches(), st.data())
def test_micro_batches_add_up_however_the_batch_is_split(batch, data):
    whole, grad = with_gradient(batch)
    n = batch["sequences"]
    part_of = torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    total, sums = torch.zeros_like(whole.loss), torch.zeros(6, dtype=torch.float64)
    pieces = torch.zeros_like(grad)
    for part in part_of.unique():
        rows = (part_of == part).nonzero().flatten()
        names = ("logprobs", "old_logprobs", "advantages", "mask", "ref_logprobs")
        out, pieces[rows] = with_gradient(batch | {name: batch[name][rows] for name in names})
        total += out.loss.detach()
        sums += torch.stack([s.double() for s in out[1:]])
    assert torch.allclose(total, whole.loss, rtol=1e-12, atol=1e-14)
    assert torch.allclose(pieces, grad, rtol=1e-12, atol=1e-14)
    assert torch.allclose(sums, torch.stack([s.double() for s in whole[1:]]), rtol=1e-12, atol=1e-14)


@settings(steady, max_examples=30)
@given(batches())
def test_the_gradient_is_that_of_finite_differences(batch):
    assume(batch["objective"].clip != "cispo")  # whose weights have no gradient
    log_ratio = batch["logprobs"] - batch["old_logprobs"]
    for kink in (math.log(0.8), math.log(1.28), math.log(1.5)):  # where a clip begins there is no derivative
        near = (log_ratio - kink).abs() < 1e-3
        batch["logprobs"] = batch["logprobs"] + near * 0.01
        log_ratio = batch["logprobs"] - batch["old_logprobs"]
    lp = batch["logprobs"].requires_grad_()
    assert torch.autograd.gradcheck(lambda x: policy_loss(**batch | {"logprobs": x}).loss, lp)


@steady
@given(batches())
def test_at_ratio_one_the_gradient_is_minus_the_advantage(batch):
    # d(-r A)/d logp = -A r = -A: the plain policy gradient
    batch |= {"logprobs": batch["old_logprobs"], "objective": Objective(), "ref_logprobs": None}
    _, grad = with_gradient(batch)
    expected = -batch["advantages"][:, None] * batch["mask"] / max(batch["tokens"], 1)
    assert torch.allclose(grad, expected, rtol=1e-14, atol=0)


@steady
@given(batches())
def test_kl_is_never_negative_and_zero_at_the_reference(batch):
    assert with_gradient(batch)[0].kl >= 0
    assert with_gradient(batch | {"ref_logprobs": batch["logprobs"]})[0].kl == 0


@steady
@given(batches(), st.sampled_from([math.nan, math.inf, -math.inf, 1e30]))
def test_padding_may_hold_anything(batch, rubbish):
    clean, grad = with_gradient(batch)
    for name in ("logprobs", "old_logprobs", "ref_logprobs"):
        batch[name] = torch.where(batch["mask"], batch[name], torch.tensor(rubbish, dtype=torch.float64))
    soiled, soiled_grad = with_gradient(batch)
    assert torch.equal(torch.stack([f.double() for f in clean]), torch.stack([f.double() for f in soiled]))
    assert torch.equal(grad, soiled_grad)
    assert grad.isfinite().all() and grad[~batch["mask"]].eq(0).all()


@steady
@given(batches())
def test_a_masked_response_still_counts_in_the_denominator(batch):
    # zeroing the last row's advantage removes its term and leaves the weight of the others as it was
    batch |= {"objective": Objective(reduction=batch["objective"].reduction), "ref_logprobs": None}
    _, grad = with_gradient(batch)
    zeroed = batch["advantages"].clone()
    zeroed[-1] = 0
    out, masked_grad = with_gradient(batch | {"advantages": zeroed})
    assert torch.equal(masked_grad[:-1], grad[:-1]) and masked_grad[-1].eq(0).all()
    assert out.tokens == batch["tokens"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_an_update_without_tokens_has_loss_zero(reduction):
    totals = {"tokens": 0, "sequences": 2, "limit": LIMIT}
    out, grad = loss_of(RATIOS, ADVANTAGES, [[0, 0], [0, 0]], totals, reduction=reduction)
    assert out.loss.item() == 0 and grad.eq(0).all()


def test_a_ratio_beyond_all_bounds_gives_a_finite_loss_and_gradient():
    lp = torch.tensor([[0.0, 0.0], [0.0, -200.0]], requires_grad=True)  # float32: e^200 is infinite
    old = torch.tensor([[-200.0, 0.0], [-200.0, 0.0]])
    totals = {"tokens": 4, "sequences": 2, "limit": LIMIT}
    advantages, objective = torch.tensor([1.0, -1.0]), Objective(kl=0.1)
    out = policy_loss(lp, old, advantages, torch.ones(2, 2), objective, ref_logprobs=old, **totals)
    out.loss.backward()
    assert out.loss.isfinite() and lp.grad.isfinite().all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"eps": 0}, "eps is 0.*try 0.2"),
        ({"eps": 1.1}, "eps is 1.1"),
        ({"eps_high": 0.0}, "eps_high is 0.0.*try 0.28"),
        ({"dual_clip": 1.0}, "dual_clip is 1.0.*such as 3.0"),
        ({"kl": -0.1}, "kl is -0.1.*use 0"),
        ({"kl": math.nan}, "kl is nan"),
        ({"reduction": "mean"}, "'mean'; it must be one of token_mean, sequence_mean, dr_grpo"),
        ({"ratio": "word"}, "'word'; it must be one of token, sequence"),
        ({"clip": "hard"}, "'hard'; it must be one of ppo, cispo, divergence"),
        ({"clip": "cispo", "dual_clip": 3.0}, "dual_clip belongs to clip ppo"),
        ({"clip": "divergence", "ratio": "sequence"}, "set ratio to token"),
    ],
)
def test_an_objective_that_cannot_be_is_refused_with_directions(settings, words):
    with pytest.raises(ValueError, match=words):
        Objective(**settings)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"objective": Objective(kl=0.1)}, "no ref_logprobs.*set kl to 0"),
        ({"old_logprobs": torch.zeros(2, 2)}, r"\(2, 3\) and old_logprobs of shape \(2, 2\)"),
        ({"mask": torch.zeros(2)}, r"mask of shape \(2,\)"),
        ({"ref_logprobs": torch.zeros(3)}, r"ref_logprobs of shape \(3,\)"),
        ({"advantages": torch.zeros(2, 3)}, r"\(2, 3\); pass one for each of the 2 rows"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_with_directions(change, words):
    batch = {name: torch.zeros(2, 3) for name in ("logprobs", "old_logprobs", "mask")}
    batch |= {"advantages": torch.zeros(2), "objective": Objective()}
    with pytest.raises(ValueError, match=words):
        policy_loss(**batch | change, tokens=6, sequences=2, limit=3)
