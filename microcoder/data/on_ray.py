"""`data run --ray`: parts go to the cores of a Ray cluster in place of worker processes here.

Parts are files, so every node must see the folder that the command was typed in and that of the output, under the same
names. A part whose node is lost is made again on another; a part is written whole or not at all.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..judge.remote.ray_cluster import connected
from ..judge.remote.ray_nodes import reason_of
from .pipeline import AHEAD, Cores
from .record import DataError


class ClusterCores(Cores):
    def __init__(self, address: str, out: Path) -> None:
        self._exit = ExitStack()
        self.ray = self._exit.enter_context(connected(address))
        super().__init__(max(1, int(self.ray.cluster_resources().get("CPU", 0))))
        try:
            self._check(out)
        except BaseException:
            self._exit.close()
            raise

    def map(self, function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        work = self.ray.remote(there).options(scheduling_strategy="SPREAD")
        sent, waiting = self.ray.put((os.getcwd(), function)), deque[Any]()
        try:
            for item in items:
                waiting.append(work.remote(sent, item))
                if len(waiting) >= AHEAD * self.count:
                    yield self._result(waiting.popleft())
            while waiting:
                yield self._result(waiting.popleft())
        finally:
            for each in waiting:
                self.ray.cancel(each, force=True)

    def _result(self, ref: Any) -> Any:
        try:
            return self.ray.get(ref)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None  # as it would have come from a process here
        except self.ray.exceptions.RayError as error:
            why = reason_of(error)
            raise DataError(f"a part failed on the Ray cluster: {why} The same command goes on from here") from None

    def _check(self, out: Path) -> None:
        """DataError unless all nodes see the same files."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        out.mkdir(parents=True, exist_ok=True)
        nodes = [node["NodeID"] for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        with tempfile.NamedTemporaryFile(dir=out, prefix=".seen-by-all-") as marker:
            asked = {
                node: self.ray.remote(unseen)
                .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False), num_cpus=0)
                .remote(os.getcwd(), [os.getcwd(), marker.name])
                for node in nodes
            }
            for node, ref in asked.items():
                if missing := self._result(ref):
                    raise DataError(
                        f"node {node[:8]} of the Ray cluster does not see {missing}; output.folder, and the folder in "
                        "which you type this, must be on a disk that all nodes share under the same name (NFS, Lustre)"
                    )

    def __exit__(self, *_: Any) -> None:
        self._exit.close()


def there(sent: tuple[str, Callable[..., Any]], item: Any) -> Any:
    """On a node: names of files may be relative to where the command was typed."""
    folder, function = sent
    os.chdir(folder)
    return function(item)


def unseen(folder: str, paths: list[str]) -> str:
    """The first of the paths that a node does not have."""
    return next((path for path in paths if not Path(folder, path).exists()), "")
