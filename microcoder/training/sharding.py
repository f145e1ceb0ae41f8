"""How a model lies on several ranks: replicated, or in shares by FSDP2 or DeepSpeed's ZeRO.

1. Weights stay float32 in every layout, as on a single device; products are made in bfloat16 by autocast. So a layout
   changes where numbers lie, not which numbers they are.
2. Where weights lie in shares, each rank samples from a whole copy of its own (`sampling/shadow.py`).
3. `auto` is replicated where that fits, else FSDP2: `MemoryPlan.fitted`.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from accelerate import DistributedType, FullyShardedDataParallelPlugin, PartialState

from ..config import Config

SHARES = {  # the parts of a training of which a rank holds a share
    "replicated": (),
    "zero1": ("optimizer",),
    "zero2": ("gradients", "optimizer"),
    "zero3": ("weights", "gradients", "optimizer", "reference"),
    "fsdp": ("weights", "gradients", "optimizer", "reference"),
}
NAMES = {"replicated": "replicated (DDP)", "fsdp": "FSDP2"} | {f"zero{n}": f"ZeRO-{n} (DeepSpeed)" for n in (1, 2, 3)}


def words(layout: str, ranks: int) -> str:
    """A layout for readers."""
    if ranks == 1:
        return "one device holds everything"
    shared = [part for part in SHARES[layout] if part != "reference"]
    held = f"each holds 1/{ranks} of {', '.join(shared)}" if shared else "each holds everything"
    copy = ", and samples from a whole copy of the weights" if "weights" in shared else ""
    return f"{NAMES[layout]} over {ranks} devices: {held}{copy}"


def refusal(config: Config, ranks: int) -> str:
    """Why settings do not go with their layout, and what does; empty where they do."""
    layout, optimizer, dtype = config.run.layout, config.train.optimizer, config.model.dtype
    if config.run.engine != "trl" or layout in ("auto", "replicated"):
        return ""
    if ranks == 1 and "WORLD_SIZE" not in os.environ:  # a world of one rank that was asked for is a test of the layout
        return f"run.layout={layout} deals a model out to several processes, and there is one; set run.layout=auto"
    if layout == "fsdp" and optimizer != "adamw":
        return f"train.optimizer={optimizer} keeps blocks that FSDP2 would cut; set train.optimizer=adamw"
    if dtype == "bfloat16":
        return f"model.dtype=bfloat16 is rounded by an optimizer that run.layout={layout} cuts; set model.dtype=auto"
    if layout.startswith("zero") and optimizer != "adamw":
        return f"train.optimizer={optimizer} was not tried with DeepSpeed; set train.optimizer=adamw or run.layout=auto"
    return ""


def lacking(config: Config) -> list[str]:
    """The package that a layout needs and this environment lacks."""
    zero = config.run.engine == "trl" and config.run.layout.startswith("zero")
    if zero and importlib.util.find_spec("deepspeed") is None:
        return [f"the package deepspeed, which run.layout={config.run.layout} needs: pip install 'microcoder[zero]'"]
    return []


def layout_options(layout: str, bf16: bool) -> dict[str, Any]:
    """What TRL, accelerate and DeepSpeed are told of a layout."""
    if layout == "fsdp":
        # gradients are exchanged after each pass: kept whole until the last one they would take 4 bytes a weight
        whole_passes = {"gradient_accumulation_kwargs": {"sync_each_batch": True}}
        return {"fsdp": True, "fsdp_config": {"version": 2}, "accelerator_config": whole_passes}
    if layout.startswith("zero"):
        settings = {
            "zero_optimization": {"stage": int(layout[-1]), "stage3_gather_16bit_weights_on_model_save": True},
            "zero_allow_untested_optimizer": True,  # torch's AdamW, as everywhere
            "torch_autocast": {"enabled": bf16, "dtype": "bfloat16"},
        }
        auto = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping")
        return {"deepspeed": {**settings, **dict.fromkeys(auto, "auto")}}
    return {}


def allow_on_cpu(accelerator: Any, arguments: Any) -> bool:
    """accelerate knows FSDP on GPUs only. Tell it that it is on for CPU ranks too; return whether that was needed."""
    state = accelerator.state
    if not arguments.fsdp or state.distributed_type != DistributedType.MULTI_CPU:
        return False
    for each in (state, PartialState()):
        each.distributed_type = DistributedType.FSDP
    state.fsdp_plugin = FullyShardedDataParallelPlugin(**arguments.fsdp_plugin_args)
    return True
