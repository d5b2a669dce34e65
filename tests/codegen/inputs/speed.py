# speed.py EXAMPLES: how much processor time hecatec takes, at best of several runs: the machine may be busy.
import resource
import subprocess
import sys

examples = sys.argv[1]
big = ["--set", "cluster.nodes=1", "--set", "cluster.devices=1", "--set", "train.precision=fp32"]


def spent():
    of = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (of.ru_utime + of.ru_stime)


limits = [  # Milliseconds.
    (20, ["--compile-to=graph", "-o", "/dev/null", f"{examples}/tiny.moe"]),
    (200, ["-w", "-S", "-o", "/dev/null", *big, f"{examples}/gpt-moe-s.moe"]),
    (220, ["-w", "-S", "-o", "/dev/null", f"{examples}/gpt-moe-s.moe"]),  # Searches how experts move.
]
plan = subprocess.run(["hecatec", "-###", f"{examples}/tiny.moe"], capture_output=True, text=True)
if "-fsanitize" in plan.stderr:
    print("built with sanitizers: nothing to measure")
    sys.exit(0)

failed = False
for limit, arguments in limits:
    best = float("inf")
    for _ in range(20):
        start = spent()
        subprocess.run(["hecatec", *arguments], check=True)
        best = min(best, spent() - start)
    print(f"{best:.1f} ms, at most {limit} ms: hecatec {' '.join(arguments)}")
    failed = failed or best > limit
sys.exit(failed)
