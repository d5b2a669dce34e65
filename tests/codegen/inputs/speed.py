# speed.py EXAMPLES: how long hecatec takes, at best of several runs: the machine may be busy.
import subprocess
import sys
import time

examples = sys.argv[1]
big = ["--set", "cluster.nodes=1", "--set", "cluster.devices=1", "--set", "train.precision=fp32"]
limits = [  # Milliseconds.
    (20, ["--compile-to=graph", "-o", "/dev/null", f"{examples}/tiny.moe"]),
    (200, ["-w", "-S", "-o", "/dev/null", *big, f"{examples}/gpt-moe-s.moe"]),
]
plan = subprocess.run(["hecatec", "-###", f"{examples}/tiny.moe"], capture_output=True, text=True)
if "-fsanitize" in plan.stderr:
    print("built with sanitizers: nothing to measure")
    sys.exit(0)

failed = False
for limit, arguments in limits:
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        subprocess.run(["hecatec", *arguments], check=True)
        best = min(best, 1e3 * (time.perf_counter() - start))
    print(f"{best:.1f} ms, at most {limit} ms: hecatec {' '.join(arguments)}")
    failed = failed or best > limit
sys.exit(failed)
