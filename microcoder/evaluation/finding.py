"""The files of a data set: below `--data`, or from the hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from .records import BenchError

Download = Callable[[str, str], str]  # data set on the hub, file in it -> where the file is now


def hub_file(repo: str, name: str) -> str:
    """From the hub, or from its cache on this machine."""
    import huggingface_hub

    return huggingface_hub.hf_hub_download(repo, name, repo_type="dataset")


def find_files(repo: str, names: Sequence[str], data: str | None, download: Download = hub_file) -> list[Path]:
    """Where each of the files is; all of them, or BenchError. A folder may have them with or without their folders."""
    if data is None:
        return [_downloaded(repo, name, names, download) for name in names]
    place = Path(data)
    if place.is_file():
        if len(names) > 1:
            raise BenchError(
                f"--data {data} is one file, but {len(names)} are asked for ({', '.join(names)}); "
                "name the folder that they are in"
            )
        return [place]
    if not place.is_dir():
        raise BenchError(f"--data {data}: there is no such file or folder; {_directions(repo, names)}")
    found = {name: next(filter(Path.is_file, (place / name, place / Path(name).name)), None) for name in names}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise BenchError(f"--data {data}: {', '.join(missing)} not in that folder; {_directions(repo, missing)}")
    return [path for path in found.values() if path is not None]


def _downloaded(repo: str, name: str, names: Sequence[str], download: Download) -> Path:
    try:
        return Path(download(repo, name))
    except Exception as error:  # of the network, of the library, of the disk
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise BenchError(f"the hub could not give {repo}/{name}: {reason[:200]}; {_directions(repo, names)}") from None


def _directions(repo: str, names: Sequence[str]) -> str:
    return (
        f"download {', '.join(names)} from https://huggingface.co/datasets/{repo}/tree/main "
        f"where there is a network, and name the {'file' if len(names) == 1 else 'folder'} with --data"
    )
