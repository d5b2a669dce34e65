"""passes.py [--count N] [--seed S] [--keep DIR]: every pass keeps what a program computes. Random models
(tests/fuzz/random_model.py), on one rank and on several, are run by the reference interpreter before and after each
pass; gradients that differentiate makes are compared with differences of the loss. Environment: HECATEC, INTERPRET."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fuzz"))
import random_model

RANKS = ["--set", "cluster.devices=2", "--set", "parallel.microbatch=1"]
AGAIN = ["--set", "parallel.recompute=all"]
WAYS = [  # One rank; experts that move, in waves; that stay; on two nodes; on every rank; rounded products; values of bf16;
    # logits by blocks, on one rank and on two.
    [],
    [*RANKS, "--set", "parallel.rows_max=8", *AGAIN],
    [*RANKS, "--set", "parallel.experts=ep", "--set", "parallel.dense=states"],
    [*RANKS, "--set", "parallel.experts=ep", "--set", "parallel.dense=shard"],
    ["--set", "cluster.nodes=2", "--set", "cluster.devices=1", "--set", "parallel.microbatch=1",
     "--set", "parallel.placement.rematerialize=true", "--set", "parallel.rows_max=6"],
    [*RANKS, "--set", "parallel.experts=replicate"],
    ["--set", "train.precision=bf16"],
    ["--target=cuda", "--set", "train.precision=bf16", *AGAIN],
    ["--set", "parallel.logits=5"],
    ["--target=cuda", "--set", "train.precision=bf16", "--set", "parallel.logits=5"],
    [*RANKS, "--set", "parallel.experts=ep", "--set", "train.precision=bf16", "--set", "parallel.logits=3"],
]
TRAIN = "train { tokens = 16 }\nparallel { microbatch = 2 }\ndata { format = bytes }\n"


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode, done.stdout


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--count", type=int, default=len(WAYS))
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--keep", type=pathlib.Path)
    asked = parse.parse_args()
    failed = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        source, graph = pathlib.Path(folder, "m.moe"), pathlib.Path(folder, "m.mlir")
        for seed in range(asked.seed, asked.seed + asked.count):
            source.write_text(random_model.model(seed, teacher=True) + TRAIN)
            way = WAYS[seed % len(WAYS)]
            code, said = run(os.environ["HECATEC"], "--compile-to=graph", "-o", graph, *way, source)
            if code == 0:
                code, said = run(os.environ["INTERPRET"], "--passes", f"--seed={seed}", graph)
            if code == 1 and ": not yet: " in said:
                refused += 1
            elif code or "DIFFERENT" in said:
                failed += 1
                print(f"seed {seed}, {' '.join(way)}: exit code {code}\n{said[-1000:]}", flush=True)
                if asked.keep:
                    asked.keep.mkdir(parents=True, exist_ok=True)
                    (asked.keep / f"{seed}.moe").write_text(source.read_text())
    print(f"{asked.count} models, {refused} of them not yet, {failed} failed")
    sys.exit(1 if failed or refused == asked.count else 0)


main()
