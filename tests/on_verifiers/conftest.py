"""The environment for verifiers: `make test-verifiers`. Where verifiers is not installed nothing is collected."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("verifiers") else ["test_*.py"]
