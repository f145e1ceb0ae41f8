"""verl's FSDP2 engine under a device that it is not registered for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

from .cpu import NAME


@EngineRegistry.register(model_type="language_model", backend="fsdp2", device=NAME)
class CpuEngine(FSDPEngineWithLMHead):
    engine_config: Any

    def _build_fsdp_module(self, module: Any) -> Any:
        """A reference is not moved to main memory, where it lies already: verl would pin it, which takes a GPU."""
        config = self.engine_config
        self.engine_config = replace(config, forward_only=False)
        try:
            return super()._build_fsdp_module(module)
        finally:
            self.engine_config = config
