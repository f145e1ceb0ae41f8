"""What verl must know in every process: the entry point of the group `verl.plugins`, which `import verl` loads.

verl says nothing of an entry point that fails to load, so `session.check` runs in a Ray worker before training begins.
"""

from __future__ import annotations

from . import cpu  # noqa: F401  # isort: skip  # first: what the others import asks for the platform when it is loaded
from . import agent, cpu_engine, loss, replica, reward  # noqa: F401

COMPLETE = True
