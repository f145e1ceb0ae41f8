"""Chi-square: are tokens drawn as the softmax of a plain forward pass says? Both in float32.

Two tokens are drawn for each sample of one prompt. The first is drawn from the logits of reading the prompt, the second
from those of a decode step after it, which may be other code: so both are tested, the second among the samples that
begin with one chosen token. Prompt and token are those that leave much to chance. Tokens expected fewer than 10 times
share a bin; `outside` counts tokens that top_k or top_p should have made impossible.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from benchmarks.sampling.bench import Bench, table
from microcoder.sampling import GraphSampler, Sampling

SETTINGS = (
    {"temperature": 1.0},
    {"temperature": 0.6},
    {"temperature": 1.0, "top_k": 20},
    {"temperature": 1.0, "top_p": 0.8},
)
CALL = 10_000  # samples in one call
LEAST = 10  # expected count of a bin
NATS = 3.0  # dozens of likely tokens, and the likeliest of them often enough to go on from


def run(bench: Bench) -> None:
    model = bench.model()
    prompt = uncertain(model, bench.take(8))
    first = following(model, prompt)[-1].cpu()
    after = {token: following(model, [*prompt, token])[-1].cpu() for token in first.topk(8).indices.tolist()}
    token = max(after, key=lambda token: float(first.softmax(0)[token] * entropy(after[token])))
    sampler = GraphSampler(model, [], batch=2048, dtype=torch.float32)
    rows = []
    for setting in SETTINGS:
        drawn = pairs(sampler, prompt, setting, bench.args.draws)
        second = [ids[1] for ids in drawn if ids[0] == token]
        for name, logits, tokens in (("1st", first, [ids[0] for ids in drawn]), ("2nd", after[token], second)):
            rows.append({"token": name, **setting, **chi_square(tokens, expected(logits, **setting))})
        bench.keep("exact", draws=rows)
    table(rows, ("token", "temperature", "top_k", "top_p", "draws", "bins", "chi-square", "freedom", "p", "outside"))


def uncertain(model: Any, prompts: list[list[int]]) -> list[int]:
    """The beginning of a prompt with about NATS of entropy after it: how an answer begins may be all but certain."""
    found: list[tuple[float, list[int]]] = []
    for ids in prompts:
        far = (entropy(following(model, ids)) - NATS).abs()
        found.append((float(far.min()), ids[: int(far.argmin()) + 1]))
    return min(found)[1]


def pairs(sampler: Any, prompt: list[int], setting: dict[str, Any], draws: int) -> list[list[int]]:
    """The first two tokens of `draws` samples, in calls with different seeds."""
    found = []
    for seed, start in enumerate(range(0, draws, CALL)):
        sampling = Sampling(limit=2, samples=min(CALL, draws - start), seed=seed, **setting)
        found += [each.ids for each in sampler([prompt], sampling)]
    return found


@torch.no_grad()
def following(model: Any, ids: list[int]) -> torch.Tensor:
    """Logits of the token after each of `ids`, in float64: (tokens, vocabulary)."""
    return model(input_ids=torch.tensor([ids], device=model.device), use_cache=False).logits[0].double()


def entropy(logits: torch.Tensor) -> torch.Tensor:
    return torch.distributions.Categorical(logits=logits).entropy()


def expected(logits: torch.Tensor, temperature: float, top_k: int = 0, top_p: float = 1.0) -> torch.Tensor:
    """Probabilities: the tail is cut after the temperature; a token stays if the likelier ones have less than top_p."""
    probabilities, order = torch.softmax(logits / temperature, -1).sort(descending=True)
    if top_k:
        probabilities[top_k:] = 0
    probabilities[probabilities.cumsum(0) - probabilities >= top_p * probabilities.sum()] = 0
    return torch.zeros_like(probabilities).scatter(0, order, probabilities / probabilities.sum())


def chi_square(tokens: list[int], probabilities: torch.Tensor) -> dict[str, Any]:
    counted = torch.zeros_like(probabilities)
    for token, count in Counter(tokens).items():
        counted[token] = count
    wanted = len(tokens) * probabilities
    outside = int(counted[probabilities == 0].sum())
    common, rare = wanted >= LEAST, (wanted > 0) & (wanted < LEAST)
    bins = sorted(zip(wanted[common].tolist(), counted[common].tolist(), strict=True))
    if rare.any():
        pooled = float(wanted[rare].sum()), float(counted[rare].sum())
        if pooled[0] < LEAST and bins:  # too few even together: they join the rarest of the others
            smallest = bins.pop(0)
            pooled = pooled[0] + smallest[0], pooled[1] + smallest[1]
        bins.append(pooled)
    statistic = sum((b - a) ** 2 / a for a, b in bins)
    freedom = len(bins) - 1
    p = torch.special.gammaincc(torch.tensor(freedom / 2).double(), torch.tensor(statistic / 2).double())
    return {
        "draws": len(tokens),
        "bins": len(bins),
        "chi-square": statistic,
        "freedom": freedom,
        "p": None if freedom < 1 else 0.0 if outside else float(p),
        "outside": outside,
    }
