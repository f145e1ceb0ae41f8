"""The judge as a reward for other people's trainers.

    from microcoder.rewards import CodeReward

    trainer = GRPOTrainer(model, reward_funcs=CodeReward(), train_dataset=dataset)    # TRL
    reward = CodeReward("problems.parquet")
    reward(["```python\\nprint(1)\\n```"], id=["a"])                                    # [1.0]

`reward` holds CodeReward, `env` an environment with reset and step, `verl`, `verifiers`, `openenv` and `livecodebench`
what those packages ask for, `hooks` what OpenRLHF, NeMo-RL, SkyRL and rLLM do, `scorers` lm-evaluation-harness and
inspect_ai. All of them use the judges of `shared`. Importing this package loads no trainer.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .env import CodeEnv
    from .livecodebench import codegen_metrics
    from .reward import AsyncCodeReward, CodeReward
    from .verifiers import verifiers_env

__all__ = ["AsyncCodeReward", "CodeEnv", "CodeReward", "codegen_metrics", "verifiers_env"]

_MODULES = {"CodeEnv": "env", "codegen_metrics": "livecodebench", "verifiers_env": "verifiers"}


def __getattr__(name: str) -> Any:
    """Import names on first use: `verifiers_env` needs a package of its own."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES.get(name, 'reward')}", __name__), name)
