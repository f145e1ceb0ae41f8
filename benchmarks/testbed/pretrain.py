"""Pretrain a testbed model from scratch, on answers in three styles: minutes on a GPU or, of a small one, on a core.

    python -m benchmarks.testbed pretrain --out FOLDER --size 8m --trace 0.15 --steps 6000     # a GPU
    python -m benchmarks.testbed pretrain --out FOLDER --size 1m --minutes 30                  # a core
    python -m benchmarks.testbed pretrain --out FOLDER --size tiny --most 8 --minutes 2.5      # a toy

FOLDER/model is the model; FOLDER/train.jsonl and test.jsonl are problems to train and to test it on, by reinforcement.
Only tasks of the train split are pretrained on.

A trace is the longest answer and the one that has to be learnt, but may be rare. So the styles that the model reads
have shares of their own (READ), and only the first token, which decides the style, is weighed by the asked share over
the read one. The model's own shares follow from that token alone, so traces are as good with a prior of 5% as with 40%.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.testbed import tasks
from benchmarks.testbed.tasks import STYLES, Style, Task
from microcoder.prompts import messages

USER, ASSISTANT, END, PAD = "<|user|>", "<|assistant|>", "<|end|>", "<|pad|>"
TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
PIECES = r"[a-p]:| [+*][0-9]|\n *| ?[A-Za-z_]+| ?[0-9]| ?[^\sA-Za-z0-9_]+|\s"  # labels, operations, words, digits
VOCABULARY = 512  # enough that every word of the tasks becomes one token
POSITIONS = 1024
SIZES = {  # hidden size, layers, answers an update, learning rate
    "tiny": (96, 3, 8, 3e-3),
    "1m": (128, 4, 32, 3e-3),
    "8m": (320, 6, 256, 2e-3),
}
READ: dict[Style, float] = {"direct": 0.1, "trace": 0.85, "loop": 0.05}
EASY, CHUNKS = 3, 3  # the first tasks have k up to EASY; every CHUNKS chunks it is one more: copying is learnt sooner
GROWS = 0.3  # of the training, at the most, until k is as large as it gets
SCALE = 100  # of the loss, in tokens an answer: the same for all batches, so that each answer counts alike
CHUNK = 32  # batches that are drawn together and sorted by k, so that little is padding
WARM_UP = 50
MUON = 7  # the learning rate of matrices, in those of embeddings and norms
TOLD = 50  # updates between two lines on the screen


class Clock:
    """How much of a training is over: by its updates, or by time of the processor, whichever ends sooner."""

    def __init__(self, steps: int, minutes: float | None) -> None:
        self.step, self.steps, self.limit = 0, steps, 60 * minutes if minutes else math.inf
        self.started, self.used = time.monotonic(), time.process_time()

    def spent(self) -> float:
        return max(self.step / self.steps, self.cpu() / self.limit)

    def cpu(self) -> float:
        return time.process_time() - self.used


class Batch(NamedTuple):
    ids: Tensor  # (rows, longest)
    labels: Tensor  # (rows, longest): -100 where nothing is learnt: prompts and padding
    weights: Tensor  # (rows,): of the first token of each answer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--size", choices=SIZES, default="8m")
    parser.add_argument("--trace", type=float, default=0.15, help="share of traces (0.15)")
    parser.add_argument("--loop", type=float, default=0.05, help="share of loops (0.05); the rest is direct")
    parser.add_argument("--guess", type=float, default=0.25, help="share of right ones among direct answers (0.25)")
    parser.add_argument("--slip", type=float, default=0.002, help="share of wrong lines in traces (0.002)")
    parser.add_argument(
        "--sharp",
        type=float,
        default=1.0,
        help="logits are multiplied by it in the end: above 1, a model that is too sure",
    )
    parser.add_argument("--steps", type=int, default=4000, help="updates (4000)")
    parser.add_argument(
        "--minutes", type=float, help="stop after so much time of the processor, the learning rate at its end"
    )
    parser.add_argument("--most", type=int, default=16, help="the largest k, from 2 to 16 (16)")
    parser.add_argument("--batch", type=int, help="answers an update (tiny: 8, 1m: 32, 8m: 256)")
    parser.add_argument("--lr", type=float, help="learning rate (tiny and 1m: 3e-3, 8m: 2e-3)")
    parser.add_argument("--train", type=int, default=20_000, help="problems in train.jsonl (20000)")
    parser.add_argument("--test", type=int, default=300, help="problems in test.jsonl (300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    *_, batch, lr = SIZES[args.size]
    args.batch, args.lr = args.batch or batch, args.lr or lr
    try:
        shares = tasks.priors(args.trace, args.loop)
        tasks.write(args.out, args.train, args.test, args.seed, args.most)
    except ValueError as error:
        parser.error(str(error))
    torch.manual_seed(args.seed)
    tokenizer = make_tokenizer()
    model = build(args.size, tokenizer).to(args.device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters, {len(tokenizer)} tokens", flush=True)
    clock = Clock(args.steps, args.minutes)
    done = train(model, batches(tokenizer, shares, args, clock), args, clock)
    sharpen(model, args.sharp)
    save(model, tokenizer, args.out / "model", {**vars(args), **done, "out": None, "device": None})
    print(f"{args.out}/model: {done['updates']} updates, {done['tokens'] / 1e6:.1f} M tokens, {done['seconds']:.0f} s")
    return 0


def ask(task: Task) -> str:
    return f"{USER}{messages(task.problem())[0]['content']}{END}{ASSISTANT}"


def reply(task: Task, style: Style, rng: random.Random, guess: float, slip: float) -> str:
    """Write an answer to read: with an end, or a loop that breaks off, so that its end is never learnt."""
    text = tasks.answer(task, style, rng, guess, slip)
    if style == "loop":
        return "\n".join(text.split("\n")[: 4 + 3 * task.k])  # as long as a trace
    return text + END


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Make a tokenizer whose tokens are the words of the tasks; any other text is written in bytes."""
    rng = random.Random(0)
    drawn = tasks.tasks("train", rng)
    texts = [ask(next(drawn)) + reply(next(drawn), style, rng, 0.5, 0.0) for style in STYLES for _ in range(300)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special, alphabet = [PAD, END, USER, ASSISTANT], pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=END, additional_special_tokens=special[2:]
    )
    fast.chat_template = TEMPLATE
    fast.clean_up_tokenization_spaces = False
    fast.model_max_length = POSITIONS
    return fast


def build(size: str, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    hidden, layers, *_ = SIZES[size]
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=hidden,
            intermediate_size=hidden * 8 // 3 // 32 * 32,
            num_hidden_layers=layers,
            num_attention_heads=hidden // 32,
            num_key_value_heads=hidden // 32,
            max_position_embeddings=POSITIONS,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def batches(tokenizer: PreTrainedTokenizerFast, shares, args: argparse.Namespace, clock: Clock) -> Iterator[Batch]:
    """Draw batches without end, each of tasks with about the same k, in all styles; those with small k come first."""
    rng = random.Random(f"pretrain {args.seed}")
    known: dict[str, list[int]] = {}
    for chunk in itertools.count():
        harder = max(chunk // CHUNKS, int((args.most - EASY) * clock.spent() / GROWS))
        drawn = tasks.tasks("train", rng, tasks.steps_to(min(args.most, EASY + harder)))
        chosen = rng.choices(STYLES, [READ[style] for style in STYLES], k=CHUNK * args.batch)
        work = [next(drawn) for _ in chosen]
        prompts = encode(tokenizer, map(ask, work), known)
        replies = [reply(t, s, rng, args.guess, args.slip) for t, s in zip(work, chosen, strict=True)]
        weights = [shares[style] / READ[style] for style in chosen]
        rows = sorted(
            zip(prompts, encode(tokenizer, replies, known), weights, strict=True), key=lambda row: len(row[0])
        )
        starts = list(range(0, len(rows), args.batch))
        rng.shuffle(starts)
        yield from (collate(rows[n : n + args.batch], tokenizer.pad_token_id, args.device) for n in starts)


def encode(tokenizer: PreTrainedTokenizerFast, texts: Iterable[str], known: dict[str, list[int]]) -> list[list[int]]:
    """Encode line by line, and each line once: no piece goes over the beginning of a line."""
    split = [re.split(r"(?=\n)", text) for text in texts]
    if new := sorted({line for lines in split for line in lines} - known.keys()):
        known.update(zip(new, tokenizer(new, add_special_tokens=False)["input_ids"], strict=True))
    return [[token for line in lines for token in known[line]] for lines in split]


def collate(rows: list[tuple[list[int], list[int], float]], pad: int, device: str) -> Batch:
    longest = max(len(prompt) + len(answer) for prompt, answer, _ in rows)
    free = [longest - len(prompt) - len(answer) for prompt, answer, _ in rows]
    ids = [prompt + answer + [pad] * n for (prompt, answer, _), n in zip(rows, free, strict=True)]
    labels = [[-100] * len(prompt) + answer + [-100] * n for (prompt, answer, _), n in zip(rows, free, strict=True)]
    weights = torch.tensor([weight for _, _, weight in rows])
    table, learnt = (torch.from_numpy(np.array(each)).to(device) for each in (ids, labels))
    return Batch(table, learnt, weights.to(device))


def loss_of(model: LlamaForCausalLM, batch: Batch) -> Tensor:
    """Return the loss of an answer over SCALE; that of its first token is weighed, to give the asked shares.

    It is no mean over the tokens of the batch: first tokens would count more in batches with few traces.
    """
    cuda = batch.ids.device.type == "cuda"
    with torch.autocast(batch.ids.device.type, torch.bfloat16, enabled=cuda):
        logits = model(batch.ids, use_cache=False).logits
    labels = batch.labels[:, 1:]  # (rows, longest - 1)
    each = torch.nn.functional.cross_entropy(
        logits[:, :-1].float().transpose(1, 2), labels, ignore_index=-100, reduction="none"
    )
    learnt = labels != -100
    first = learnt & (learnt.cumsum(1) == 1)
    return torch.where(first, each * batch.weights[:, None], each).sum() / (SCALE * len(labels))


class Muon(torch.optim.Optimizer):
    """Muon in float32. PyTorch's is in bfloat16, which many CPUs multiply 200 times more slowly."""

    def __init__(self, matrices: list[Tensor], lr: float, weight_decay: float) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay, "momentum": 0.95})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for matrix in group["params"]:
                average = self.state[matrix].setdefault("average", torch.zeros_like(matrix))
                average.lerp_(matrix.grad, 1 - group["momentum"])
                update = orthogonal(matrix.grad.lerp(average, group["momentum"]))
                stretch = max(1, matrix.shape[0] / matrix.shape[1]) ** 0.5
                matrix.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-group["lr"] * stretch)


def orthogonal(matrix: Tensor) -> Tensor:
    """Bring the singular values of a matrix near to 1: five Newton-Schulz steps with Muon's usual coefficients."""
    tall = matrix.shape[0] > matrix.shape[1]
    found = matrix.T if tall else matrix
    found = found / found.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = found @ found.T
        found = 3.4445 * found + (-4.7750 * gram + 2.0315 * gram @ gram) @ found
    return found.T if tall else found


def train(model: LlamaForCausalLM, source: Iterator[Batch], args: argparse.Namespace, clock: Clock) -> dict[str, float]:
    """Train until the clock's end; the learning rate follows a cosine."""
    matrices = [p for p in model.model.layers.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if all(p is not matrix for matrix in matrices)]
    optimizers = [
        (torch.optim.Muon if args.device != "cpu" else Muon)(matrices, lr=MUON * args.lr, weight_decay=0.01),
        torch.optim.AdamW(rest, lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    rates = [group["lr"] for group in groups]
    model.train()
    total, tokens = torch.zeros((), device=args.device), 0
    while (spent := clock.spent()) < 1:
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate * min(1, (clock.step + 1) / WARM_UP) * (0.02 + 0.49 * (1 + math.cos(math.pi * spent)))
        batch = next(source)
        loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        model.zero_grad(set_to_none=True)
        total += loss.detach()
        tokens += batch.ids.numel()
        clock.step += 1
        if clock.step % TOLD == 0:
            speed = tokens / clock.cpu()
            print(
                f"update {clock.step}: loss {total.item() / TOLD:.4f}, {speed:,.0f} tokens a second of CPU", flush=True
            )
            total.zero_()
    seconds = {"seconds": time.monotonic() - clock.started, "cpu_seconds": clock.cpu()}
    return {"updates": clock.step, "tokens": tokens, **seconds}


@torch.no_grad()
def sharpen(model: LlamaForCausalLM, factor: float) -> None:
    """Multiply the logits. T is then what T / factor was: the shares that were asked for are those at T = factor."""
    model.model.norm.weight *= factor


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, out: Path, how: dict) -> None:
    model.generation_config = GenerationConfig(
        do_sample=True, temperature=1.0, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.eval().to("cpu", torch.float32).save_pretrained(out)
    tokenizer.save_pretrained(out)
    kept = {name: value for name, value in how.items() if value is not None}
    (out / "training.json").write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
