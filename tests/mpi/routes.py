#!/usr/bin/env python3
"""Plans from routes that are known before a step (parallel.placement.forecast = routes), in double precision: all tokens of
an iteration go to two experts, and in each iteration to others. Four ranks have the losses of one, and no rank computes much
more than its share, which plans from the iterations before cannot reach. Without --route such a program does not train.
HECATEC, RANKS, MPI_TESTS and TEXT come from the environment."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

from steps import CLOSE, MODEL, RANKS, STEPS, TOKENS, apart, lines_of, train

POSITIONS, ITERATIONS = 16, 4  # A step is four iterations of 4 sequences.
LAYERS = [(5, 2), (5, 2), (3, 1)]  # Experts and top-k of the model's routers.
FOUR = [f"cluster.devices={RANKS}", "cluster.nodes=1", "parallel.experts=fssdp", "parallel.placement.overlap=4",
        "parallel.placement.memory=4", "parallel.placement.calibrate=false", "parallel.placement.reshard=every(6)"]
KINDS = {  # Settings, and the most rows of a rank over the mean, behind the first step.
    "known": (["parallel.placement.forecast=routes", "parallel.placement.lifetime=iteration"], 1.1),
    "known for a step": (["parallel.placement.forecast=routes", "parallel.placement.lifetime=step"], None),
    "forecast": (["parallel.placement.forecast=window(1)", "parallel.placement.lifetime=iteration"], None)}
UNBALANCED = 1.5  # A forecast for other experts is worse than this.


def write_ids(path):
    """Iteration n chooses expert n, and n + 1, of those of a layer."""
    sequences = STEPS * ITERATIONS * RANKS
    data = b"HROUTE1\n" + struct.pack("<3I", sequences, POSITIONS, len(LAYERS))
    data += b"".join(struct.pack("<2I", *layer) for layer in LAYERS)
    for sequence in range(sequences):
        for experts, topk in LAYERS:
            data += struct.pack(f"<{topk}H", *((sequence // RANKS + k) % experts for k in range(topk))) * POSITIONS
    path.write_bytes(data)


def compiled(name, settings):
    options = [word for key in settings for word in ("--set", key)]
    subprocess.run([os.environ["HECATEC"], "-w", "-O1", os.environ["MPI_TESTS"] + "/small.moe", "-o", name, *options], check=True)


def check(name, settings, most, one):
    compiled(name, [*MODEL, *FOUR, *settings])
    several, said = train(name, RANKS, "--route", "ids:ids")
    if not several or not apart(one, several) <= CLOSE:
        sys.exit(f"{name}: {RANKS} ranks learn {several}, and one {one}\n{said}")
    worst = max(line["devices"]["after"] for line in lines_of(name)[1:])
    print(f"{name}: {apart(one, several):.1e} from one rank; the fullest has {worst:.2f} of the mean")
    if most and worst > most:
        sys.exit(f"{name}: more than {most}")
    return worst


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_ids(pathlib.Path("ids"))
        compiled("one", MODEL)
        one, said = train("one", 1, "--route", "ids:ids")
        if not one:
            sys.exit(said)
        worst = {name: check(name, *kind, one) for name, kind in KINDS.items()}
        if worst["forecast"] < UNBALANCED:
            sys.exit("forecasts are as good: this test would not notice plans from them")
        free, said = train("known", RANKS)
        if free or "parallel.placement.forecast = routes: --route says where tokens go" not in said:
            sys.exit(f"without --route: {said}")


main()
