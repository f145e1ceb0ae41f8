"""Does training on selected hard problems help? nano on starter problems, on a CPU: hard, all and easier, same size.

    python -m benchmarks.selection data   --out DIR
    python -m benchmarks.selection train  --out DIR --seeds 0 1 2
    python -m benchmarks.selection report --out DIR --json FILE --plot docs/selection.svg

Compared are training sets of equal size out of one pool, chosen by the pipeline from nano's own chances of success
(`data.py`). Everything else is equal: the demo's settings with 8 problems a step, and the same seeds for
every arm. The held-out problems are of the test split, 30 of each depth from 2 to 6 (compositions that no training
sees), and the pipeline drops from the pool what resembles them.

Decided before the first run. The measure is accuracy on the held-out problems after the last step. An arm differs from
`all` if the 95% interval of the difference excludes 0, by the paired bootstrap over problems and seeds
(`means.gain`: each draw takes the same problems and seeds of both arms). The rest (curves, accuracy by depth, hard
against easier, the share of groups with signal, D, lengths) is shown to understand the result, and tests nothing.

`train` can be stopped and typed again: what is finished is kept, and a run that was begun goes on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.selection.data import ARMS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    data = commands.add_parser("data", help="the training sets and the held-out problems")
    data.add_argument("--pool", type=int, default=3000, help="problems to select from")
    data.add_argument("--measured", type=int, default=400, help="of these, problems that nano attempts")
    data.add_argument("--size", type=int, default=400, help="problems in each training set")
    data.add_argument("--test", type=int, default=150, help="held-out problems")
    data.add_argument("--seed", type=int, default=1, help="of the problems")

    training = commands.add_parser("train", help="every arm with every seed, and their scores")
    training.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    training.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    training.add_argument("--steps", type=int, default=16)
    training.add_argument("--tries", type=int, default=2, help="of each held-out problem at each checkpoint")

    reporting = commands.add_parser("report", help="tables, and curves over the steps")
    reporting.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    reporting.add_argument("--json", type=Path, metavar="FILE")
    reporting.add_argument("--plot", type=Path, metavar="FILE.svg")

    for command in (data, training, reporting):
        command.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    args.out = args.out.resolve()
    if args.command == "data":
        from benchmarks.selection.data import make

        make(args)
    elif args.command == "train":
        from benchmarks.selection.train import train

        train(args)
    else:
        from benchmarks.selection.report import report

        report(args)
