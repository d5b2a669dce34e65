"""perturbed.py EXAMPLES FOLDER: --autotune on loads that are hardly different makes choices that are hardly different:
each choice's speed on each of the loads is within 1 % of the best one's there."""
import array
import json
import math
import pathlib
import random
import struct
import subprocess
import sys

EXAMPLES, FOLDER = map(pathlib.Path, sys.argv[1:])
MODEL = EXAMPLES / "gpt-moe-s.moe"
LAYERS, EXPERTS, NODES, DEVICES = 4, 16, 2, 4
FLAGS = ["-w", "--target=cuda", f"--cluster={EXAMPLES / 'clusters' / 'paper-b.moe'}", "-D", f"L={LAYERS}", "-D", f"E={EXPERTS}"]
SETS = [f"cluster.nodes={NODES}", f"cluster.devices={DEVICES}", "train.tokens=128Ki"]
SEEDS = 4
SECONDS = 200  # More than it takes: the clock of a busy machine is not to choose.
PERTURBED = 0.05  # Standard deviation of a count's logarithm.
NEAR = 0.01


def run(*words):
    done = subprocess.run(["hecatec", *FLAGS, *(word for key in SETS for word in ("--set", key)), *map(str, words), MODEL],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def perturb(data, seed):
    """The same loads, each count times a factor near 1."""
    head, rows = data[:28], array.array("H")
    rows.frombytes(data[28:])
    draw = random.Random(seed)
    return head + array.array("H", (min(65535, round(n * math.exp(draw.gauss(0, PERTURBED)))) for n in rows)).tobytes()


base = FOLDER / "base.loads"
subprocess.run(["hecate-replay", f"--synthesize={base}", "--nodes=1", f"--devices={NODES * DEVICES}", f"--experts={EXPERTS}",
                f"--layers={LAYERS}", "--iterations=24", "--microbatches=1", "--rows=8192", "--skew=0.8", "--drift=0.0135",
                "--bias=0.06"], check=True, capture_output=True)
assert struct.unpack("<5I", base.read_bytes()[8:28]) == (24, LAYERS, NODES * DEVICES, 1, EXPERTS)
loads, plans = [], []
for seed in range(SEEDS):
    loads.append(FOLDER / f"{seed}.loads")
    plans.append(FOLDER / f"{seed}.plan")
    loads[-1].write_bytes(perturb(base.read_bytes(), seed))
    run(f"--autotune={SECONDS}", f"--profile={loads[-1]}", f"--emit-plan={plans[-1]}", "-S", "-o", "/dev/null")
for on in loads:
    speed = [json.loads(run("--simulate", "--json", f"--profile={on}", f"--plan={plan}"))["tokens_per_second"] for plan in plans]
    print(on.name, *(f"{100 * (max(speed) / each - 1):.2f} %" for each in speed))
    assert min(speed) > (1 - NEAR) * max(speed), (on.name, speed, [json.loads(plan.read_text())["settings"] for plan in plans])
