"""The blocks of the docs run for minutes: `make test-docs` asks for them; without it nothing here is collected."""

import os

collect_ignore_glob = [] if os.environ.get("MICROCODER_DOCS") else ["test_*.py"]
