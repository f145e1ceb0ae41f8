"""A Ray cluster of several nodes on this machine: `make test-verl`, whose environment has Ray.

Without Ray nothing here is collected. The folder is not called ray: Python would take it for the package.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("ray") else ["test_*.py"]
SMALL = {"object_store_memory": 100 << 20, "include_dashboard": False}


class Nodes:
    """A head without cores, and nodes of one core each."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL})
        self.address = self.cluster.address
        self.nodes = [self.add() for _ in range(2)]

    def add(self) -> Any:
        return self.cluster.add_node(num_cpus=1, **SMALL)

    def wait_for(self, count: int) -> None:
        """Until the head knows so many nodes, itself among them."""
        end = time.monotonic() + 60
        while len(self.cluster.global_state._live_node_ids()) < count:
            assert time.monotonic() < end, "the node did not join"
            time.sleep(0.2)

    def kill(self, node: Any) -> None:
        """As if its machine were gone: every process of it at once."""
        import psutil

        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        for process in [raylet, *raylet.children(recursive=True)]:
            process.kill()
        self.cluster.remove_node(node, allow_graceful=False)

    def processes(self, word: str, node_id: str = "") -> list[int]:
        """Those of all nodes, or of one, that have the word in their command line."""
        import psutil

        found = []
        for node in self.cluster.list_all_nodes():
            if node_id not in ("", node.node_id):
                continue
            for process in psutil.Process(node.all_processes["raylet"][0].process.pid).children(recursive=True):
                try:
                    if word in " ".join(process.cmdline()):
                        found.append(process.pid)
                except psutil.Error:  # it has just ended
                    pass
        return found


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets want short names
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)  # others' clusters on this machine stay apart
        patch.setenv("RAY_worker_niceness", "0")  # a busy machine would leave the nodes nothing
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        made = Nodes()
        try:
            yield made
        finally:
            made.cluster.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
    os.environ.pop("RAY_ADDRESS", None)
