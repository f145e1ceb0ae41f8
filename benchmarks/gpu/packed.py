"""Forward and backward over the responses of a step, padded and packed: seconds, memory, and exactness of gradients.

    python -m benchmarks.gpu packed --shape 1.5b --lengths 800:200,400:400,200:800 --json packed.json   # random weights
    python -m benchmarks.gpu packed --model FOLDER --data train.jsonl.gz       # a model's own answers to real problems
    python -m benchmarks.gpu packed --shape tiny --groups 2 --samples 3                                      # on a CPU

    padded   rows of prompt and response, sorted by length and padded, `--rows` a pass: what a trainer does by default
    packed   each prompt once, nothing padded, `--budget` tokens a pass (microcoder/training/packed.py)

A way may end in /2 (passes half as large) and in + (activations are recomputed). Weights are float32, matrix products
bfloat16 (on a CPU all is float32). `error` is the norm of the difference from the gradient that the padded way has in
float32, over that gradient's norm; `cosine` the cosine between the two; over all weights. Times are means of `--repeat`
passes after one to warm up.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen3Config

from microcoder.training.packed import fill, inputs, logprobs, pack, share_prompts

SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 512},
    "135m": {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
             "num_key_value_heads": 3, "vocab_size": 49152},
    "0.5b": {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
             "num_key_value_heads": 2, "vocab_size": 151936},
    "1.5b": {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
             "num_key_value_heads": 2, "vocab_size": 151936},
    "4b": {"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
           "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936},
}  # fmt: skip
Row = tuple[list[int], list[int], float]  # prompt, response, advantage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", metavar="FOLDER", help="as transformers has it; else --shape with random weights")
    parser.add_argument("--data", metavar="FILE", help="problems that the model answers; else random tokens")
    parser.add_argument("--shape", choices=SHAPES, default="1.5b")
    parser.add_argument("--lengths", default="800:200,400:400,200:800", help="mean prompt:answer,... of random tokens")
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--limit", type=int, default=1024, help="tokens of an answer to --data")
    parser.add_argument("--budget", type=int, default=16384, help="tokens of a packed pass")
    parser.add_argument("--rows", type=int, default=16, help="rows of a padded pass")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--ways", default="padded,padded/2,padded+,packed,packed/2,packed+")
    parser.add_argument("--inexact", action="store_true", help="no gradient in float32, only times and memory")
    parser.add_argument("--profile", action="store_true", help="of each way also the kernels that take the most time")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    results = []
    print(f"{'prompt:answer':14} {'way':10} {'seconds':>8} {'GiB':>6} {'error':>9} {'cosine':>10}")
    for name, model, rows in cases(args, device):
        truth = None
        if not args.inexact:
            model.gradient_checkpointing_enable({"use_reentrant": False})
            model.zero_grad(set_to_none=True)
            padded(model, rows, max(1, args.rows // 4), device)
            truth = gradient(model)
        for way in args.ways.split(","):
            row = {"lengths": name, "way": way} | measured(args, model, rows, way, device, truth)
            results.append(row)
            cells = f"{row['seconds']:8.3f} {row['gib']:6.1f}" if "seconds" in row else row["error"]
            if "cosine" in row:
                cells += f" {row['distance']:9.6f} {row['cosine']:10.7f}"
            print(f"{name:14} {way:10} {cells}", flush=True)
            if args.profile and "seconds" in row:
                profile(ways(args, model, rows, way, device))
            if args.json:
                Path(args.json).write_text(json.dumps(results, indent=1))


# --- what is computed


def padded(model: Any, rows: list[Row], size: int, device: Any) -> None:
    order = sorted(rows, key=lambda row: len(row[0]) + len(row[1]))
    for at in range(0, len(order), size):
        part = order[at : at + size]
        left, right = max(len(row[0]) for row in part), max(len(row[1]) for row in part)
        ids, mask = torch.zeros(len(part), left + right, dtype=torch.long), torch.zeros(len(part), left + right)
        for n, (prompt, answer, _) in enumerate(part):
            ids[n, left - len(prompt) : left + len(answer)] = torch.tensor(prompt + answer)
            mask[n, left - len(prompt) : left + len(answer)] = 1
        hidden = model.model(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            position_ids=(mask.cumsum(1) - 1).clamp(min=0).long().to(device),
            use_cache=False,
        ).last_hidden_state
        keep = mask[:, left:].bool().to(device)
        gains = torch.tensor([row[2] for row in part], device=device)[:, None].expand(keep.shape)[keep]
        found = logprobs(hidden[:, left - 1 : -1][keep], model.lm_head, ids[:, left:].to(device)[keep], 1.0)
        backward(found, gains)


def packed(model: Any, rows: list[Row], budget: int, device: Any) -> None:
    for numbers in fill([row[:2] for row in rows], budget):
        row = pack([rows[n][:2] for n in numbers], device)
        lengths = torch.tensor(row.lengths, device=device)
        gains = torch.tensor([rows[n][2] for n in numbers], device=device).repeat_interleave(lengths)
        backward(model(**inputs(row)), gains)


def backward(found: torch.Tensor, gains: torch.Tensor) -> None:
    """Of the policy loss at a ratio of 1."""
    (-(found * gains).sum()).backward()


def gradient(model: Any) -> list[torch.Tensor]:
    return [weight.grad.detach().clone() for weight in model.parameters()]


def ways(args: Any, model: Any, rows: list[Row], way: str, device: Any) -> Callable[[], None]:
    half = 2 if "/2" in way else 1
    if way.startswith("padded"):
        return lambda: padded(model, rows, args.rows // half, device)
    return lambda: packed(model, rows, args.budget // half, device)


def profile(run: Callable[[], None]) -> None:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as watch

    cuda = torch.cuda.is_available()
    with watch(activities=[ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU]) as seen:
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            run()
    by = "self_cuda_time_total" if cuda else "self_cpu_time_total"
    print(seen.key_averages().table(sort_by=by, row_limit=30, max_name_column_width=70), flush=True)


def measured(args: Any, model: Any, rows: list[Row], way: str, device: Any, truth: Any) -> dict[str, Any]:
    cuda = device.type == "cuda"
    run = ways(args, model, rows, way, device)
    (model.gradient_checkpointing_enable if way.endswith("+") else model.gradient_checkpointing_disable)()
    seconds = []
    try:
        for n in range(args.repeat + 1):
            model.zero_grad(set_to_none=True)
            if cuda:
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                torch.cuda.synchronize()
            started = time.perf_counter()
            with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
                run()
            if cuda:
                torch.cuda.synchronize()
            seconds += [time.perf_counter() - started] if n else []
    except torch.OutOfMemoryError:
        return {"error": "out of memory"}
    found = {"seconds": sum(seconds) / len(seconds), "gib": torch.cuda.max_memory_allocated() / 2**30 if cuda else 0.0}
    if truth is not None:
        sums = torch.zeros(4, dtype=torch.float64, device=device)
        for right, weight in zip(truth, model.parameters(), strict=True):
            mine = weight.grad
            parts = ((mine - right).square(), mine * right, mine.square(), right.square())
            sums += torch.stack([part.sum(dtype=torch.float64) for part in parts])
        apart, both, one, two = sums.tolist()
        found |= {"distance": (apart / two) ** 0.5, "cosine": both / (one * two) ** 0.5}
    return found


# --- models and rows


def random_model(shape: str, device: Any, dtype: torch.dtype = torch.float32, **changes: Any) -> Any:
    """A model of a shape with random weights, always the same. `changes` are settings of its configuration."""
    sizes = {**SHAPES[shape], "tie_word_embeddings": True, "max_position_embeddings": 32768, **changes}
    kind = Qwen3Config if "head_dim" in sizes else Qwen2Config
    torch.manual_seed(0)
    with torch.device(device):
        return AutoModelForCausalLM.from_config(kind(**sizes), dtype=dtype)


def cases(args: argparse.Namespace, device: Any) -> Iterator[tuple[str, Any, list[Row]]]:
    if args.model:
        model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).to(device)
    else:
        model = random_model(args.shape, device)
    model.train()
    share_prompts(model)
    if args.data:
        rows = answers(args, model)
        means = [round(sum(len(row[n]) for row in rows) / len(rows)) for n in (0, 1)]
        yield ":".join(map(str, means)), model, rows
        return
    for lengths in args.lengths.split(","):
        yield lengths, model, random_rows(args, *map(int, lengths.split(":")), model.config.vocab_size)


def random_rows(args: argparse.Namespace, prompt: int, answer: int, words: int) -> list[Row]:
    """Lengths from half to one and a half of the means; advantages that add up to nothing in a group."""
    rng = torch.Generator().manual_seed(0)

    def text(mean: int) -> list[int]:
        length = max(2, int(mean * (0.5 + torch.rand(1, generator=rng).item())))
        return torch.randint(0, words, (length,), generator=rng).tolist()

    out = []
    for _ in range(args.groups):
        gains = torch.randn(args.samples, generator=rng)
        asked = text(prompt)
        out += [(asked, text(answer), gain) for gain in (gains - gains.mean()).tolist()]
    return out


def answers(args: argparse.Namespace, model: Any) -> list[Row]:
    """What the model itself answers to problems, at T 1."""
    from transformers import AutoTokenizer

    from microcoder import load_problems
    from microcoder.prompts import messages
    from microcoder.sampling.graph import sampler_for
    from microcoder.sampling.sampler import Sampling, encode

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    problems = load_problems(args.data)
    problems = problems[:: max(1, len(problems) // args.groups)][: args.groups]
    prompts = [encode(tokenizer, messages(problem)) for problem in problems]
    sampler = sampler_for(model, [tokenizer.eos_token_id], memory=0.2)
    rng = torch.Generator().manual_seed(0)
    gains = torch.randn(len(prompts), args.samples, generator=rng)
    gains -= gains.mean(1, keepdim=True)
    model.eval()
    sampling = Sampling(samples=args.samples, temperature=1.0, limit=args.limit)
    found = sorted(sampler(prompts, sampling), key=lambda one: (one.prompt, one.sample))
    model.train()
    return [(prompts[one.prompt], one.ids, gains[one.prompt, one.sample].item()) for one in found]
