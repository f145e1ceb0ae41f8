"""What an update costs when the prompt of a group is computed once: ways of attention, side by side.

    python -m benchmarks.gpu packed --json packed.json                    # the shape of a model of 1.5B, random weights
    python -m benchmarks.gpu packed --shape tiny --groups 2 --samples 3   # on a CPU, float32

One forward and backward pass over groups of responses with random tokens and advantages, by

    padded     rows of prompt and response, padded, `--rows` a pass: what a trainer does by default
    repeated   the same rows without padding, one after the other, each prompt as often as it has responses
    merged     each prompt once; a response attends to itself and to its prompt in two calls of flash attention whose
               results are merged by their log-sum-exps
    flex       each prompt once; FlexAttention with a block mask
    dense      each prompt once; a mask over everything: for short passes, and for a CPU

Times are means of `--repeat` passes after one to warm up, on the GPU's clock. `cosine` compares the gradient with that
of the first way in float32 arithmetic where it is asked for (`--exact`), else with the first way as it is.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 512},
    "0.5b": {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
             "num_key_value_heads": 2, "vocab_size": 151936},
    "1.5b": {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
             "num_key_value_heads": 2, "vocab_size": 151936},
}  # fmt: skip
HEAD = 4096  # tokens of the head at a time


@dataclass
class Pass:
    """Groups of one pass, all prompts first, then all responses."""

    ids: torch.Tensor  # (tokens,)
    positions: torch.Tensor  # (tokens,)
    before: torch.Tensor  # (response tokens,) number of the token before each
    targets: torch.Tensor  # (response tokens,)
    advantages: torch.Tensor  # (response tokens,)
    prompts: int  # tokens of all prompts
    own: torch.Tensor  # first token of each prompt and of each response, and the end
    own_longest: int
    asks: torch.Tensor  # first token of each group's responses, counted from the end of the prompts
    asks_longest: int
    told: torch.Tensor  # first token of each prompt
    told_longest: int
    block: Any = None


def sums(lengths: list[int], device: Any) -> torch.Tensor:
    return F.pad(torch.tensor(lengths, device=device).cumsum(0), (1, 0)).to(torch.int32)


def packed(groups: list[tuple[Any, list[Any], list[float]]], device: Any) -> Pass:
    prompts = [prompt for prompt, _, _ in groups]
    responses = [(g, one, a) for g, (_, many, gains) in enumerate(groups) for one, a in zip(many, gains, strict=True)]
    starts = sums([len(p) for p in prompts], "cpu").tolist()
    places, at = [], starts[-1]
    for g, one, _ in responses:
        places.append(torch.cat([torch.tensor([starts[g + 1] - 1]), torch.arange(at, at + len(one) - 1)]))
        at += len(one)
    positions = [torch.arange(len(p)) for p in prompts]
    positions += [torch.arange(len(one)) + len(prompts[g]) for g, one, _ in responses]
    own = [len(p) for p in prompts] + [len(one) for _, one, _ in responses]
    asks = [sum(map(len, many)) for _, many, _ in groups]
    return Pass(
        torch.cat([*prompts, *(one for _, one, _ in responses)]).to(device), torch.cat(positions).to(device),
        torch.cat(places).to(device), torch.cat([one for _, one, _ in responses]).to(device),
        torch.cat([torch.full((len(one),), a) for _, one, a in responses]).to(device),
        starts[-1], sums(own, device), max(own), sums(asks, device), max(asks),
        sums([len(p) for p in prompts], device), max(len(p) for p in prompts),
    )  # fmt: skip


# --- attention


class Merged(torch.autograd.Function):
    """Causal attention of prompts and responses to themselves, merged with that of responses to their prompts."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, scale: float, plan: Pass) -> Any:  # (tokens, heads, d)
        n = plan.prompts
        run = torch.ops.aten._flash_attention_forward
        out, lse, *rng = run(q, k, v, plan.own, plan.own, plan.own_longest, plan.own_longest, 0.0, True, False,
                             scale=scale)  # fmt: skip
        more, more_lse, *more_rng = run(q[n:], k[:n], v[:n], plan.asks, plan.told, plan.asks_longest,
                                        plan.told_longest, 0.0, False, False, scale=scale)  # fmt: skip
        total = torch.logaddexp(lse[:, n:], more_lse)  # (heads, response tokens)
        part = (lse[:, n:] - total).exp().T[..., None]
        out[n:] = (out[n:] * part + more * (more_lse - total).exp().T[..., None]).to(out.dtype)
        lse = torch.cat([lse[:, :n], total], 1)
        ctx.save_for_backward(q, k, v, out, lse, rng[0], rng[1], more_rng[0], more_rng[1])
        ctx.scale, ctx.plan = scale, plan
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        q, k, v, out, lse, state, unused, more_state, more_unused = ctx.saved_tensors
        plan, n, grad = ctx.plan, ctx.plan.prompts, grad.contiguous()
        run = torch.ops.aten._flash_attention_backward
        dq, dk, dv = run(grad, q, k, v, out, lse.contiguous(), plan.own, plan.own, plan.own_longest, plan.own_longest,
                         0.0, True, state, unused, scale=ctx.scale)  # fmt: skip
        q2, k2, v2 = run(grad[n:], q[n:], k[:n], v[:n], out[n:], lse[:, n:].contiguous(), plan.asks, plan.told,
                         plan.asks_longest, plan.told_longest, 0.0, False, more_state, more_unused,
                         scale=ctx.scale)  # fmt: skip
        dq[n:] += q2
        dk[:n] += k2
        dv[:n] += v2
        return dq, dk, dv, None, None


class Repeated(torch.autograd.Function):
    """Causal attention of rows that lie one after the other."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, scale: float, plan: Pass) -> Any:
        out, lse, state, unused, _ = torch.ops.aten._flash_attention_forward(
            q, k, v, plan.own, plan.own, plan.own_longest, plan.own_longest, 0.0, True, False, scale=scale)  # fmt: skip
        ctx.save_for_backward(q, k, v, out, lse, state, unused)
        ctx.scale, ctx.plan = scale, plan
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        q, k, v, out, lse, state, unused = ctx.saved_tensors
        plan = ctx.plan
        found = torch.ops.aten._flash_attention_backward(
            grad.contiguous(), q, k, v, out, lse, plan.own, plan.own, plan.own_longest, plan.own_longest, 0.0, True,
            state, unused, scale=ctx.scale)  # fmt: skip
        return *found, None, None


def allowed(plan: Pass) -> torch.Tensor:
    """(tokens, tokens) whom each token may attend to."""
    group, piece = numbers(plan)
    order = torch.arange(len(plan.ids), device=plan.ids.device)
    shared = piece[None, :] < 0
    same = (group[:, None] == group[None, :]) & (shared | (piece[:, None] == piece[None, :]))
    return same & (order[:, None] >= order[None, :])


def numbers(plan: Pass) -> tuple[torch.Tensor, torch.Tensor]:
    """The group of each token, and its response (-1 in prompts)."""
    device = plan.ids.device
    prompts, groups = plan.told.diff().long(), len(plan.told) - 1
    own = plan.own.diff().long()
    group = torch.arange(groups, device=device)
    after = torch.repeat_interleave(group, plan.asks.diff().long())
    piece = torch.arange(len(own), device=device).repeat_interleave(own)
    piece[: plan.prompts] = -1
    return torch.cat([group.repeat_interleave(prompts), after]), piece


FLEX: dict[str, Any] = {}


def block_mask(plan: Pass) -> Any:
    from torch.nn.attention.flex_attention import create_block_mask

    group, piece = numbers(plan)

    def allows(b: Any, h: Any, q: Any, k: Any) -> Any:
        return (group[q] == group[k]) & ((piece[k] < 0) | (piece[q] == piece[k])) & (q >= k)

    total = len(plan.ids)
    return create_block_mask(allows, None, None, total, total, device=plan.ids.device, _compile=True)


def attention(module: Any, q: Any, k: Any, v: Any, mask: Any, scaling: float, **given: Any) -> Any:
    """As transformers asks for it: (1, heads, tokens, d) in, (1, tokens, heads, d) out."""
    plan, way = given["plan"], given["way"]
    if way == "dense":
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask_of(plan), scale=scaling, enable_gqa=True)
        return out.transpose(1, 2), None
    if way == "flex":
        out = FLEX["run"](q, k, v, block_mask=plan.block, scale=scaling, enable_gqa=True)
        return out.transpose(1, 2), None
    q, k, v = (x[0].transpose(0, 1).to(v.dtype) for x in (q, k, v))
    run = Merged if way == "merged" else Repeated
    return run.apply(q, k, v, scaling, plan)[None], None


def mask_of(plan: Pass) -> torch.Tensor:
    if plan.block is None:
        plan.block = allowed(plan)
    return plan.block


# --- the passes


def logprobs(head: torch.Tensor, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Of each target, in pieces whose logits are computed again in the backward pass."""

    def piece(hidden: Any, targets: Any) -> Any:
        logits = (hidden @ head.to(hidden.dtype).T).float()
        return logits.gather(1, targets[:, None])[:, 0] - logits.logsumexp(1)

    parts = [
        checkpoint(piece, h, t, use_reentrant=False)
        for h, t in zip(hidden.split(HEAD), targets.split(HEAD), strict=True)
    ]
    return torch.cat(parts)


def loss_of(model: Any, hidden: Any, before: Any, targets: Any, advantages: Any) -> Any:
    found = logprobs(model.lm_head.weight, hidden[before], targets)
    return -((found - found.detach()).exp() * advantages).sum()


def run_packed(model: Any, plan: Pass, way: str) -> None:
    if way == "flex":
        plan.block = block_mask(plan)
    hidden = model.model(
        input_ids=plan.ids[None], position_ids=plan.positions[None], use_cache=False, plan=plan, way=way
    ).last_hidden_state[0]
    loss_of(model, hidden, plan.before, plan.targets, plan.advantages).backward()


def run_padded(model: Any, groups: list[Any], rows: int, device: Any) -> None:
    flat = [(prompt, one, a) for prompt, many, gains in groups for one, a in zip(many, gains, strict=True)]
    flat.sort(key=lambda row: len(row[1]))
    for at in range(0, len(flat), rows):
        part = flat[at : at + rows]
        left = max(len(prompt) for prompt, _, _ in part)
        right = max(len(one) for _, one, _ in part)
        ids, mask = torch.zeros(len(part), left + right, dtype=torch.long), torch.zeros(len(part), left + right)
        for n, (prompt, one, _) in enumerate(part):
            ids[n, left - len(prompt) : left], ids[n, left : left + len(one)] = prompt, one
            mask[n, left - len(prompt) : left + len(one)] = 1
        positions = (mask.cumsum(1) - 1).clamp(min=0).long()
        hidden = model.model(
            input_ids=ids.to(device), attention_mask=mask.to(device), position_ids=positions.to(device), use_cache=False
        ).last_hidden_state
        keep = mask[:, left:].bool().to(device)
        flattened = hidden[:, left - 1 : -1][keep]
        advantages = torch.tensor([a for _, _, a in part], device=device)[:, None].expand(keep.shape)[keep]
        index = torch.arange(len(flattened), device=device)
        loss_of(model, flattened, index, ids[:, left:].to(device)[keep], advantages).backward()


def passes(groups: list[Any], budget: int, shared: bool) -> list[list[Any]]:
    """Groups by a budget of tokens; without sharing each response is a group of its own."""
    if not shared:
        groups = [(p, [one], [a]) for p, many, gains in groups for one, a in zip(many, gains, strict=True)]
    out: list[list[Any]] = [[]]
    filled = 0
    for group in groups:
        size = len(group[0]) + sum(map(len, group[1]))
        if filled + size > budget and out[-1]:
            out.append([])
            filled = 0
        out[-1].append(group)
        filled += size
    return out


def flat_pass(groups: list[Any], device: Any) -> Pass:
    """Rows of prompt and response, one after the other."""
    ids, positions, places, targets, gains, lengths, at = [], [], [], [], [], [], 0
    for prompt, (one,), (a,) in groups:
        ids += [prompt, one]
        size = len(prompt) + len(one)
        positions.append(torch.arange(size))
        places.append(torch.arange(at + len(prompt) - 1, at + size - 1))
        targets.append(one)
        gains.append(torch.full((len(one),), a))
        lengths.append(size)
        at += size
    none = torch.zeros(1, device=device)
    return Pass(
        torch.cat(ids).to(device), torch.cat(positions).to(device), torch.cat(places).to(device),
        torch.cat(targets).to(device), torch.cat(gains).to(device), 0, sums(lengths, device), max(lengths), none, 0,
        none, 0,
    )  # fmt: skip


def made(args: argparse.Namespace, prompt: int, answer: int) -> list[Any]:
    """Groups with lengths around the means; advantages that add up to nothing."""
    rng = torch.Generator().manual_seed(0)
    words = SHAPES[args.shape]["vocab_size"]

    def text(mean: int) -> Any:
        length = int(mean * (0.5 + torch.rand(1, generator=rng).item()))
        return torch.randint(0, words, (max(2, length),), generator=rng)

    out = []
    for _ in range(args.groups):
        gains = torch.randn(args.samples, generator=rng)
        out.append((text(prompt), [text(answer) for _ in range(args.samples)], (gains - gains.mean()).tolist()))
    return out


def build(args: argparse.Namespace, way: str, device: Any) -> Any:
    from transformers import AttentionInterface, AttentionMaskInterface, AutoModelForCausalLM, Qwen2Config

    if way != "padded":
        AttentionInterface.register("packed", attention)
        AttentionMaskInterface.register("packed", lambda *_, **__: None)
    torch.manual_seed(0)
    config = Qwen2Config(**SHAPES[args.shape], tie_word_embeddings=True, max_position_embeddings=32768)
    kind = "sdpa" if way == "padded" else "packed"
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, attn_implementation=kind, dtype=torch.float32)
    model.train()
    return model


def grads(model: Any) -> torch.Tensor:
    names = ("layers.0.self_attn.k_proj.weight", "layers.1.mlp.up_proj.weight", "norm.weight")
    return torch.cat([model.get_submodule("model").get_parameter(name).grad.flatten() for name in names]).cpu()


def measured(args: argparse.Namespace, model: Any, run: Callable[[], None], device: Any) -> dict[str, Any]:
    cuda = device.type == "cuda"
    gradient = None
    seconds = []
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    for n in range(args.repeat + 1):
        model.zero_grad(set_to_none=True)
        if cuda:
            torch.cuda.synchronize()
        started = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            run()
        if cuda:
            torch.cuda.synchronize()
        if n == 0:
            first, gradient = time.perf_counter() - started, grads(model)
        else:
            seconds.append(time.perf_counter() - started)
    peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else 0.0
    return {"seconds": sum(seconds) / len(seconds), "first_s": first, "gib": peak, "grad": gradient}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="1.5b")
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--lengths", default="400:200,800:200,200:200,200:800,256:4096", help="mean prompt:answer,...")
    parser.add_argument("--budget", type=int, default=32768, help="tokens of a pass")
    parser.add_argument("--rows", type=int, default=16, help="rows of a padded pass")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--ways", default="padded,padded+,repeated,merged,flex", help="+: activations are recomputed")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
    from torch.nn.attention.flex_attention import flex_attention

    FLEX["run"] = torch.compile(flex_attention, dynamic=True)
    results = []
    print(f"{'prompt:answer':14} {'way':10} {'tokens':>8} {'seconds':>8} {'first':>7} {'GiB':>6} {'cosine':>9}")
    for lengths in args.lengths.split(","):
        prompt, answer = map(int, lengths.split(":"))
        groups = made(args, prompt, answer)
        base = None
        for way in args.ways.split(","):
            row = one(args, groups, way, device)
            gradient = row.pop("grad", None)
            base = gradient if base is None else base
            if gradient is not None:
                row["cosine"] = F.cosine_similarity(base.double(), gradient.double(), dim=0).item()
            row |= {"lengths": lengths, "way": way}
            results.append(row)
            if "error" in row:
                print(f"{lengths:14} {way:10} {row['error']}", flush=True)
            else:
                print(
                    f"{lengths:14} {way:10} {row['tokens']:8} {row['seconds']:8.3f} {row['first_s']:7.2f} "
                    f"{row['gib']:6.1f} {row['cosine']:9.6f}",
                    flush=True,
                )
            if args.json:
                Path(args.json).write_text(json.dumps(results, indent=1))


def one(args: argparse.Namespace, groups: list[Any], way: str, device: Any) -> dict[str, Any]:
    name = way.rstrip("+")
    try:
        model = build(args, name, device)
        if way.endswith("+"):
            model.gradient_checkpointing_enable({"use_reentrant": False})
        if name == "padded":
            tokens = sum(len(p) + len(r) for p, many, _ in groups for r in many)
            return {"tokens": tokens} | measured(
                args, model, lambda: run_padded(model, groups, args.rows, device), device
            )
        shared = name != "repeated"
        plans = [(packed if shared else flat_pass)(part, device) for part in passes(groups, args.budget, shared)]

        def run() -> None:
            for plan in plans:
                run_packed(model, plan, name)

        return {"tokens": sum(len(plan.ids) for plan in plans)} | measured(args, model, run, device)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    finally:
        model = None
        if device.type == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
