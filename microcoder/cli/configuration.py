"""`[CONFIG] [section.key=value ...]` of `train` and `calibrate`: a file, a name or a run, and what to change in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import Refused

if TYPE_CHECKING:
    from ..config import Config


def settings_of(words: tuple[str, ...]) -> tuple[Config, Path]:
    """The configuration, and the folder of its run."""
    from ..config import SETTING, ConfigError, load

    named = bool(words) and SETTING.fullmatch(words[0]) is None
    changes = words[1:] if named else words
    path = _find(words[0]) if named else None
    try:
        config = load(path, changes)
    except ConfigError as error:
        raise Refused(str(error)) from None
    if named and path == Path(words[0]) / "config.toml":  # a run: it is gone on with where it lies now
        if not any(change.startswith(("train.folder=", "train.name=")) for change in changes):
            return config, path.parent
    return config, Path(config.train.folder) / (config.train.name or (Path(words[0]).stem if named else "run"))


def _find(word: str) -> Path:
    """The file that CONFIG means."""
    from ..config.layers import shipped
    from ..schema import nearest

    path, names = Path(word), shipped()
    if (path / "config.toml").exists():
        return path / "config.toml"
    if path.exists() and not path.is_dir():
        return path
    if word in names:
        return names[word]
    if path.is_dir():
        raise Refused(f"{path} is a folder that holds no run; name a run, a file, or one of {', '.join(names)}")
    if path.suffix == ".toml" or "/" in word:
        raise Refused(f"there is no file {path}; to begin one: microcoder cp demo {path}")
    hint = nearest(word, names) or f"; there are {', '.join(names)}"
    raise Refused(f"{word!r} is neither a file nor a configuration of the package{hint}")
