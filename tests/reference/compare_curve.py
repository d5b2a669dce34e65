#!/usr/bin/env python3
"""compare_curve.py STORED.json LOG.jsonl PRECISION: the log of a run against PyTorch's numbers.
compare_curve.py --seed STORED.json: prints the seed of the stored run.

Bounds, relative: fp64 1e-12 at the first step, then 1e-9: rounding, 1e-15, as Adam magnifies it. fp32 2e-5,
the bound of docs/fssdp.md for fifty steps that route alike: the stored run has no choice between
experts nearer than 1e-5. bf16 1e-2: half a unit in its last place is 2e-3, and some tokens go elsewhere."""
import json
import math
import sys

BOUND = {"fp64": 1e-9, "fp32": 2e-5, "bf16": 1e-2}
FIRST = {**BOUND, "fp64": 1e-12}  # The first step, which no update precedes.


def compare(stored, log, precision):
    """Returns the failures and the worst relative error of each number."""
    failures, worst = [], {}
    if len(log) != len(stored):
        failures.append(f"{len(log)} steps logged, {len(stored)} stored")
    for step, (want, got) in enumerate(zip(stored, log), 1):
        for key, value in want.items():
            error = abs(got[key] - value) / abs(value)
            worst[key] = max(worst.get(key, 0), error)
            if not error <= (FIRST if step == 1 else BOUND)[precision] or not math.isfinite(error):
                failures.append(f"step {step}: {key} = {got[key]!r}, want {value!r}")
    return failures, worst


def main():
    if sys.argv[1] == "--seed":
        print(json.load(open(sys.argv[2]))["seed"])
        return 0
    stored, log, precision = sys.argv[1:]
    with open(log) as lines:
        steps = [json.loads(line) for line in lines]
    failures, worst = compare(json.load(open(stored))["steps"], steps, precision)
    print("worst relative errors:", ", ".join(f"{key} {value:.2g}" for key, value in worst.items()))
    for failure in failures[:20]:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
