"""An arm of `step` or `engines` in a process of its own: `microcoder train`, stopped after its last step.

    python -m benchmarks.gpu.ours SPEC.json       # written by `step`

The last checkpoint, which no step counts, is not written, unless the spec says `save`: a gigabyte for every 80 M
parameters. `environment` in the spec is set first, such as that of a rank.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.gpu.apart import Lines
from microcoder.config import configuration
from microcoder.training.launch import launch


class Watch:
    """An observer that writes a line for each step, and stops after so many. `known` goes into the first line."""

    def __init__(self, lines: Lines, steps: int, **known: Any) -> None:
        self.lines, self.steps, self.known, self.begun = lines, steps, known, False

    def phase(self, name: str) -> None:
        if name.startswith("sampling") and not self.begun:
            self.begun = True
            self.lines.write(0, **self.known)

    def step(self, metrics: dict[str, Any]) -> None:
        self.lines.write(**metrics)
        if metrics["step"] >= self.steps:
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        print(text)

    def warn(self, advice: Any) -> None:
        print(advice)


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text())
    os.environ |= spec.get("environment", {})
    config, folder = configuration([*spec["words"], f"train.folder={spec['folder']}", "train.name=run"])
    try:
        last = sys.maxsize if spec.get("save") else config.train.steps
        launch(config, folder, observer=Watch(Lines(spec["lines"]), last))
    except KeyboardInterrupt:
        print("stopped")


if __name__ == "__main__":
    main()
