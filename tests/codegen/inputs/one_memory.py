"""one_memory.py EXAMPLES: a device's memory is the same in every report.

--explain=memory, --explain=plan, --simulate, its JSON and --autotune say the same of a model and target."""
import json
import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(sys.argv[1])
UNIT = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
BYTES = r"([\d.]+) ([KMGT]?i?B)"
SMALL = ("cluster.nodes=2", "cluster.devices=2", "parallel.microbatch=1", "train.tokens=auto", "cluster.device.memory=80GB")
CASES = [("gpt-moe-s", "cpu", ()), ("gpt-moe-s", "cuda", ()), ("gpt-moe-s", "cuda", ("parallel.states=host",)),
         ("gpt-moe-s", "cpu", ("parallel.dense=shard",)), ("gpt-moe-s", "cpu", ("parallel.experts=laer",)),
         ("olmoe-1b-7b", "cpu", ("parallel.dense=states",)), ("bench-medium", "cuda", ("parallel.recompute=all",)),
         ("tiny", "cpu", ("train.optimizer=muon",)), ("tiny", "cuda", ("parallel.experts=ep",))]
TUNED = ("tiny",)


def run(model, target, settings, *options):
    words = [word for key in (*SMALL, *settings) for word in ("--set", key)]
    done = subprocess.run(["hecatec", "-w", f"--target={target}", *words, *options, EXAMPLES / f"{model}.moe"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.args}:\n{done.stderr}")
    return done


def find(pattern, text):
    """The bytes that a text has, and the least and the most that are printed so: half of its last digit off."""
    found = re.search(pattern, text, re.M | re.S)
    if not found:
        return None
    number, unit = found[1], UNIT[found[2]]
    half = 0.5 * 10.0 ** -len(number.partition(".")[2])
    return (float(number) - half) * unit, (float(number) + half) * unit


def agree(what, printed, exact):
    if printed is None or not printed[0] - 1 <= exact <= printed[1] + 1:
        sys.exit(f"{what}: {printed} bytes, and {exact} in JSON")


for case in CASES:
    model, target, settings = case
    memory = json.loads(run(*case, "--simulate", "--json").stdout)["memory"]
    explained = run(*case, "--explain=memory").stdout
    agree(f"{case}, --explain=memory", find(rf"^ *{BYTES}  together", explained), memory["all"])
    for key, text in (("parameters", "parameters"), ("copies", "rounded copies"), ("gradients", "gradients"), ("states", "optimizer states"),
                      ("arena", "arena"), ("replicas", "replicas"), ("muon", "Muon's scratch"), ("scratch", "scratch")):
        if memory[key]:
            agree(f"{case}, {text}", find(rf"^ *{BYTES}  {text}", explained), memory[key])
    agree(f"{case}, --simulate", find(rf"^Memory of a device: {BYTES} of ", run(*case, "--simulate").stdout), memory["all"])
    if "parallel.experts=ep" not in settings:
        room = memory["device"] - memory["all"] + memory["replicas"]
        agree(f"{case}, --explain=plan", find(rf"of\s+{BYTES}\s+that\s+are\s+left", run(*case, "--explain=plan").stdout), room)
    if model in TUNED:
        tuned = run(*case, "--autotune=1", "-S", "-o", "/dev/null").stderr
        agree(f"{case}, --autotune", find(rf"a device remembers {BYTES}", tuned), memory["all"])
