"""The forge over a whole file: problems a second, tests and living mutants before and after, memory.

python -m benchmarks.forge speed leetcode-train-v0.2.0.jsonl.gz --first 200
"""

from __future__ import annotations

import json
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.forge.measure import parser
from benchmarks.forge.weak import processed
from microcoder.data.collection import layout_of, read
from microcoder.data.forge import forge
from microcoder.data.record import Record
from microcoder.data.settings import Source
from microcoder.judge import Judge


def main() -> None:
    options = parser(__doc__)
    options.add_argument("file")
    options.add_argument("--stride", type=int, default=1, help="only every n-th problem")
    args = options.parse_args()
    source = Source(path=args.file)
    records = list(processed(one for one in read(source, layout_of(source)) if isinstance(one, Record)))
    records = records[:: args.stride][: args.first]
    sums: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    started = time.monotonic()
    with Judge(workers=args.workers, time_limit_s=3.0) as judge:
        for n, record in enumerate(forge(iter(records), judge), 1):
            notes = record.problem.extra.get("forge", {})
            reasons[str(notes.get("reason", ""))] += 1
            for when in ("before", "after"):
                for name, value in notes.get(when, {}).items():
                    sums[f"{name} {when}"] += value
            if n % 50 == 0:
                print(f"  {n} of {len(records)}, {n / (time.monotonic() - started):.2f} a second", flush=True)
    seconds = time.monotonic() - started
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    print(f"{len(records)} problems in {seconds:.0f} s: {len(records) / seconds:.2f} a second; {peak:.0f} MB at most")
    for name in ("tests", "mutants", "alive", "adversaries", "adversaries_alive"):
        print(f"  {name:18} {sums[f'{name} before']:8} before {sums[f'{name} after']:8} after")
    print("  not forged: " + json.dumps({reason: n for reason, n in reasons.items() if reason}))
    result: dict[str, Any] = {"problems": len(records), "seconds": seconds, "mb": peak, **sums, "not_forged": reasons}
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1))
