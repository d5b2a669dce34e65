"""policy.py EXAMPLES FOLDER: `parallel.experts = auto` takes the fastest placement, the simplest of those within 1 %.

The program is that of the placement it names, its times are those of --simulate, and a plan repeats the choice."""
import json
import pathlib
import re
import subprocess
import sys

EXAMPLES, FOLDER = map(pathlib.Path, sys.argv[1:])
MODEL = EXAMPLES / "tiny.moe"
SIMPLEST_FIRST = ["ep", "smartmoe", "replicate", "edp", "fsdp", "llep", "laer", "fssdp"]
US = {"us": 1, "ms": 1e3, "s": 1e6}
# Slow links, where experts had better stay; fast ones with much computation.
CLUSTERS = [["cluster.link.inter.bandwidth=0.1GB/s"], ["cluster.link.inter.bandwidth=400GB/s", "cluster.device.flops=1TFLOPS"]]


def run(*words, sets=()):
    every = ["cluster.nodes=2", "cluster.devices=2", "cluster.device.memory=8GB", *sets]
    done = subprocess.run(["hecatec", *words, *(word for key in every for word in ("--set", key)), MODEL], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def c_of(*words, sets=()):
    """Without the first lines, which name the command, and the settings of the cluster."""
    return run("-w", "-S", "-o", "-", *words, sets=sets).stdout.split("\n#include", 1)[1]


chosen = []
for links in CLUSTERS:
    said = run("-S", "-o", "/dev/null", sets=[*links, "parallel.experts=auto"]).stderr
    name, steps = re.search(r"parallel\.experts = (\w+).*; a step takes with (.*)", said).groups()
    us = {who: float(number) * US[unit] for who, number, unit in re.findall(r"(\w+) ([\d.]+) ([mu]?s)\b", steps)}
    assert list(us) == [who for who in SIMPLEST_FIRST if who in us] and len(us) >= 5, said
    least = min(us.values())
    assert us[name] <= 1.015 * least, said # Steps are printed with three digits.
    assert all(us[who] > 1.005 * least for who in list(us)[:list(us).index(name)]), said
    assert ("moving experts gains nothing" in said) == (name == "ep"), said
    for who in ("ep", "fssdp"):
        report = json.loads(run("-w", "--simulate", "--json", sets=[*links, f"parallel.experts={who}"]).stdout)
        assert abs(report["step_us"] / us[who] - 1) < 0.01, (who, report["step_us"], said)
    auto = c_of(sets=[*links, "parallel.experts=auto"])
    assert auto == c_of(sets=[*links, f"parallel.experts={name}"]), links
    chosen.append(name)
print(chosen)

# One process: nothing to choose.
one = subprocess.run(["hecatec", "-fsyntax-only", "--set", "cluster.nodes=1", "--set", "cluster.devices=1", "--set", "parallel.experts=auto", MODEL],
                     capture_output=True, text=True)
assert one.returncode == 0 and "a step takes" not in one.stderr, one
