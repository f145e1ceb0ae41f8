"""verl on this machine's CPU, with real Ray and TransferQueue: `make test-verl`, which has an environment with verl.

Without verl nothing here is collected. The folder is not called verl: Python would take it for the package.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

HERE = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
sys.path[:0] = HERE
collect_ignore_glob = [] if importlib.util.find_spec("verl") else ["test_*.py"]

if not collect_ignore_glob:
    from verl_runs import settings

    from microcoder.training.verl.session import environment

    os.environ.update(environment(settings()))  # before anything imports verl
    os.environ["PYTHONPATH"] = os.pathsep.join(HERE)  # Ray's workers need spying.py
