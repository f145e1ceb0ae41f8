"""Train nano, the model that ships with the package, from nothing but the starter corpus.

    python scripts/train_nano.py build/nano              # minutes on a GPU, hours on a CPU
    cp build/nano/* microcoder/models/nano/              # to ship it

Nano is meant to have room to improve: its corpus holds only the easy part (compositions of one to three operations of
the train split) and the mistakes that `microcoder.starter.corpus` puts into it, some of them more common than the right
code. Nothing of the test split is in it.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time
from pathlib import Path

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from microcoder.prompts import messages
from microcoder.starter import corpus

USER, ASSISTANT, END = "<|user|>", "<|assistant|>", "<|end|>"
TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
# words with their leading space, single digits, an indented new line as one piece, runs of signs
PIECES = r"\n *| ?[A-Za-z_]+|[0-9]| ?[^\sA-Za-z0-9_]+|\s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--samples", type=int, default=600_000, help="problems with answers in the corpus")
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 1, 2, 2, 2, 3, 3, 4], help="drawn from evenly")
    parser.add_argument("--steps", type=int, default=3000, help="updates of 128 sequences of 512 tokens")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--vocabulary", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=160)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    started = time.monotonic()
    with multiprocessing.Pool() as pool:
        chunk = 5000
        texts = [
            pair for part in pool.map(_texts, [(args, n, chunk) for n in range(args.samples // chunk)]) for pair in part
        ]
        tokenizer = train_tokenizer((prompt + answer for prompt, answer in texts[:50_000]), args.vocabulary)
        ids, learn = encode(tokenizer, texts)
    print(f"{len(texts)} samples, {len(ids) / 1e6:.1f} M tokens, {time.monotonic() - started:.0f} s", flush=True)
    model = build(args, tokenizer)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters", flush=True)
    train(model, ids, learn, args)
    save(model, tokenizer, args.out, args)
    print(f"{args.out}: {time.monotonic() - started:.0f} s in all")


def _texts(job: tuple[argparse.Namespace, int, int]) -> list[tuple[str, str]]:
    args, part, count = job
    return [
        (f"{USER}{messages(problem)[0]['content']}{END}{ASSISTANT}", f"{answer}{END}")
        for problem, answer in corpus(count, args.seed * 100_000 + part, args.depths)
    ]


def train_tokenizer(texts, size: int) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|pad|>", END, USER, ASSISTANT]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet)
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=special[0], eos_token=END, additional_special_tokens=special[2:]
    )
    fast.chat_template = TEMPLATE
    fast.clean_up_tokenization_spaces = False
    return fast


def encode(tokenizer, texts) -> tuple[np.ndarray, np.ndarray]:
    """One long row of tokens, and which of them the model learns to write: the answers'."""
    prompts = tokenizer([prompt for prompt, _ in texts], add_special_tokens=False)["input_ids"]
    answers = tokenizer([answer for _, answer in texts], add_special_tokens=False)["input_ids"]
    ids = np.concatenate([np.array(part, np.int32) for pair in zip(prompts, answers, strict=True) for part in pair])
    learn = np.concatenate(
        [np.full(len(part), n, bool) for pair in zip(prompts, answers, strict=True) for n, part in enumerate(pair)]
    )
    return ids, learn


def build(args, tokenizer) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=args.hidden,
        intermediate_size=args.hidden * 8 // 3 // 32 * 32,
        num_hidden_layers=args.layers,
        num_attention_heads=args.hidden // 32,
        num_key_value_heads=1,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config).to(args.device)


def train(model, ids: np.ndarray, learn: np.ndarray, args) -> None:
    length, batch, device = 512, 128, args.device
    rows = len(ids) // length
    ids_t = torch.from_numpy(ids[: rows * length].reshape(rows, length)).long().to(device)
    labels = ids_t.masked_fill(~torch.from_numpy(learn[: rows * length].reshape(rows, length)).to(device), -100)
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=args.lr, betas=(0.9, 0.98)
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min(1, (n + 1) / 200) * (0.05 + 0.475 * (1 + math.cos(math.pi * n / args.steps)))
    )
    model.train()
    total, started = torch.zeros((), device=device), time.monotonic()
    for step in range(1, args.steps + 1):
        pick = torch.randint(rows, (batch,), device=device)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = model(ids_t[pick], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].float().flatten(0, 1), labels[pick][:, 1:].flatten(), ignore_index=-100
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        total += loss.detach()
        if step % 500 == 0:
            print(f"step {step}: loss {total.item() / 500:.4f}, {time.monotonic() - started:.0f} s", flush=True)
            total.zero_()


def save(model, tokenizer, out: Path, args) -> None:
    model.generation_config = GenerationConfig(
        do_sample=True, temperature=1.0, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.eval().to("cpu", torch.bfloat16).save_pretrained(out)
    tokenizer.model_max_length = model.config.max_position_embeddings
    tokenizer.save_pretrained(out)
    how = {k: v for k, v in vars(args).items() if k not in ("out", "device")}
    (out / "training.json").write_text(json.dumps(how, indent=2) + "\n")


if __name__ == "__main__":
    main()
