"""What the parts of gpu.py share: the model, the prompts, the clock, tables, and figures that outlive a crash."""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from microcoder.config import load
from microcoder.models import ModelSource, resolve
from microcoder.models.weights import end_tokens, load_tokenizer
from microcoder.schema import Problem
from microcoder.training.launch import versions
from microcoder.training.problems import load_problems, with_prompts
from microcoder.training.step import load_model


class Broken(Exception):
    """The GPU does not answer this process any more."""


@dataclass
class Bench:
    args: argparse.Namespace
    device: torch.device
    source: ModelSource
    tokenizer: Any
    problems: list[Problem]
    prompts: list[list[int]]
    figures: dict[str, Any]
    failures: list[str] = field(default_factory=list)

    @classmethod
    @contextmanager
    def open(cls, args: argparse.Namespace) -> Iterator[Bench]:
        device = torch.device(args.device)
        with tempfile.TemporaryDirectory() as folder:
            source = resolve(args.model, progress=print)
            if args.random:
                source = randomly(source, folder)
            tokenizer = load_tokenizer(source)
            responses = max(args.problems_per_step * args.samples, args.sequences, *args.batches)
            config = load(None, [f"data.train={args.problems}", f"data.train_size={responses // args.samples}"])
            loaded, prompts = with_prompts(load_problems(config.data, "train"), tokenizer, config)
            figures: dict[str, Any] = {}
            if args.add and args.json and args.json.exists():
                figures = json.loads(args.json.read_text())
            figures["setting"] = {
                "model": args.model + (", random weights" if args.random else ""),
                "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU",
                "cores": len(os.sched_getaffinity(0)),
                "problems": f"{args.problems}, {loaded.words()}",
                "prompt tokens": f"{min(map(len, prompts))} to {max(map(len, prompts))}",
                **versions(),
            }
            yield cls(args, device, source, tokenizer, loaded.problems, prompts, figures)

    @property
    def cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def sequences(self) -> int:
        """Responses in a step."""
        return int(self.args.problems_per_step * self.args.samples)

    def model(self, dtype: str = "float32") -> Any:
        """The model on the device, to sample from."""
        config = load(None, [f"model.dtype={dtype}", "model.attention=sdpa"])
        return load_model(config, self.source).to(self.device).eval()

    def ends(self, model: Any) -> list[int]:
        return end_tokens(model, self.tokenizer)

    def take(self, count: int) -> list[list[int]]:
        """So many prompts; where there are fewer, from the first again."""
        return [self.prompts[n % len(self.prompts)] for n in range(count)]

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """What fails inside is printed and counted, and the next thing goes on."""
        try:
            yield
        except Broken:
            raise
        except Exception as error:
            self.failures.append(what)
            self.keep("failed", **{what: f"{type(error).__name__}: {error}"})
            print(f"{what}: failed\n{traceback.format_exc()}", file=sys.stderr)
            if not self.healthy():
                raise Broken(f"{what}: the GPU does not answer this process any more") from None
        finally:
            self.free()

    def healthy(self) -> bool:
        try:
            self.wait()
            return float(torch.ones(1, device=self.device)) == 1
        except Exception:
            return False

    def free(self) -> None:
        gc.collect()
        if self.cuda:
            with suppress(Exception):
                torch.cuda.empty_cache()

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def keep(self, part: str, **figures: Any) -> None:
        """Add to the figures of a part, and write them all."""
        self.figures.setdefault(part, {}).update(figures)
        if self.args.json:
            whole = self.args.json.with_name(f".{self.args.json.name}.part")
            whole.write_text(json.dumps(self.figures, indent=2) + "\n")
            whole.replace(self.args.json)

    def seconds(self, call: Callable[[], Any]) -> float:
        self.wait()
        started = time.perf_counter()
        call()
        self.wait()
        return time.perf_counter() - started

    def clock(self, call: Callable[[], Any], warm: int = 1) -> tuple[float, float]:
        """(seconds of a call: the median of 3, or one of 3 s and more; what the `warm` calls before took beyond it)."""
        first = sum(self.seconds(call) for _ in range(warm))
        found = [self.seconds(call)]
        while found[0] < 3 and len(found) < 3:
            found.append(self.seconds(call))
        median = statistics.median(found)
        return median, first - warm * median


def randomly(source: ModelSource, folder: str) -> ModelSource:
    """The same configuration and tokenizer with random weights, as a folder."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source.path), dtype=torch.float32)
    model.save_pretrained(folder)
    load_tokenizer(source).save_pretrained(folder)
    return ModelSource(folder, folder)


def table(rows: Sequence[dict[str, Any]], names: Sequence[str] = ()) -> None:
    names = names or list(dict.fromkeys(name for row in rows for name in row))
    lines = [list(names), *([_text(row.get(name)) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines if rows else []:
        print(" | ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))
    print()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
