"""Log-probabilities and entropy of tokens, and their gradients."""

from __future__ import annotations

import math

import pytest
import torch

from microcoder.grpo import loss, token_entropy, token_logprobs


def f64(values):
    return torch.tensor(values, dtype=torch.float64)


def test_logprobs_of_two_words_worked_by_hand():
    # logits 2 and 0 at temperature 2 are 1 and 0: p = e / (e + 1), and d log p / d logits = (1 - p, -(1 - p)) / 2
    logits = f64([[[2.0, 0.0]]]).requires_grad_()
    lp = token_logprobs(logits, torch.tensor([[0]]), 2.0)
    lp.sum().backward()
    p = math.e / (math.e + 1)
    assert lp.item() == pytest.approx(math.log(p))
    assert logits.grad.flatten().tolist() == pytest.approx([(1 - p) / 2, -(1 - p) / 2])
    assert token_entropy(logits, 2.0).item() == pytest.approx(-p * math.log(p) - (1 - p) * math.log(1 - p))


def random_logits(dtype=torch.float64, shape=(2, 7, 5)):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(shape[-1], shape[:2], generator=generator)
    return 3 * torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype), ids


@pytest.mark.parametrize("chunk", [1, 3, 512])
@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.8])
def test_logprobs_and_entropy_are_those_of_log_softmax(monkeypatch, chunk, temperature):
    monkeypatch.setattr(loss, "CHUNK", chunk)
    logits, ids = random_logits()
    plain = (logits / temperature).log_softmax(-1)
    expected = plain.gather(-1, ids[..., None])[..., 0]
    assert torch.allclose(token_logprobs(logits, ids, temperature), expected, rtol=1e-13, atol=0)
    assert torch.allclose(token_entropy(logits, temperature), -(plain.exp() * plain).sum(-1), rtol=1e-12, atol=0)
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: token_logprobs(x, ids, temperature), logits)


def test_a_slice_of_the_logits_gives_the_gradient_of_the_whole():
    logits, ids = random_logits()
    logits.requires_grad_()
    token_logprobs(logits[:, :-1], ids[:, 1:], 1.2).sum().backward()
    grad, logits.grad = logits.grad, None
    (logits[:, :-1] / 1.2).log_softmax(-1).gather(-1, ids[:, 1:, None]).sum().backward()
    assert torch.allclose(grad, logits.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_are_worked_on_in_float32_and_never_kept_in_it(dtype):
    logits, ids = random_logits(dtype, (2, 9, 300))
    logits.requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        lp = token_logprobs(logits, ids, 1.2)
    assert all(x.dtype == dtype or x.numel() <= ids.numel() for x in kept)
    assert any(x.data_ptr() == logits.data_ptr() for x in kept)  # the logits themselves, no copy of them
    lp.sum().backward()
    assert lp.dtype == token_entropy(logits, 1.2).dtype == torch.float32 and logits.grad.dtype == dtype
    wide = logits.detach().double().requires_grad_()
    expected = token_logprobs(wide, ids, 1.2)
    expected.sum().backward()
    assert torch.allclose(lp.double(), expected, rtol=1e-6, atol=1e-6)
    assert torch.allclose(logits.grad.double(), wide.grad, rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_a_word_that_cannot_be_sampled_adds_nothing_to_the_entropy():
    logits = f64([[[0.0, 0.0, -math.inf]]]).requires_grad_()
    assert token_entropy(logits, 1.0).item() == pytest.approx(math.log(2))
    token_logprobs(logits, torch.tensor([[0]]), 1.0).sum().backward()
    assert logits.grad.flatten().tolist() == pytest.approx([0.5, -0.5, 0])


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_a_temperature_that_nothing_is_sampled_with_is_refused(temperature):
    logits, ids = random_logits()
    with pytest.raises(ValueError, match="must be above 0: pass the one that was sampled with"):
        token_logprobs(logits, ids, temperature)
    with pytest.raises(ValueError, match="must be above 0"):
        token_entropy(logits, temperature)


def test_logits_and_ids_that_do_not_fit_are_refused():
    logits, ids = random_logits()
    with pytest.raises(ValueError, match=r"logits\[:, :-1\] with ids\[:, 1:\]"):
        token_logprobs(logits, ids[:, 1:], 1.0)
    with pytest.raises(ValueError, match=r"\(7, 5\); they must be \(rows, tokens, words\)"):
        token_entropy(logits[0], 1.0)
