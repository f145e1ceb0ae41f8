"""Typed settings in three layers: the defaults, a TOML file, then `section.key=value` on the command line.

`sections` holds the settings and their help, `presets` the named algorithms, `layers` how they are put together and
found by name, and the way back: `to_toml` writes a file that `load` accepts. `recipes/` holds the configurations that
come with the package.
"""

from .layers import (
    SETTING,
    ConfigError,
    about,
    configuration,
    expected,
    find,
    load,
    load_as,
    parse_setting,
    settings,
    shipped,
    to_toml,
    toml_value,
)
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
