"""Part "exact": does the sampler do what a plain forward pass of the same weights says?

(a) log-probabilities of what was sampled (bfloat16 copy of the weights) against the forward pass of training: float32
    weights under autocast to bfloat16, prompts padded left and responses right as TRL does it, the head and the
    log-softmax of logits / temperature in float32 (train.float32_head); and against a forward pass wholly in float32.
    Target: a mean difference below 0.02. `training - float32` is the difference of the two forward passes, which no
    sampler can help; `bf16 head` is the training pass with logits rounded to bfloat16 (train.float32_head=false).
(b) tokens drawn in float32 against the softmax of a plain forward pass: chi-square, draws.py
(c) greedy tokens in float32 against `generate`, three architectures with random weights: greedy.py
"""

from __future__ import annotations

import torch
from torch.nn.utils.rnn import pad_sequence

from benchmarks.sampling import draws, greedy
from benchmarks.sampling.bench import Bench, table
from microcoder.sampling import Completion, GraphSampler, Sampling

TEMPERATURES = (1.0, 0.6)
ROWS = 32  # in one forward pass
TARGET = 0.02


def run(bench: Bench) -> None:
    with bench.attempt("exact: log-probabilities"):
        logprobs(bench)
    with bench.attempt("exact: draws"):
        draws.run(bench)
    with bench.attempt("exact: greedy"):
        greedy.run(bench)


def logprobs(bench: Bench) -> None:
    args, model = bench.args, bench.model()
    sampler = GraphSampler(model, bench.ends(model), batch=bench.sequences)
    prompts = bench.take(args.problems_per_step)
    rows = []
    for temperature in TEMPERATURES:
        completions = list(sampler(prompts, Sampling(temperature, args.limit, args.samples, seed=1)))
        sampled = torch.tensor([value for each in completions for value in each.logprobs])
        training = forward(model, prompts, completions, temperature, autocast=True)
        plain = forward(model, prompts, completions, temperature, autocast=False)
        rounded = forward(model, prompts, completions, temperature, autocast=True, head=torch.bfloat16)
        for name, difference in (
            ("sampled - training", sampled - training),
            ("sampled - float32", sampled - plain),
            ("training - float32", training - plain),
            ("sampled - bf16 head", sampled - rounded),
        ):
            rows.append({"difference": name, "temperature": temperature, **spread(difference)})
        bench.keep("exact", logprobs=rows)
    table(rows)
    for row in rows[::4]:
        met = "met" if row["mean"] < TARGET else "missed"
        print(f"temperature {row['temperature']:g}: mean {row['mean']:.4f} (target below {TARGET}: {met})")


@torch.no_grad()
def forward(
    model: torch.nn.Module,
    prompts: list[list[int]],
    completions: list[Completion],
    temperature: float,
    autocast: bool,
    head: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Log-probabilities of all tokens of the completions, one after the other."""
    device = next(model.parameters()).device
    found = []
    for start in range(0, len(completions), ROWS):
        part = completions[start : start + ROWS]
        asked = [torch.tensor(prompts[each.prompt]) for each in part]
        written = [torch.tensor(each.ids) for each in part]
        before, after = padded(asked, "left"), padded(written, "right")
        ids = torch.cat([before, after], 1).clamp(min=0).to(device)
        mask = (torch.cat([before, after], 1) >= 0).long().to(device)
        limit = after.shape[1]
        with torch.autocast(device.type, torch.bfloat16, enabled=autocast):
            output = model.get_decoder()(input_ids=ids, attention_mask=mask, use_cache=False)
        hidden = output.last_hidden_state[:, -limit - 1 : -1].to(head)
        logits = hidden @ model.get_output_embeddings().weight.to(head).T  # (rows, limit, vocabulary)
        logits = logits.float() / temperature
        values = torch.log_softmax(logits, -1).gather(-1, ids[:, -limit:, None])[..., 0]
        found.append(values[mask[:, -limit:] > 0].cpu())
    return torch.cat(found)


def padded(rows: list[torch.Tensor], side: str) -> torch.Tensor:
    """-1 where there is no token."""
    return pad_sequence(rows, batch_first=True, padding_side=side, padding_value=-1)


def spread(difference: torch.Tensor) -> dict[str, float]:
    size = difference.abs()
    return {
        "tokens": len(size),
        "mean": float(size.mean()),
        "median": float(size.median()),
        "95%": float(size.quantile(0.95)),
        "99%": float(size.quantile(0.99)),
        "max": float(size.max()),
        "signed mean": float(difference.mean()),
    }
