"""cuda_order.py MODEL TEXT FOLDER: the order of the streams of programs of target cuda. On the emulator, whose kernels
here tell all their accesses (tests/simt/order.h), every two accesses of different streams, or of a stream and the host,
are ordered. Every wait and every event that a line of the program or of the runtime asks for is needed: without it two
accesses would not be ordered, in one of the cases. NEEDLESS says which are not, and why. Where ranks share a device, a
list's streams wait for all that a list may use, not only for these lists' own parts: there only races count.

Environment: as of cuda_ranks.py, with kernels that have the race detector's hooks.
"""

import collections
import glob
import os
import subprocess
import sys

from cuda import EVALUATE, words
from cuda_ranks import compile_for_devices, launch, QUIET

TWO = ["cluster.devices=2"]
FSSDP = [*TWO, "parallel.placement.rematerialize=true", "parallel.placement.reshard=every(1)"]
SHARED = {"SIMT_BUS": "0000:01:00.0", "HECATE_IPC_PIECE": "1"}  # All ranks share one device.
CASES = {  # Ranks, settings. Those behind `ep` are for `all`; those named `shared` share a device.
    "one": (1, []),
    "fssdp": (2, FSSDP),
    "fssdp-shared": (2, FSSDP),
    "ep": (2, [*TWO, "parallel.experts=ep", "parallel.dense=states", "parallel.microbatch=1"]),
    "iterations": (1, ["parallel.microbatch=2"]),
    "smartmoe": (2, [*TWO, "parallel.experts=smartmoe", "parallel.placement.reshard=every(1)"]),
    "nodes": (4, [*TWO, "cluster.nodes=2"]),
    "laer": (2, [*TWO, "parallel.experts=laer"]),
    "bf16": (2, [*TWO, "train.precision=bf16"]),
}
FEW = list(CASES)[: list(CASES).index("ep") + 1]
STEPS = 4
# Innermost calls -> why a lane, or the host, need not wait for the program, nor the program make an event for it.
HOST_WAITED = "the host has just waited for all that the program asked for, and asks for this then"
NEEDLESS = {
    ("submit", "hrt_net_lane_submit", "hrt_experts_move_start", "hrt_experts_materialize", "hrt_experts_prefetch"):
        HOST_WAITED,
    ("submit", "hrt_net_lane_submit", "hrt_experts_move_start", "hrt_experts_calibrate", "forward"): HOST_WAITED,
    ("submit", "hrt_net_lane_submit", "hrt_experts_move_start", "hrt_experts_materialize", "forward"):
        "who sends to this rank has waited for results of rows that it has computed before; where it gets no rows the wait is needed",
    ("wait_for", "hrt_device_join", "move_set", "change_owners"):
        "no access needs it, but the host compares plans next with ranks whose devices may wait for what this one still sends",
    ("wait_for", "hrt_device_join", "evaluate_source"):
        "the host has just waited for the losses of what read these ids; an evaluation need not know that",
    ("wait_for", "join", "hrt_device_read"): "the copy behind it waits itself, but cannot look after other ranks meanwhile",
}


def train(case, ranks, program, text, **environment):
    command = [program, "train", "--data", text, "--steps", str(STEPS), *EVALUATE, "--save", program + ".st"]
    done = subprocess.run(launch(ranks, *command) if ranks > 1 else command, capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, **QUIET, **environment})
    return done.returncode, done.stdout + done.stderr


def functions(program, addresses):
    """Address of a call -> its function."""
    before = [hex(int(address, 16) - 1) for address in addresses]
    said = subprocess.run(["addr2line", "-f", "-e", program, *before], capture_output=True, text=True, check=True).stdout
    return dict(zip(addresses, said.splitlines()[::2]))


def waits_of(program):
    """All waits and events of all ranks: (kind, streams, calls, the two accesses or nothing)."""
    rows = []
    for path in glob.glob(program + ".order.*"):
        with open(path, encoding="utf-8") as file:
            rows += [line.rstrip("\n").split("\t") for line in file]
    name = functions(program, sorted({address for row in rows for address in row[3].split()}))
    for kind, who, whom, calls, needed in rows:
        called = [name[address] for address in calls.split()]
        own = [call for call in called if not call.startswith(("_Z", "cuda"))]
        yield kind, f"{who}<{whom}", tuple(own[: own.index("main")] if "main" in own else own), needed


def check(case, model, text, folder):
    """The waits and events of a case."""
    ranks, settings = CASES[case]
    program = f"{folder}/{case}"
    # Over TCP the kernel reads and writes memory, which is not seen; MPI's shared memory is.
    compile_for_devices([*(word for setting in settings for word in ("--set", setting)), "--ranks=mpi"], model, program)
    for old in glob.glob(program + ".order.*"):
        os.remove(old)
    status, said = train(case, ranks, program, text, SIMT_ORDER=program + ".order", **(SHARED if case.endswith("shared") else {}))
    if status:
        sys.exit(f"{case}: status {status}\n{said}")
    return list(waits_of(program))


def missing_wait_is_found(case, program, text, unordered, **environment):
    """Rows leave before they are copied together, or are used before they have come."""
    status, said = train(case, CASES[case][0], program, text, SIMT_ORDER=program + ".missing", SIMT_UNORDERED=unordered, **environment)
    if status != 71 or "race between streams" not in said:
        sys.exit(f"{case}: nobody sees a missing wait, status {status}\n{said}")


def main(model, text, folder, which="few"):
    os.makedirs(folder, exist_ok=True)
    needed_by = collections.defaultdict(list)
    for case in CASES if which == "all" else FEW:
        for kind, streams, calls, needed in check(case, model, text, folder):
            if not case.endswith("shared"):
                needed_by[kind, streams, calls].append(needed)
    missing_wait_is_found("fssdp", f"{folder}/fssdp", text, "1:0")
    for unordered in ("2:0", "0:1"):
        missing_wait_is_found("fssdp-shared", f"{folder}/fssdp-shared", text, unordered, **SHARED)
    wrong = 0
    for (kind, streams, calls), needed in sorted(needed_by.items()):
        known = streams.endswith("<0") and any(calls[: len(inner)] == inner for inner in NEEDLESS)
        if kind == "read" or known != any(needed):  # A copy's own wait cannot be left out.
            verdict = "without it:" if any(needed) else "needless" if known else "a part of the copy"
        else:
            verdict, wrong = "WRONG: it is needed:" if known else "WRONG: nothing needs it", wrong + 1
        print(kind, streams, f"{sum(map(bool, needed))} of {len(needed)}", " < ".join(calls), verdict, max(needed), sep="\t")
    if wrong or not any(kind == "wait" for kind, _, _ in needed_by):
        sys.exit(f"{wrong} waits and events are not as NEEDLESS says")


if __name__ == "__main__":
    main(*sys.argv[1:])
