"""Teach nano to answer a second turn, so that repair turns can be tried on it.

    python -m benchmarks.training turns -o nano-turns
    microcoder train demo model.name=nano-turns grpo.turns=2

nano has never seen a second turn: after the judge's message it writes a program for some other problem. This samples
it on training problems, takes those that it both failed and solved, and trains it on (prompt, its failed try, message,
its right try), on the last part only, and as often on (prompt, its right try): without these it unlearns first tries.
No reference is used. It prints the share of failed first tries of held-out problems that a second try repairs, before
and after.
"""

from __future__ import annotations

import argparse
import random
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from microcoder.collect import Repair, Responding, Response
from microcoder.config import load
from microcoder.judge.remote import open_judge
from microcoder.models import resolve
from microcoder.models.weights import end_tokens, load_tokenizer
from microcoder.prompts import feedback
from microcoder.sampling import Sampler, Sampling, encode_next
from microcoder.training.problems import load_problems, with_prompts
from microcoder.training.step import Batch, load_model, measures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder of the taught model")
    parser.add_argument("--problems", type=int, default=400)
    parser.add_argument("--tests", type=int, default=60)
    parser.add_argument("--limit", type=int, default=96, help="tokens in a try")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=3e-4)
    args = parser.parse_args()
    torch.manual_seed(0)
    config = load(None, [f"data.train_size={args.problems}", f"data.test_size={args.tests}"])
    source = resolve("nano")
    tokenizer, model = load_tokenizer(source), load_model(config, source)
    ends = end_tokens(model, tokenizer)
    encode = partial(_encode, tokenizer, ends)
    with open_judge({**config.judge.options(), "queue": 1 << 16}) as judge:

        def sampled(split: Any, samples: int, turns: int) -> list[Response]:
            loaded, prompts = with_prompts(load_problems(config.data, split), tokenizer, config)
            sampler = Sampler(model.eval(), ends)
            first, second = Sampling(1.0, args.limit, samples, seed=1), Sampling(1.0, args.limit, 1, seed=2)
            repair = Repair(turns, feedback, encode, lambda texts, _: sampler(texts, second))
            numbers, decode = list(range(len(prompts))), partial(tokenizer.decode, skip_special_tokens=True)
            ask = partial(sampler, sampling=first)
            return Responding(numbers, loaded.problems, prompts, ask, decode, judge, repair=repair).all()[0]

        print("before:", _words(sampled("test", 4, 2)), flush=True)
        pairs = _pairs(sampled("train", 8, 1), encode)
        print(f"{len(pairs) // 2} pairs of a failed and a right try", flush=True)
        _teach(model.train(), pairs, args.epochs, args.lr)
        print("after:", _words(sampled("test", 4, 2)), flush=True)
    model.save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)


def _encode(tokenizer: Any, ends: list[int], ids: list[int], message: str) -> list[int]:
    return encode_next(tokenizer, ids, message, ends)


def _words(responses: list[Response]) -> str:
    found = measures(Batch(responses), 4, turns=2)
    return ", ".join(f"{name} {found[name]:.3f}" for name in ("accuracy_first", "accuracy", "repaired_share"))


def _pairs(responses: list[Response], encode: Any) -> list[tuple[list[int], list[int]]]:
    """(text, a right try after it) for each failed try of a problem that was also solved: the text up to the second
    try, and the prompt alone.
    """
    draw, found = random.Random(0), []
    for start in range(0, len(responses), 8):
        group = responses[start : start + 8]
        right = [row for row in group if row.accepted]
        for row in group:
            if right and not row.accepted and not row.faulty:
                message = feedback(row.problem, row.verdict)
                found.append(([*row.prompt, *row.ids, *encode(row.ids, message)], draw.choice(right).ids))
                found.append((row.prompt, draw.choice(right).ids))
    draw.shuffle(found)
    return found


def _teach(model: Any, pairs: list[tuple[list[int], list[int]]], epochs: int, lr: float, rows: int = 16) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    for epoch in range(epochs):
        total = 0.0
        for start in range(0, len(pairs), rows):
            part = pairs[start : start + rows]
            ids = pad_sequence([torch.tensor(a + b) for a, b in part], batch_first=True)
            labels = [torch.tensor([-100] * len(a) + b) for a, b in part]
            output = model(ids, labels=pad_sequence(labels, batch_first=True, padding_value=-100))
            output.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            total += float(output.loss.detach()) * len(part)
        print(f"epoch {epoch + 1}: loss {total / max(1, len(pairs)):.3f}", flush=True)
