"""cuda_waits.py MODEL TEXT FOLDER: in a step on two emulated devices the host waits once for each layer of experts, and
a layer takes a bounded number of its calls: counted with 4 and with 12 of them. All messages, those of rows with gate
weights among them, begin and end at multiples of 16 bytes.

Environment: as of cuda_ranks.py, which this is a part of.
"""

import os
import re
import subprocess
import sys

from cuda import EVALUATE
from cuda_ranks import QUIET, compile_for_devices, launch, waits_of_a_step

RANKS, REPEATS = 2, (2, 6)
CASES = {"ep": ["parallel.experts=ep"], "groups": ["parallel.experts=ep", "train.group=4"]}
CALLS = 150  # A layer has half of an attention, too, forward and backward.


def calls_of(cuda, text, steps):
    """Calls of the host that asks most, in a run of so many steps."""
    command = launch(RANKS, cuda, "train", "--data", text, "--steps", str(steps), *EVALUATE, "--set", "train.tokens=32")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, env={**os.environ, **QUIET, "SIMT_CALLS": "1"})
    crooked = [int(found) for found in re.findall(r"simt: \d+ messages, (\d+) of them not of whole vectors", done.stderr)]
    if crooked != [0] * RANKS:
        sys.exit(f"{cuda}: messages of the ranks that are not of whole vectors: {crooked}")
    return max(int(found) for found in re.findall(r"asked for by (\d+) calls", done.stderr))


def main(model, text, folder):
    os.makedirs(folder, exist_ok=True)
    with open(model) as file:
        lines = file.read()
    for case, settings in CASES.items():
        calls = []
        for repeats in REPEATS:
            cuda = f"{folder}/{case}-{repeats}"
            with open(cuda + ".moe", "w") as file:
                file.write(lines.replace("repeat i < 2 ", f"repeat i < {repeats} "))
            words = [word for setting in ("cluster.devices=2", *settings) for word in ("--set", setting)]
            compile_for_devices(words, cuda + ".moe", cuda)
            waits_of_a_step(RANKS, cuda, text, 2 * repeats)
            calls.append((calls_of(cuda, text, 3) - calls_of(cuda, text, 1)) / 2)
        more = (calls[1] - calls[0]) / (2 * (REPEATS[1] - REPEATS[0]))
        print(f"{case}: {calls[0]:.0f} and {calls[1]:.0f} calls of a step, {more:.1f} a layer")
        if not 0 < more <= CALLS:
            sys.exit(f"{case}: a layer takes {more} calls of the host, more than {CALLS}")


if __name__ == "__main__":
    main(*sys.argv[1:])
