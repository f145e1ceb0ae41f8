"""verl's training process: on CPUs too, with a linear schedule, with adapters that others can load."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from verl.single_controller.base.decorator import Dispatch, register
from verl.utils.device import get_device_name
from verl.workers.engine_workers import ActorRolloutRefWorker


class TrainingProcess(ActorRolloutRefWorker):  # a class called Worker would be taken for verl's own
    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def init_model(self) -> None:
        if get_device_name() == "cpu":  # verl would ask for "cpu:gloo,cpu:gloo", which torch refuses
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
        torch.manual_seed(self.config.actor.data_loader_seed)  # for the first values of an adapter
        super().init_model()
        if self.config.microcoder.schedule == "linear":
            # verl has made a constant one; the object stays, for the checkpoints have it too
            optim, schedule = self.config.actor.optim, self.actor.engine.lr_scheduler
            shape = linear(optim.lr_warmup_steps, optim.total_training_steps)
            schedule.lr_lambdas = [shape] * len(schedule.lr_lambdas)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def save_checkpoint(self, local_path: str, *args: Any, **options: Any) -> None:
        """With an adapter as PEFT has it: verl would write the base's weights under names that nothing loads."""
        super().save_checkpoint(local_path, *args, **options)
        if not self.config.model.lora_rank:
            return
        weights, _ = self.actor.engine.get_per_tensor_param(base_sync_done=True)  # every process gathers its share
        whole = {name: tensor.detach().cpu().contiguous() for name, tensor in weights}
        if torch.distributed.get_rank() == 0:
            folder = Path(local_path) / "huggingface"
            self.actor.engine.module.peft_config["default"].save_pretrained(str(folder))
            save_file(whole, folder / "adapter_model.safetensors", {"format": "pt"})


def linear(warmup: int, steps: int) -> Callable[[int], float]:
    """The share of the learning rate by step: up to 1 in `warmup` steps, then down to 0 at the end."""

    def share(step: int) -> float:
        if step < warmup:
            return step / warmup
        return max(0.0, (steps - step) / max(1, steps - warmup))

    return share
