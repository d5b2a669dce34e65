#!/usr/bin/env python3
"""check_log.py A.jsonl B.jsonl: equal but for times, and the loss falls well below where it began."""
import json
import statistics
import sys

TIMES = ("ms", "tokens_per_s", "watch", "ranks", "run")
FALL = 0.3  # Nats of bytes per token: at random 5.5, by their frequencies alone 3.2.


def read(path):
    with open(path) as lines:
        steps = [json.loads(line) for line in lines]
    return [{key: value for key, value in step.items() if key not in TIMES} for step in steps]


def main():
    a, b = read(sys.argv[1]), read(sys.argv[2])
    if a != b:
        first = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        print(f"the logs differ from line {first + 1} on", file=sys.stderr)
        return 1
    losses = [step["loss"] for step in a]
    begin, end = losses[0], statistics.mean(losses[-3:])
    print(f"loss {begin:.4f} -> {end:.4f} in {len(losses)} steps")
    if len(losses) != 20 or not end < begin - FALL:
        print(f"loss {begin:.4f} -> {end:.4f} in {len(losses)} steps: does not fall", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
