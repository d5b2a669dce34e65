"""Logs as runs write them (docs/log.md), made up: of any size, the same each time.

    python3 made.py RANKS EXPERTS LAYERS STEPS EVERY > log
"""
import json
import math
import sys

RANKS, EXPERTS, LAYERS = 4, 8, 3


def tokens_of(step, layer, experts):
    """A router that begins with few experts and gets more even, in other layers later."""
    skew = 3 * math.exp(-step / (40 + 8 * layer)) + 0.4
    return [round(1000 * math.exp(-skew * ((expert * 7 + layer * 3) % experts) / experts * 3) * (1 + 0.2 * math.sin(step / 9 + expert))) for expert in range(experts)]


def layer_of(step, layer, ranks, experts):
    tokens = tokens_of(step, layer, experts)
    owner = [expert * ranks // experts for expert in range(experts)]
    before = [sum(n for n, rank in zip(tokens, owner) if rank == r) for r in range(ranks)]
    hot = sorted(range(experts), key=lambda expert: -tokens[expert])[:max(2, experts // 8)]
    replicas = [[expert, (owner[expert] + 1 + k) % ranks] for n, expert in enumerate(hot) for k in range(1 + (n == 0))]
    after = [sum(tokens) // ranks + (r * 5) % 7 for r in range(ranks)]
    return tokens, {"before": before, "after": after, "owner": owner, "replicas": replicas, "waves": 1, "dropped": 0, "exposed_ms": 1.5 + layer % 5,
                    "calibrated": {"weighed": 1, "taken": 1, "gain_ms": 2.0, "price_ms": 1.0}}


def routers_of(tokens):
    shares = [[n / sum(row) for n in row] for row in tokens]
    return {"load": [max(row) * len(row) for row in shares], "dead": [row.count(0) for row in tokens],
            "entropy": [-sum(s * math.log(s) for s in row if s) / math.log(len(row)) for row in shares]}


def line(step, layers=True, size=(RANKS, EXPERTS, LAYERS), every_line=10, run=None):
    ranks, experts, depth = size
    uneven = 1 + 3 * math.exp(-step / 80)
    made = {"step": step, "loss": 2 + 3 * math.exp(-step / 50) + 0.05 * math.sin(step * 12.9898), "cross_entropy": 2.0, "aux": 0.1,
            "grad_norm": 1 + 4 * math.exp(-step / 20) + 0.2 * math.sin(step * 7.7), "lr": 1e-3 * min(1, step / 20),
            "tokens_per_s": 1000.0 * (1 + 0.1 * math.sin(step)), "ms": 100.0 / (1 + 0.1 * math.sin(step)),
            "moved": {"bytes": 1e6, "crossed_bytes": 1e5, "ms": 20.0, "exposed_ms": 4.0, "late_ms": 1.0},
            "watch": {"time": 1.7e9 + step, "left_s": 10.0, "flops": 1e9 * ranks, "memory": 1e8, "waited": 0.25, "slowest": step % ranks},
            "router": {"load": 2 * uneven, "entropy": 1 / uneven, "dead": max(0, 20 - step)},
            "devices": {"before": uneven + 1, "after": 1.01, "replicas": 9, "resharded": 0}}
    if step == 1:
        made["run"] = {"program": "made</script><b>", "ranks": ranks, "nodes": max(ranks // 8, 1), "policy": "fssdp", "precision": "fp32", "device": "host",
                       "instructions": "avx2", "threads": 1, "tokens": 2048, "steps": 100, "peak": 1e10, "from": 0,
                       "sets": {"sparse": {"experts": experts, "layers": depth, "topk": 2}},
                       "settings": {"train.optimizer.lr": "0.001", "train.seed": "1", "parallel.experts": "fssdp"}, **(run or {})}
    all_of = [layer_of(step, layer, ranks, experts) for layer in range(depth)] if layers or step % every_line == 0 else []
    if step % every_line == 0:
        made["routers"] = {"sparse": routers_of([tokens for tokens, _ in all_of])}
    if layers:
        made["tokens_per_expert"] = {"sparse": [tokens for tokens, _ in all_of]}
        made["layers"] = {"sparse": [layer for _, layer in all_of]}
        made["ranks"] = [{"ms": 100.0, "waited_ms": 20.0 + rank % 23, "transfer_ms": 9.0, "exposed_ms": 4.0, "late_ms": 1.0 + rank % 3, "received": 1e6,
                          "memory": 1e8 + 1e6 * (rank % 9)} for rank in range(ranks)]
    return json.dumps(made)


def log(steps, every, size=(RANKS, EXPERTS, LAYERS), run=None):
    return "".join(line(step, every and step % every == 0, size, run=run) + "\n" for step in range(1, steps + 1))


if __name__ == "__main__":
    sys.stdout.write(log(int(sys.argv[4]), int(sys.argv[5]), tuple(map(int, sys.argv[1:4]))))
