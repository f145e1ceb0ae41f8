"""The core alone: `make test-core`, whose environment has no extra. Where torch is installed nothing is collected."""

import importlib.util

collect_ignore_glob = ["test_*.py"] if importlib.util.find_spec("torch") else []
