"""announced.py EXAMPLES FOLDER: --explain=memory and the program's info announce the same memory, to 1 %.

One rank and several, with whole dense parameters and in parts."""
import pathlib
import re
import subprocess
import sys

EXAMPLES, FOLDER = map(pathlib.Path, sys.argv[1:])
UNIT = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
BYTES = r"([\d.]+) ([KMGT]?i?B)"
CLUSTER = ("cluster.nodes=2", "cluster.devices=8", "parallel.microbatch=1", "train.tokens=auto")
CASES = [("tiny", ()), ("bench-small", ()), ("gpt-moe-s", (*CLUSTER, "parallel.dense=shard")), ("gpt-moe-s", (*CLUSTER, "parallel.experts=replicate")),
         ("gpt-oss-20b", (*CLUSTER, "parallel.dense=shard")), ("qwen3-30b-a3b", (*CLUSTER, "parallel.dense=states")),
         ("deepseek-v3-like", (*CLUSTER, "parallel.dense=shard", "parallel.recompute=all")), ("mixtral-8x7b", (*CLUSTER, "train.precision=fp32"))]


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command}:\n{done.stderr}")
    return done.stdout


def find(pattern, text):
    number, unit = re.search(pattern, text, re.M | re.S).groups()
    return float(number) * UNIT[unit]


for model, settings in CASES:
    options = ["-w", *(word for key in settings for word in ("--set", key)), EXAMPLES / f"{model}.moe"]
    explained = find(rf"^ *{BYTES}  together", run("hecatec", "--explain=memory", *options))
    run("hecatec", "-o", FOLDER / "program", *options)
    told = find(rf"^memory in training.*?^  total +{BYTES}", run(FOLDER / "program", "info"))
    if abs(told - explained) > 0.01 * told:
        sys.exit(f"{model}, {settings}: --explain=memory announces {explained / 2**20:.1f} MiB, info {told / 2**20:.1f} MiB")
