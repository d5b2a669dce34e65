"""cuda_ipc.py MODEL TEXT FOLDER: ranks of target cuda that share an emulated device move what lies on it through memory that their
processes map from each other (runtime/net/ipc.c). To the bit they learn what they learn over NCCL's double, in any
schedule of streams, with large and with small pieces. Ranks choose this executor where two share a device, or where they are
asked to. A fault on one rank alone, a lost rank included, ends all with one message, in bounded time; planted faults of
waits, writes and numbers are found: streams of several processes are compared as those of one are (tests/simt/peers.h).

Environment: as of cuda_ranks.py, whose programs these are.
"""

import os
import re
import subprocess
import sys

from cuda import run
from cuda_ranks import QUIET, compile_for_devices, launch, lost_rank_ends_all, saved_by

CASES = {  # Ranks, settings. Those behind `fssdp` in small pieces only.
    "ep": (2, ["cluster.devices=2", "parallel.experts=ep", "parallel.dense=states"]),
    "fssdp": (4, ["cluster.devices=4", "parallel.placement.rematerialize=true", "parallel.placement.reshard=every(1)"]),
    "nodes": (4, ["cluster.devices=2", "cluster.nodes=2"]),
    "smartmoe": (2, ["cluster.devices=2", "parallel.experts=smartmoe", "parallel.placement.reshard=every(1)"]),
    "bf16": (2, ["cluster.devices=2", "train.precision=bf16"]),
    "narrow": (4, ["cluster.devices=2", "cluster.nodes=2", "parallel.placement.lifetime=step", "parallel.microbatch=1", "train.tokens=64",
                   "parallel.gradients=bf16"]),
}
SHARED = {"SIMT_BUS": "0000:01:00.0"}  # One device for all ranks.
SMALL = {**SHARED, "HECATE_IPC_PIECE": "1"}
# Faults on rank 1 of two alone -> exit status of the job, and the message. 9: the rank that dies.
FAULTS = {
    "SIMT_MEMORY=33000": (1, r"error: .* 48 MiB for messages cannot be taken \(HECATE_IPC_PIECE=KIB, now 2048\)"),
    "SIMT_IPC=old:0": (1, r"error: ranks cannot share memory of GPUs \(HECATE_TRANSPORT=ipc\): the driver has no cuStreamWaitValue32"),
    "SIMT_IPC=handle:0": (1, "error: rank 1: CUDA IPC, a handle of its memory: "),
    "SIMT_IPC=open:0": (1, "error: rank 1: CUDA IPC, mapping the memory of rank 0: "),
    "SIMT_IPC=register:0": (1, "error: rank 1: CUDA IPC, memory of the machine: "),
    "SIMT_IPC=number:51": (1, "error: rank 0: CUDA IPC, a message: rank 0 receives 768 bytes, rank 1 sends 769 bytes"),
    "SIMT_IPC=unwritten:51": (1, "error: rank [01]: CUDA IPC, a message: this rank's GPU has waited for rank [01] for 3 s"),
    "SIMT_IPC=die:51": (9, "rank 1 has died|exited on signal|[Ee]xit code: +9|is lost"),
    "HECATE_TRANSPORT=mpi": (2, "error: HECATE_TRANSPORT is 'mpi'; it takes nccl or ipc"),
    "HECATE_TRANSPORT=nccl": (2, "error: HECATE_TRANSPORT differs between ranks"),
    "HECATE_IPC_PIECE=0": (2, "error: HECATE_IPC_PIECE is '0'; it takes KiB of a piece, 1 to 2048"),
    "HECATE_IPC_PIECE=64": (1, "error: rank 0: CUDA IPC, its start: HECATE_IPC_PIECE of ranks 0 and 1 differ"),
    "CUDA_DEVICE_MAX_CONNECTIONS=1": (2, "error: CUDA_DEVICE_MAX_CONNECTIONS is 1: .* need 13 queues"),
}
# Planted: a missing wait of a receive is a race between processes, in any schedule. A missing wait of a send, or a
# token that is written before its copy is made: a race, too, or the data in the place is gone before it is taken.
# The first 22 sends find places of which nothing has to be taken.
RACE = "simt: race between processes on .*: (read|written) by stream"
PLANTED = {"unready:20": RACE, "unready:50": RACE, "unready:all": RACE,
           **{fault: RACE + "|waited for rank" for fault in ("untaken:30", "untaken:50", "early:50", "early:51")}}


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
        "in small pieces": {**SMALL, "SIMT_SEED": "3"},
    }
    if case not in ("ep", "fssdp"):
        ways = {"in small pieces": ways["in small pieces"]}
    if case == "ep":  # Memory that is protected page by page takes long where there is much of it.
        ways["as asked for"] = {"HECATE_TRANSPORT": "ipc", "HECATE_IPC_PIECE": "1", "SIMT_PROTECT": "1"}
    for what, environment in ways.items():
        saved = saved_by(ranks, program, text, **environment)
        if saved != expected:
            sys.exit(f"{case}, {what}: {saved if isinstance(saved, str) else 'other bits than over NCCL'}")
    return ranks, program


def on_rank_1(program, text, variable, *arguments, **environment):
    """Status and output of two ranks, with a variable that only the second one has."""
    train_it = [program, "train", "--data", text, *arguments]
    command = [*launch(1, *train_it), ":", "-n", "1", "-x", variable, *train_it]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env={**os.environ, **QUIET, **environment})
    return done.returncode, done.stdout + done.stderr


def faults_end_all(program, text):
    for fault, (status, message) in FAULTS.items():
        patience = "3" if message.endswith(" for 3 s") else "30"  # A busy machine makes a rank wait, too.
        ended, said = on_rank_1(program, text, fault, "--steps", "20", HECATE_COMM_PATIENCE=patience, **SHARED)
        if ended != status or not re.search(message, said) or len(re.findall(r"^\S+: error: ", said, re.M)) > 1:
            sys.exit(f"{fault} of rank 1: status {ended}\n{said}")


def planted_faults_are_found(program, text):
    for fault, message in PLANTED.items():
        for seed in ("0", "1"):
            status, said = on_rank_1(program, text, f"SIMT_IPC={fault}", "--steps", "3", SIMT_SEED=seed, HECATE_COMM_PATIENCE="5", **SMALL)
            if status == 0 or not re.search(message, said):
                sys.exit(f"SIMT_IPC={fault} of rank 1, seed {seed}: status {status}\n{said}")


def names_itself(ranks, program):
    said = run(*launch(ranks, program, "info"), **QUIET, HECATE_TRANSPORT="ipc")
    if "  messages       between devices: CUDA IPC\n" not in said:
        sys.exit(f"info does not name what was asked for:\n{said}")


def main(model, text, folder):
    os.makedirs(folder, exist_ok=True)
    for case in CASES:
        ranks, program = same_bits_as_nccl(case, model, text, folder)
        if case == "ep":
            names_itself(ranks, program)
            faults_end_all(program, text)
            planted_faults_are_found(program, text)
        if case == "fssdp":
            os.environ.update(SHARED)
            lost_rank_ends_all(ranks, program, text)
            os.environ.pop("SIMT_BUS")


if __name__ == "__main__":
    main(*sys.argv[1:])
