"""Problems lost to weak_tests: how many stay once their tests are forged.

    python -m benchmarks.forge weak mbpp.jsonl leetcode-train-v0.2.0.jsonl.gz humaneval.jsonl.gz ...

Each problem goes through `process` and `verify`, as in `microcoder data run`. Those that are dropped for weak_tests are
forged and verified again. `by tests`: those that would be kept if equivalent mutants were counted as the others are.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.forge.measure import parser
from microcoder.data.collection import layout_of, read
from microcoder.data.forge import forge
from microcoder.data.process import process
from microcoder.data.record import Dropped, Record
from microcoder.data.settings import Source
from microcoder.data.verify import verify
from microcoder.data.verify.programs import DEFAULTS
from microcoder.judge import Judge


def main() -> None:
    options = parser(__doc__)
    options.add_argument("files", nargs="+")
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    results = []
    print(f"{'set':34} {'problems':>8} {'weak':>5} {'kept after':>10} {'%':>6} {'by tests':>8}  lost to")
    with Judge(workers=args.workers, time_limit_s=3.0) as judge:
        for file in args.files:
            weak, total = lost(file, judge, args)
            results.append(forged_again(file, weak, total, judge))
            row = results[-1]
            share = 100 * row["kept"] / max(1, row["weak"])
            name = Path(file).name
            cells = f"{row['weak']:5} {row['kept']:10} {share:6.1f} {row['by_tests']:8}  {row['lost']}"
            print(f"{name:34} {total:8} {cells}", flush=True)
    weak_, kept, tests = (sum(row[name] for row in results) for name in ("weak", "kept", "by_tests"))
    print(f"{'all':34} {'':8} {weak_:5} {kept:10} {100 * kept / max(1, weak_):6.1f} {tests:8}")
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))


def lost(file: str, judge: Judge, args: Any) -> tuple[list[Record], int]:
    """The processed problems of a file that verification drops for weak_tests; kept in the folder, with the count."""
    known = args.folder / f"weak-{Path(file).name}-{args.first or 'all'}.json"
    if known.exists():
        content = json.loads(known.read_text())
        return [Record.from_dict(row) for row in content["weak"]], content["total"]
    source = Source(path=file)
    records = [one for one in read(source, layout_of(source)) if isinstance(one, Record)]
    records = list(processed(iter(records)))[: args.first]
    weak = []
    started = time.monotonic()
    for n, (before, result) in enumerate(zip(records, verify((r.copy() for r in records), judge), strict=True), 1):
        if isinstance(result, tuple) and result[1].reason == "weak_tests":
            weak.append(before)
        if n % 200 == 0:
            print(f"  {known.stem}: {n} of {len(records)} verified, {time.monotonic() - started:.0f} s", flush=True)
    known.write_text(json.dumps({"total": len(records), "weak": [record.to_dict() for record in weak]}))
    return weak, len(records)


def processed(records: Iterator[Record]) -> Iterator[Record]:
    for record in records:
        try:
            yield process(record)
        except Dropped:
            continue


def forged_again(file: str, weak: list[Record], total: int, judge: Judge) -> dict[str, Any]:
    reasons: Counter[str] = Counter()
    details = []
    kept = by_tests = 0
    stronger = list(forge((record.copy() for record in weak), judge))
    for result in verify(iter(stronger), judge):
        if isinstance(result, tuple):
            notes = result[0].problem.extra.get("forge", {})
            reasons[result[1].reason] += 1
            details.append({"id": result[0].problem.id, "loss": str(result[1])[:200], "forge": notes.get("reason", "")})
        else:
            kept += 1
            notes, alike = result.notes, result.notes.get("mutants_equivalent", 0)
            by_tests += notes["mutants_alive"] + alike <= DEFAULTS.alive * (notes["mutants"] + alike)
    counts = {"total": total, "weak": len(weak), "kept": kept, "by_tests": by_tests, "lost": dict(reasons)}
    return {"file": Path(file).name, **counts, "of": details}
