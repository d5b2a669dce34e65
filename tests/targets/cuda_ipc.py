"""cuda_ipc.py MODEL TEXT FOLDER: ranks of target cuda that share an emulated device move what lies on it through memory that their
processes map from each other (runtime/transport/ipc.c). To the bit they learn what they learn over NCCL's double, in any
schedule of streams, with large and with small pieces. Ranks choose this executor where two share a device, or where they are
asked to. What goes wrong on one rank alone, a lost rank included, ends all with one message, in bounded time; planted faults of
waits, writes and numbers are found.

Environment: as of cuda_ranks.py, whose programs these are.
"""

import os
import re
import subprocess
import sys

from cuda import run, words
from cuda_ranks import QUIET, compile_for_devices, launch, lost_rank_ends_all, saved_by

CASES = {  # Ranks, settings.
    "fssdp": (4, ["cluster.devices=4", "parallel.placement.rematerialize=true", "parallel.placement.reshard=every(1)"]),
    "ep": (2, ["cluster.devices=2", "parallel.experts=ep", "parallel.dense=shard"]),
    "nodes": (4, ["cluster.devices=2", "cluster.nodes=2"]),
    "laer": (2, ["cluster.devices=2", "parallel.experts=laer"]),
    "smartmoe": (2, ["cluster.devices=2", "parallel.experts=smartmoe", "parallel.placement.reshard=every(1)"]),
    "bf16": (2, ["cluster.devices=2", "train.precision=bf16"]),
}
SHARED = {"SIMT_BUS": "0000:01:00.0"}  # One device for all ranks.


def same_bits_as_nccl(case, model, text, folder):
    ranks, settings = CASES[case]
    program = f"{folder}/{case}"
    compile_for_devices([word for setting in settings for word in ("--set", setting)], model, program)
    expected = saved_by(ranks, program, text)
    if isinstance(expected, str):
        sys.exit(f"{case} over NCCL: {expected}")
    ways = {
        "sharing a device": SHARED,
        "in another schedule": {**SHARED, "SIMT_SEED": "7"},
        "in small pieces": {**SHARED, "HECATE_IPC_PIECE": "1", "SIMT_SEED": "3"},
        "as asked for": {"HECATE_TRANSPORT": "ipc"},
    }
    for what, environment in ways.items():
        saved = saved_by(ranks, program, text, **environment)
        if saved != expected:
            sys.exit(f"{case}, {what}: {saved if isinstance(saved, str) else 'other bits than over NCCL'}")
    return ranks, program


def main(model, text, folder):
    os.makedirs(folder, exist_ok=True)
    for case in CASES:
        ranks, program = same_bits_as_nccl(case, model, text, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
