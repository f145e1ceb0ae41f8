"""Typed settings in three layers: the defaults, a TOML file, then `section.key=value` on the command line.

`sections` holds the settings and their help, `presets` the named algorithms, `layers` how they are put together and
found by name, `toml` the way back: `to_toml` writes a file that `load` accepts. `recipes/` holds the configurations
that come with the package.
"""

from .layers import SETTING, ConfigError, about, configuration, find, load, load_as, parse_setting, settings, shipped
from .presets import ABOUT, PRESETS
from .sections import (
    ClusterConfig,
    Config,
    DataConfig,
    GrpoConfig,
    JudgeConfig,
    ModelConfig,
    RolloutConfig,
    RunConfig,
    Section,
    StageConfig,
    TrainConfig,
    usable_cores,
)
from .toml import expected, to_toml, toml_value

__all__ = [
    "ABOUT",
    "PRESETS",
    "SETTING",
    "ClusterConfig",
    "Config",
    "ConfigError",
    "DataConfig",
    "GrpoConfig",
    "JudgeConfig",
    "ModelConfig",
    "RolloutConfig",
    "RunConfig",
    "Section",
    "StageConfig",
    "TrainConfig",
    "about",
    "configuration",
    "expected",
    "find",
    "load",
    "load_as",
    "parse_setting",
    "settings",
    "shipped",
    "to_toml",
    "toml_value",
    "usable_cores",
]
