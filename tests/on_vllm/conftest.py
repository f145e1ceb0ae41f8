"""A real vLLM, built for CPUs, with nano in float32: `make test-vllm`. Without vLLM nothing here is collected."""

from __future__ import annotations

import importlib.util
import os

collect_ignore_glob = [] if importlib.util.find_spec("vllm") else ["test_*.py"]

os.environ |= {  # also of the processes that are started from here
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "OMP_NUM_THREADS": "1",
}
