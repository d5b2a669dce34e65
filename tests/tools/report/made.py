"""Logs as runs write them, made up."""
import json
import math

RANKS, EXPERTS, LAYERS = 4, 8, 3


def layer_of(step, layer):
    tokens = [100 + 40 * ((expert * 7 + layer + step) % EXPERTS) for expert in range(EXPERTS)]
    owner = [expert * RANKS // EXPERTS for expert in range(EXPERTS)]
    before = [sum(n for n, rank in zip(tokens, owner) if rank == r) for r in range(RANKS)]
    return tokens, {"before": before, "after": [sum(tokens) // RANKS] * RANKS, "owner": owner, "replicas": [[5, 0], [5, 1], [2, 3]],
                    "waves": 1, "dropped": 0, "exposed_ms": 1.5 + layer,
                    "calibrated": {"weighed": 1, "taken": 1, "gain_ms": 2.0, "price_ms": 1.0}}


def line(step, layers=True):
    made = {"step": step, "loss": 2 + 3 * math.exp(-step / 50), "cross_entropy": 2.0, "aux": 0.1, "grad_norm": 1.0, "lr": 1e-3,
            "tokens_per_s": 1000.0, "ms": 100.0, "moved": {"bytes": 1e6, "crossed_bytes": 1e5, "ms": 20.0, "exposed_ms": 4.0, "late_ms": 1.0},
            "watch": {"time": 1.7e9 + step, "left_s": 10.0, "flops": 1e9, "memory": 1e8, "waited": 0.25, "slowest": step % RANKS},
            "devices": {"before": 2.5, "after": 1.01, "replicas": 9, "resharded": 0}}
    if step == 1:
        made["run"] = {"program": "made</script><b>", "ranks": RANKS, "nodes": 2, "policy": "quota", "precision": "fp32", "device": "host",
                       "instructions": "avx2", "threads": 1, "tokens": 2048, "steps": 100, "peak": 1e11, "from": 0}
    if layers:
        all_of = [layer_of(step, layer) for layer in range(LAYERS)]
        made["tokens_per_expert"] = {"sparse": [tokens for tokens, _ in all_of]}
        made["layers"] = {"sparse": [layer for _, layer in all_of]}
        made["ranks"] = [{"ms": 100.0, "waited_ms": 20.0 + rank, "transfer_ms": 9.0, "exposed_ms": 4.0, "late_ms": 1.0, "received": 1e6,
                          "memory": 1e8} for rank in range(RANKS)]
    return json.dumps(made)


def log(steps, every):
    return "".join(line(step, every and step % every == 0) + "\n" for step in range(1, steps + 1))
