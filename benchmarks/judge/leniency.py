"""What leniency costs: right outputs refused and wrong outputs accepted, by policy.

    python -m benchmarks.judge leniency [--json FILE]

Each pair is an expected output and one that a program printed; whether it is right was decided by hand, by asking what
the author of the problem would say. `exact` is LiveCodeBench's rule, `paper` the order-free one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from microcoder.judge.compare import compare_text
from microcoder.schema import POLICIES, Compare

RIGHT = [  # expected, printed
    ("3\n", "3"), ("3\n", "3 \n\n"), ("1 2 3\n", "1 2 3 "), ("1 2 3\n", "1\n2\n3\n"), ("1\n2\n", "1 2\n"),
    ("a\tb\n", "a b\n"), ("x\r\ny\r\n", "x\ny\n"), ("0.5\n", "0.50\n"), ("0.5\n", ".5\n"),
    ("0.333333\n", "0.3333333333\n"), ("1e-07\n", "0.0000001\n"), ("2.0\n", "2\n"), ("2\n", "2.0\n"),
    ("1234567.891\n", "1234567.8910001\n"), ("-0.0\n", "0.0\n"), ("0\n", "-0\n"), ("5\n", "+5\n"),
    ("100000.0\n", "1e5\n"), ("3.14159265\n", "3.141592654\n"), ("YES\n", "Yes\n"), ("No\n", "NO\n"),
    ("true\n", "True\n"), ("False\n", "false\n"), ("YES\nNO\n", "yes\nno\n"), ("Possible\n", "POSSIBLE\n"),
    ("[1, 2, 3]\n", "[1,2,3]\n"), ("[1, 2]\n", "(1, 2)\n"), ('["a", "b"]\n', "['a', 'b']\n"),
    ("[true, null]\n", "[True, None]\n"), ('{"a": 1}\n', "{'a': 1}\n"), ("[0.1, 0.2]\n", "[0.1, 0.20000000001]\n"),
    ("[[1, 2], [3]]\n", "[(1, 2), (3,)]\n"), ("YES 0.5\n", "Yes 0.5000001\n"), ("1 0.25 YES\n", "1\n0.250\nyes\n"),
]  # fmt: skip
WRONG = [
    ("YES\n", "NO\n"), ("yes\n", "no\n"), ("YES\nNO\n", "NO\nYES\n"), ("True\n", "False\n"), ("1 2 3\n", "3 2 1\n"),
    ("1\n2\n3\n", "3\n1\n2\n"), ("1 2\n", "1 2 3\n"), ("1 2 3\n", "1 2\n"), ("\n", "0\n"), ("0\n", "\n"),
    ("3\n", "4\n"), ("100000000\n", "100000001\n"), ("12345678901234567890\n", "12345678901234567891\n"),
    ("1000000\n", "1000000.4\n"), ("0.5\n", "0.51\n"), ("1e-9\n", "nan\n"), ("inf\n", "1e308\n"), ("nan\n", "0\n"),
    ("007\n", "7\n"), ("0010\n", "10\n"), ("1.5\n", "1,5\n"), ("abc\n", "ABC\n"), ("Alice\n", "alice\n"),
    ("a b\n", "ab\n"), ("ab\n", "a b\n"), ("abc\n", "cba\n"), ("[1, 2, 3]\n", "[3, 2, 1]\n"),
    ("[1, 2, 2]\n", "[1, 1, 2]\n"), ("[[1, 2], [3, 4]]\n", "[[3, 4], [1, 2]]\n"), ("[1]\n", "[true]\n"),
    ("[1, 2]\n", "[1, 2\n"), ('["a"]\n', "[a]\n"), ("1_000\n", "1000\n"), ("0x10\n", "16\n"),
    ("2 1\n3 4\n", "1 2\n4 3\n"), ("x y\ny x\n", "y x\nx y\n"), ("YES\n", "YES NO\n"), ("1 1 2\n", "1 2 2\n"),
    ("5\n", "5 5\n"),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    figures = {}
    print(f"{'policy':8} {'right refused':>16} {'wrong accepted':>16}")
    for policy in POLICIES:
        refused = [pair for pair in RIGHT if not accepts(policy, *pair)]
        accepted = [pair for pair in WRONG if accepts(policy, *pair)]
        figures[policy] = {"right": len(RIGHT), "refused": refused, "wrong": len(WRONG), "accepted": accepted}
        print(f"{policy:8} {len(refused):>9} of {len(RIGHT)} {len(accepted):>10} of {len(WRONG)}")
    for policy, found in figures.items():
        for kind in ("refused", "accepted"):
            for expected, printed in found[kind]:
                print(f"  {policy} {kind} {printed!r} for {expected!r}")
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1))


def accepts(policy: str, expected: str, printed: str) -> bool:
    return compare_text(printed.encode(), expected.encode(), policy, Compare()).strategy != ""
