"""A training process that notes the weights before and the gradients of each update."""

from __future__ import annotations

import ray
from torch.distributed.tensor import DTensor
from verl.single_controller.base.decorator import Dispatch, register

from microcoder.training.verl.trainer import VerlStageTrainer
from microcoder.training.verl.worker import TrainingProcess


def whole(tensor):
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach().clone()


class Spy(TrainingProcess):
    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def init_model(self):
        super().init_model()
        engine, self.updates = self.actor.engine, []
        step = engine.optimizer_step

        def noting():
            named = dict(engine.module.named_parameters())
            weights = {name: whole(value) for name, value in named.items()}
            self.updates.append((weights, {name: whole(value.grad) for name, value in named.items()}))
            return step()

        engine.optimizer_step = noting

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def noted(self):
        return self.updates


class SpiedTrainer(VerlStageTrainer):
    def _init_resource_pool_mgr(self):
        super()._init_resource_pool_mgr()
        self.role_worker_mapping = dict.fromkeys(self.role_worker_mapping, ray.remote(Spy))
