"""scaled_loads.py EXAMPLES FOLDER: loads with eight times the rows make the same simulated steps. Where a setting lists its
values, recorded loads choose none but those."""
import array
import json
import pathlib
import subprocess
import sys

EXAMPLES, FOLDER = map(pathlib.Path, sys.argv[1:])
LAYERS, EXPERTS, NODES, DEVICES = 2, 16, 2, 4
FLAGS = ["-w", "--target=cuda", f"--cluster={EXAMPLES / 'clusters' / 'paper-b.moe'}", "-D", f"L={LAYERS}", "-D", f"E={EXPERTS}",
         f"--set=cluster.nodes={NODES}", f"--set=cluster.devices={DEVICES}", "--set=train.tokens=128Ki"]
HEAD, TIMES = 28, 8


def simulated(loads, *sets):
    done = subprocess.run(["hecatec", *FLAGS, *(f"--set={each}" for each in sets), f"--profile={loads}", "--simulate", "--json", EXAMPLES / "gpt-moe-s.moe"],
                          capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    return report["step_us"], report["movement"]["overlap"], report["movement"]["slots"], report["steps"][-1]["replicas"]


few, many = FOLDER / "few.loads", FOLDER / "many.loads"
subprocess.run(["hecate-replay", f"--synthesize={few}", "--nodes=1", f"--devices={NODES * DEVICES}", f"--experts={EXPERTS}",
                f"--layers={LAYERS}", "--iterations=8", "--microbatches=1", "--rows=2048", "--skew=0.5"], check=True, capture_output=True)
data = few.read_bytes()
rows = array.array("H")
rows.frombytes(data[HEAD:])
many.write_bytes(data[:HEAD] + array.array("H", (TIMES * count for count in rows)).tobytes())
steps = [simulated(loads) for loads in (few, many)]
print(*steps)
assert steps[0] == steps[1] and steps[0][3] > 0, steps
slow = ("cluster.link.inter.bandwidth=1GB/s", "parallel.placement.overlap=auto(3, 5)", "parallel.placement.memory=auto(2, 4)")
_, overlap, slots, _ = simulated(few, *slow)
assert overlap in (3, 5) and slots in (2, 4), (overlap, slots)
