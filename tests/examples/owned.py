"""owned.py EXAMPLES: on 8 x 8 ranks each holds what it owns, as --explain=memory sums it, on both targets: of parameters, copies
in bf16, gradients and states at most 1.1 times the ideal, all of them over the number of ranks. Room for a chunk on its way
to a new owner is in it. GPUs take whole pages of 2 MiB, and small chunks of experts less than fill them.

Environment: HECATEC.
"""
import os
import pathlib
import re
import subprocess
import sys

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
HELD = ("parameters", "rounded copies", "gradients", "optimizer states")
SETTINGS = ("train.precision=bf16", "cluster.nodes=8", "cluster.devices=8", "parallel.experts=fssdp", "parallel.dense=shard",
            "parallel.microbatch=1", "parallel.recompute=all", "parallel.logits=512")
MOST = {("gpt-moe-s", "cuda"): 1.2}  # Chunks of 9 MB, and copies of 4.7.


def number(text):
    value, unit = text.split()
    return float(value) * UNITS[unit]


def ratio(model, target):
    """Bytes that a rank holds, over the ideal."""
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    done = subprocess.run([os.environ["HECATEC"], "-w", "--explain=memory", f"--target={target}", *words, model], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        sys.exit(f"{model}, {target}: {done.stderr}")
    sums = done.stdout.split("\nideal: ")
    held = [number(found) for found, name in re.findall(r"^ +([\d.]+ (?:[KMGT]i)?B)  (.*?)  ", sums[0], re.M) if name in HELD]
    if len(held) != len(HELD):
        sys.exit(f"{model}, {target}: {len(held)} of {len(HELD)} sums are there:\n{sums[0]}")
    return sum(held) / number(re.match(r"([\d.]+ (?:[KMGT]i)?B)", sums[1])[1])


def main(examples):
    models = [path for path in sorted(pathlib.Path(examples).glob("*.moe")) if "cluster {" in path.read_text()]
    if len(models) < 11:
        sys.exit(f"{examples} has {len(models)} models with a cluster")
    for model in models:
        for target in ("cuda", "cpu"):
            found, most = ratio(model, target), MOST.get((model.stem, target), 1.1)
            print(f"{model.stem}, {target}: {found:.3f}")
            if found > most:
                sys.exit(f"{model.stem}, {target}: a rank holds {found:.3f} times what it owns, more than {most}")


if __name__ == "__main__":
    main(*sys.argv[1:])
