"""How a model lies on several ranks: replicated, or in shares by FSDP2 or DeepSpeed's ZeRO.

1. Weights stay float32 in every layout, as on a single device; products are made in bfloat16 by autocast. So a layout
   changes where numbers lie, not which numbers they are.
2. Where weights lie in shares, each rank samples from a whole copy of its own (`sampling/shadow.py`).
"""

from __future__ import annotations

from typing import Any

from accelerate import DistributedType, FullyShardedDataParallelPlugin, PartialState

def layout_options(layout: str, bf16: bool) -> dict[str, Any]:
    """What TRL, accelerate and DeepSpeed are told of a layout. Weights stay float32, as on a single device: products are
    made in bfloat16 by autocast.
    """
    if layout == "fsdp":
        # gradients are summed up in shares after each pass: kept whole until the last one they would take 4 bytes a weight
        whole_passes = {"gradient_accumulation_kwargs": {"sync_each_batch": True}}
        return {"fsdp": True, "fsdp_config": {"version": 2}, "accelerator_config": whole_passes}
    if layout.startswith("zero"):
        settings = {
            "zero_optimization": {"stage": int(layout[-1]), "stage3_gather_16bit_weights_on_model_save": True},
            "zero_allow_untested_optimizer": True,  # torch's AdamW, as everywhere
            "torch_autocast": {"enabled": bf16, "dtype": "bfloat16"},
        }
        auto = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping")
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
