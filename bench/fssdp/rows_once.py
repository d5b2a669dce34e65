"""Rows that cross once to a node, on the emulated cluster: steps and bytes of parallel.rows = direct and node.

    rows_once.py --hecatec BIN [--topk 2 4 8] [--zipf 0.8] [--rate 250] [--steps 5] [--policies ep fssdp]
                 [--out FILE.md]

gpt-small.moe as in predict.py, but a token's experts are drawn by their popularity, independently of each other but for
being different. (--route=zipf spreads a token's experts over the popular and the rare ones, so that fewer are in one
node.) Bytes are those of the shaped links. Needs root; exit code 77 where the testbed cannot be set up.
"""
import argparse
import os
import random
import struct
import sys
import tempfile
from pathlib import Path

import compare
import predict

LAYERS, EXPERTS, POSITIONS, MICROBATCH, DRAWN = 2, 32, 344, 16, 8


def picks(random_, weights, topk):
    """Different experts of each token of a sequence: the largest of weights times noise (Efraimidis and Spirakis)."""
    chosen = []
    for _ in range(POSITIONS):
        key = [random_.random() ** (1 / weight) for weight in weights]
        chosen += sorted(range(EXPERTS), key=key.__getitem__)[-topk:]
    return struct.pack(f"<{len(chosen)}H", *chosen)


def write_ids(path, zipf, topk, sequences):
    """Sequences repeat the first ones, since drawing is slow."""
    random_ = random.Random(1)
    layers = []
    for _ in range(LAYERS):
        order = random_.sample(range(EXPERTS), EXPERTS)
        weights = [1 / (order[e] + 1) ** zipf for e in range(EXPERTS)]
        layers.append([picks(random_, weights, topk) for _ in range(DRAWN)])
    with open(path, "wb") as out:
        out.write(b"HROUTE1\n" + struct.pack("<3I", sequences, POSITIONS, LAYERS) + struct.pack("<2I", EXPERTS, topk) * LAYERS)
        for sequence in range(sequences):
            for drawn in layers:
                out.write(drawn[sequence % DRAWN])


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hecatec", required=True)
    parser.add_argument("--topk", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--zipf", type=float, default=0.8)
    parser.add_argument("--rate", type=int, default=250)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--policies", nargs="+", default=["ep", "fssdp"])
    parser.add_argument("--out")
    options = parser.parse_args()
    options.nodes, options.ranks, options.skip, options.real = 4, 2, 2, False
    options.compile, options.data = compare.QUARTER, "/usr/share/common-licenses/GPL-3"
    options.device = compare.HERE / "v100-quarter.device"
    return options


def results_of(options, topk, work):
    """Measurements of one k: (policy, rows) to numbers."""
    text = (compare.HERE / "gpt-small.moe").read_text(encoding="utf-8")
    options.model = work / "gpt-small.moe"
    options.model.write_text(text.replace("topk = 2", f"topk = {topk}"), encoding="utf-8")
    write_ids(work / "ids", options.zipf, topk, options.steps * options.nodes * options.ranks * MICROBATCH)
    found = {}
    for policy in options.policies:
        for rows in ("direct", "node"):
            found[policy, rows] = predict.try_one(options, policy, f"--set parallel.rows={rows}", f"ids:{work / 'ids'}",
                                                  options.rate, work)
            print(topk, policy, rows, found[policy, rows], file=sys.stderr, flush=True)
    return found


def table(options, all_):
    lines = ["| top-k | policy | direct: measured, simulated ms | node: measured, simulated ms | node / direct: measured, simulated | "
             "MB that a node sends a step |", "|" + " --- |" * 6]
    for topk, found in all_.items():
        for policy in options.policies:
            direct, node = found[policy, "direct"], found[policy, "node"]
            lines.append(f"| {topk} | {policy} | {direct['ms']:.0f}, {direct['simulated']:.0f} | {node['ms']:.0f}, {node['simulated']:.0f} | "
                         f"{node['ms'] / direct['ms']:.3f}, {node['simulated'] / direct['simulated']:.3f} | "
                         f"{direct['sent'] / 1e6:.1f}, {node['sent'] / 1e6:.1f} |")
    return "\n".join(lines) + "\n"


def main():
    options, all_ = arguments(), {}
    with tempfile.TemporaryDirectory() as folder:
        compare.run(compare.CLUSTER, "up", options.nodes, options.ranks, f"{options.rate}mbit")
        try:
            for topk in options.topk:
                all_[topk] = results_of(options, topk, Path(folder))
        finally:
            compare.run(compare.CLUSTER, "down")
    text = f"""# Rows that cross once to a node

bench/fssdp/rows_once.py: gpt-small.moe (32 experts) on {options.nodes} nodes x {options.ranks} ranks of one machine of {os.cpu_count()} cores, {options.rate} Mbit/s a node,
a quarter of the bytes (README.md), popularity by Zipf {options.zipf:g}; medians of {options.steps - options.skip} steps.

{table(options, all_)}"""
    print(text)
    if options.out:
        Path(options.out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
