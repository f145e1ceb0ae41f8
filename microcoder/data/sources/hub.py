"""Rows of a data set on the Hugging Face hub, streamed: `owner/name`, or `owner/name:config`, or `...:config:split`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .faults import SourceError

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(?::[\w.-]*){0,2}")


def hub_rows(ident: str) -> Iterator[tuple[str, Any]]:
    """(`owner/name[split]:row`, row), split after split."""
    name, config, split = (*ident.split(":"), "", "")[:3]
    try:
        import datasets
    except ImportError:
        raise SourceError(f"{ident} is no file here, and hub ids need: pip install 'microcoder[data]'") from None
    try:
        found = datasets.load_dataset(name, config or None, split=split or None, streaming=True)
        parts = found if isinstance(found, dict) else {split: found}
        for part, table in parts.items():
            for number, row in enumerate(table, 1):
                yield f"{name}[{part}]:{number}", row
    except Exception as error:  # of the library, of the network, of the data set's own files
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SourceError(
            f"{ident} is no file or folder here, and the hub could not give it: {reason}. "
            "Download it where there is a network, and give the folder's path"
        ) from None
