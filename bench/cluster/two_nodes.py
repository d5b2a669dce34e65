"""Two nodes train to the same losses as one: real bytes over shaped links.

    two_nodes.py --hecatec BIN [--rate 1gbit] [--steps 50] [--out FILE.md]

Trains examples/tiny.moe as one process, as four ranks of this machine, and as two nodes of two ranks of
the testbed (cluster.sh), each with the experts that the one process chose. Losses against the one process
may differ by rounding; one node and two nodes have the same bits. Exit code 77 where the testbed cannot
be set up. Needs root for the testbed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mpi"))
import compare  # noqa: E402

CLUSTER = f"n{os.getpid() % 100000}"  # Others may run this, too.
NODES, RANKS, SEQUENCES = 2, 2, 16
BOUND = 2e-5  # Losses on equal experts, over 50 steps.
RATE = "3e-4"  # At the model's own 2e-3 training itself magnifies rounding, 4e-5 after 50 steps.


def run(*command, **more):
    """Runs a command that must succeed; returns what it said."""
    env = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive", CLUSTER=CLUSTER)
    done = subprocess.run([str(part) for part in command], env=env, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        sys.exit(done.returncode if done.returncode == 77 else
                 f"two_nodes.py: {command[0]} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def cluster(*arguments):
    return run(HERE / "cluster.sh", *arguments)


def compile_model(hecatec, work, ranks):
    program = work / f"tiny{ranks}"
    run(hecatec, ROOT / "examples" / "tiny.moe", "-o", program, "--set", f"cluster.devices={ranks}",
        "--set", f"parallel.microbatch={SEQUENCES // ranks}", "--set", "parallel.experts=ep")
    return program


def steps_of(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def losses_apart(a, b):
    """How far the losses of two logs are apart at most, relatively."""
    pairs = zip(steps_of(a), steps_of(b), strict=True)
    return max(abs(x["loss"] - y["loss"]) / abs(x["loss"]) for x, y in pairs)


def sent_by_node(node):
    return int(cluster("on", node, "awk", "/eth0/ { print $10 }", "/proc/net/dev"))


def milliseconds(log):
    return statistics.median(step["ms"] for step in steps_of(log)[5:])


def measure(options, work):
    one, four = (compile_model(options.hecatec, work, ranks) for ranks in (1, NODES * RANKS))
    log = {name: work / f"{name}.log" for name in ("process", "node", "nodes")}
    saved = {name: work / f"{name}.safetensors" for name in log}

    def train(name):
        return ["train", "--data", options.data, "--steps", options.steps, "--log", log[name],
                "--set", f"train.optimizer.lr={RATE}",
                "--save", saved[name]]

    run(one, *train("process"), "--record-ids", work / "ids")
    forced = ["--route", f"ids:{work / 'ids'}"]
    run(ROOT / "tests" / "runtime" / "ranks.sh", NODES * RANKS, four, *train("node"), *forced)
    cluster("up", NODES, RANKS, options.rate)
    try:
        links = cluster("check")
        before = sent_by_node(0)
        cluster("run", "--", four, *train("nodes"), *forced)
        sent = sent_by_node(0) - before
    finally:
        cluster("down")
    rounding = losses_apart(log["process"], log["nodes"])
    if not rounding <= BOUND:
        raise compare.Apart(f"the losses of one process and of two nodes: {rounding:.3g} apart")
    same = saved["node"].read_bytes() == saved["nodes"].read_bytes()
    compare.losses(0, log["node"], log["nodes"])
    if not same:
        raise compare.Apart("the parameters of one node and of two differ")
    return {"links": links, "rounding": rounding, "loss": steps_of(log["nodes"])[-1]["loss"], "sent": sent / options.steps,
            "ms": {name: milliseconds(path) for name, path in log.items()}}


def write(out, options, result):
    ms = result["ms"]
    out.write(f"""# Two nodes train to the losses of one

Real bytes: bench/cluster/two_nodes.py, {NODES} nodes of {RANKS} ranks on one machine, {options.rate} between them,
examples/tiny.moe with experts = ep and a learning rate of {RATE}, {options.steps} steps on the experts that one
process chose. Ranks share {os.cpu_count()} cores, so times are no measure of a cluster.

| | one process | 4 ranks of one node | 2 nodes x 2 ranks |
| --- | ---: | ---: | ---: |
| ms per step, median | {ms['process']:.1f} | {ms['node']:.1f} | {ms['nodes']:.1f} |

- one node and two nodes: every loss and all parameters after {options.steps} steps have the same bits
- against one process: losses at most {result['rounding']:.1e} apart, relatively ({BOUND:.0e} allowed); last loss
  {result['loss']:.4f}
- a node sent {result['sent'] / 1e6:.2f} MB per step

The links, as `cluster.sh check` measured them just before:

""")
    out.writelines(f"    {line}\n" for line in result["links"].splitlines())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hecatec", required=True)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--data", default="/usr/share/common-licenses/GPL-3")
    parser.add_argument("--out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = measure(options, Path(folder))
        except compare.Apart as apart:
            sys.exit(f"two_nodes.py: {apart}")
    write(sys.stdout, options, result)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as out:
            write(out, options, result)


if __name__ == "__main__":
    main()
