"""AdamW in less memory: as good as AdamW, unbiased, and the same after a stop."""

from __future__ import annotations

import io

import pytest
import torch
from train_runs import resumed, same, timeless, trained, weights

from microcoder.runs import read_metrics
from microcoder.training.memory import STATES
from microcoder.training.optimizers import SIGNED, SMALLEST, UNSIGNED, CompactAdamW, decoded, encoded, rounded


def chance(seed=0):
    return torch.Generator().manual_seed(seed)


# --- codes


@pytest.mark.parametrize(("levels", "power"), [(SIGNED, 1), (UNSIGNED, 2)])
def test_a_code_is_off_by_a_share_of_the_value_and_right_in_the_mean(levels, power):
    sizes = 10 ** torch.linspace(-4 * power, 0, 256)[None] * 3.7  # four orders of magnitude, eight of their squares
    values = sizes * torch.tensor([-1.0, 1.0]).repeat(128) if power == 1 else sizes
    draws = torch.stack([decoded(*encoded(values, levels, chance(n)), levels) for n in range(2000)])
    assert ((draws - values).abs() <= 0.095 * values.abs()).all()
    assert draws.mean(0) / values == pytest.approx(torch.ones(1, 256), abs=0.005)


def test_nothing_stays_nothing_and_a_second_moment_does_not_become_it():
    values = torch.zeros(3, 256)
    values[1, :2] = torch.tensor([1.0, 1e-30])
    first, second = (decoded(*encoded(values, levels, chance()), levels) for levels in (SIGNED, UNSIGNED))
    assert (first == 0).sum() == (values == 0).sum() + 1
    assert torch.equal(second > 0, values > 0)


def test_rounding_to_bfloat16_is_right_in_the_mean_and_exact_where_nothing_is_lost():
    values = torch.tensor([1.001, -1.001, 3e-5, -0.33333, 1.0, -2.5, 0.0]).repeat(100_000, 1)
    found = rounded(values, chance())
    assert found.dtype == torch.bfloat16
    assert (found[:, 4:] == values[:, 4:]).all()
    gap = torch.nextafter(values[0].bfloat16(), torch.tensor(9.0).bfloat16()).float() - values[0].bfloat16().float()
    wrong = (found.float().mean(0) - values[0]).abs()
    assert (wrong <= gap.abs() * 0.01).all()  # of a distance of up to 1; drawn 100,000 times
    assert ((found.float() - values).abs() <= 2 * gap.abs()).all()


# --- steps


def test_with_32_bits_it_is_torch_s_adamw():
    start = [torch.randn(70, 70, generator=chance(1)), torch.randn(33, generator=chance(2))]
    results = []
    for kind, options in ((torch.optim.AdamW, {}), (CompactAdamW, {"bits": 32})):
        params = [torch.nn.Parameter(value.clone()) for value in start]
        optimizer = kind(params, lr=0.01, weight_decay=0.1, **options)
        for n in range(30):
            for param, value in zip(params, start, strict=True):
                param.grad = torch.randn(value.shape, generator=chance(n)) + value
            optimizer.step()
        results.append(params)
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-6)


def regression(make, dtype=torch.float32, steps=700):
    """The loss of a network of two layers on noisy data after these steps; its inputs differ in size by 1,000 times."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 8)).to(dtype)
    x = torch.randn(512, 64) * 10 ** torch.linspace(-2, 1, 64)
    y = torch.tanh(x @ torch.randn(64, 8) / 8)
    optimizer = make(net.parameters())
    for n in range(steps):
        pick = torch.randint(512, (64,), generator=chance(n))
        optimizer.zero_grad()
        loss(net, x[pick], y[pick]).backward()
        optimizer.step()
    return loss(net, x, y).item()


def loss(net, x, y):
    """Computed in float32, for products in bfloat16 are slow on a CPU."""
    weights = {name: weight.float() for name, weight in net.named_parameters()}
    return (torch.func.functional_call(net, weights, (x,)) - y).square().mean()


def test_in_8_bits_it_learns_as_well_as_adam():
    full = regression(lambda params: torch.optim.AdamW(params, lr=1e-3, weight_decay=0.0))
    small = regression(lambda params: CompactAdamW(params, lr=1e-3))
    start = regression(lambda params: CompactAdamW(params, lr=1e-3), steps=0)
    assert full < start / 20
    assert small == pytest.approx(full, rel=0.15)


@pytest.mark.long
def test_weights_in_bfloat16_learn_too_where_rounding_to_the_nearest_does_not():
    half = torch.bfloat16
    ours = regression(lambda params: CompactAdamW(params, lr=2e-5), half)
    nearest = regression(lambda params: torch.optim.AdamW(params, lr=2e-5, weight_decay=0.0), half)
    full = regression(lambda params: torch.optim.AdamW(params, lr=2e-5, weight_decay=0.0))
    assert ours == pytest.approx(full, rel=0.1)
    assert nearest > 1.2 * full


def test_a_weight_in_bfloat16_moves_in_the_mean():
    weight = torch.nn.Parameter(torch.ones(10_000, dtype=torch.bfloat16))
    optimizer = CompactAdamW([weight], lr=1e-5)
    for _ in range(100):
        weight.grad = torch.ones(10_000)
        optimizer.step()
    assert weight.float().mean().item() == pytest.approx(1 - 1e-3, abs=2e-4)
    assert 1 - 1e-5 == pytest.approx(1.0, abs=2**-9)  # which alone would be rounded to 1


def test_gradients_of_weights_in_bfloat16_are_gathered_in_float32():
    weight = torch.nn.Parameter(torch.ones(8, dtype=torch.bfloat16))
    CompactAdamW([weight])
    for _ in range(300):
        weight.sum().backward()
    assert weight.grad.tolist() == [300.0] * 8  # in bfloat16 256 + 1 is 256


# --- what is kept


def test_moments_of_large_weights_take_two_bytes_a_value():
    weight, norm = (torch.nn.Parameter(torch.ones(n)) for n in (100 * SMALLEST, SMALLEST - 1))
    optimizer = CompactAdamW([weight, norm])
    weight.grad, norm.grad = torch.ones_like(weight), torch.ones_like(norm)
    optimizer.step()
    taken = sum(value.nbytes for value in optimizer.state[weight].values())
    assert taken == STATES["adam8bit"] * weight.numel()
    assert {value.dtype for value in optimizer.state[norm].values()} == {torch.float32}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_saved_state_goes_on_bit_for_bit(dtype):
    def begun():
        params = [torch.nn.Parameter(torch.ones(n, dtype=dtype)) for n in (5000, 300)]
        return params, CompactAdamW([{"params": params[:1]}, {"params": params[1:], "weight_decay": 0.1}], lr=0.01)

    def steps(params, optimizer, numbers):
        for n in numbers:
            for param in params:
                param.grad = torch.randn(param.shape, generator=chance(n))
            optimizer.step()

    whole, optimizer = begun()
    steps(whole, optimizer, range(6))
    halves, optimizer = begun()
    steps(halves, optimizer, range(3))
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    again, optimizer = begun()
    for one, other in zip(again, halves, strict=True):
        one.data.copy_(other.data)
    optimizer.load_state_dict(torch.load(file, weights_only=True))
    steps(again, optimizer, range(3, 6))
    assert all(torch.equal(one, other) for one, other in zip(whole, again, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("words", [[], ["model.dtype=bfloat16"]])
def test_a_run_goes_on_bit_for_bit_and_learns_something(tmp_path, words):
    words = [*words, "train.optimizer=adam8bit", "train.save_every=1", "train.weight_decay=0.5", "train.update=packed"]
    trained(tmp_path / "twin", *words, "train.steps=2")
    trained(tmp_path / "run", *words, "train.steps=1")
    before = weights(tmp_path / "run")
    resumed(tmp_path / "run", *words, "train.steps=2")
    assert same(weights(tmp_path / "run"), weights(tmp_path / "twin"))
    assert not same(weights(tmp_path / "run"), before)
    assert timeless(read_metrics(tmp_path / "run")) == timeless(read_metrics(tmp_path / "twin"))
