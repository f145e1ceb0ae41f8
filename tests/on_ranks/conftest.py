"""Real ranks take minutes of CPU time together: `make test-ranks` runs them, `make test` does not."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("MICROCODER_RANKS") else ["test_*.py"]
