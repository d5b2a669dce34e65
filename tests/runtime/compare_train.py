#!/usr/bin/env python3
"""compare_train.py ROOT: bench/train/compare.py gives every program the same time, not the same number of steps."""
import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "bench/train"))
import compare  # noqa: E402

asked = []


def program(ms):
    def run(options, _row):
        asked.append((options.steps, options.warm))
        return {"ms": ms}
    return run


def counts(ms):
    asked.clear()
    counted = compare.count_steps(argparse.Namespace(seconds=10.0, warm=3), program(ms), {})
    return counted.steps, counted.warm


assert counts(100) == (100, 3), counts(100)
assert asked == [(1, 0), (3, 1)], asked
assert counts(4000) == (2, 3)
assert counts(60000) == (1, 0)  # A hundred times slower: one step, which is measured, too.
assert asked == [(1, 0)], asked
