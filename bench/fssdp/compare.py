"""Policies of moving experts on an emulated cluster: one table per load.

    compare.py --hecatec BIN [--loads zipf:1.2 trace:FILE] [--policies ep fssdp ...] [--steps 6]
               [--nodes 4] [--ranks 2] [--rate 1gbit] [--quarter] [--real] [--ablate] [--dense] [--out FILE.md]

Ranks run in the testbed of bench/cluster: real bytes over shaped links; kernels wait as long as on the
device of v100.device (README.md derives it). Forced balance is expert parallelism under
--route=balanced. Steps count from the third on: the first has no forecast, the second is the first
with replicas. Medians over steps of rank 0, who waits for all in every step. Needs root; exit code
77 where the testbed cannot be set up.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLUSTER = HERE.parent / "cluster" / "cluster.sh"
ENV = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive", CLUSTER=f"f{os.getpid() % 100000}",
           CLUSTER_TIMEOUT="600")
# When each places experts.
WHEN = dict(re.findall(r"^HPL_POLICY\((\w+), (\w+)", (HERE.parents[1] / "runtime/plan/policies.def").read_text(), re.MULTILINE))
POLICIES = ["ep", "fssdp", *(policy for policy in WHEN if policy not in ("ep", "fssdp"))]
QUARTER = ("-D D=128 -D T=344 --set cluster.link.inter.bandwidth=250Mbit/s --set cluster.link.intra.bandwidth=1500MB/s "
           "--set cluster.device.flops=93.2GFLOPS --set cluster.device.bandwidth=9GB/s")
# Dense parameters: whole on every rank, or parts of a unit that is gathered where it is read.
DENSE = {name: f"--set parallel.dense={name}" for name in ("replicate", "states", "shard")}
# The compiler's optimizations for fssdp, one at a time left out.
PASSES = ("check-shapes,group-experts,inline,simplify,use-bf16,differentiate,simplify,recompute,distribute-experts,"
          "fuse-elementwise,distribute-dense,shard,materialize,{}verify-movement,select-kernels,place-buffers")
ABLATION = {
    "everything": "",
    "no pass overlap: every transfer is waited for": "--passes=" + PASSES.format(""),
    "replicas gathered again for backward": "--set parallel.placement.rematerialize=true",
    "nothing enters a node: t = 0": "--set parallel.placement.overlap=0",
    "one replica a device: m = 1": "--set parallel.placement.memory=1",
    "no calibration": "--set parallel.placement.calibrate=false",
    "rows split evenly": "--set parallel.placement.dispatch=even",
}


def run(*command, codes=(0,)):
    done = subprocess.run([str(part) for part in command], env=ENV, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode not in codes:
        sys.exit(77 if done.returncode == 77 else
                 f"compare.py: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def compile_model(options, policy, work, name=None, without=""):
    program = work / (name or policy)
    more = ["--set", f"parallel.placement.reshard.iterations={options.period}"] * (WHEN.get(policy) == "PERIODIC")
    run(options.hecatec, options.model, "-o", program, "--set", f"parallel.experts={policy}", "--set",
        f"cluster.nodes={options.nodes}", "--set", f"cluster.devices={options.ranks}", *more,
        *options.compile.split(), *without.split())
    return program


def sent_by_nodes(options):
    """Bytes that the nodes have sent, all together, ever."""
    return sum(int(run(CLUSTER, "on", node, "awk", "/eth0/ { print $10 }", "/proc/net/dev"))
               for node in range(options.nodes))


def measure(options, program, load, work, *more):
    log = work / "log"
    steps = options.steps * (2 if WHEN.get(program.name) == "PERIODIC" else 1)
    log.unlink(missing_ok=True)
    before = sent_by_nodes(options)
    real = [] if options.real else ["--pretend", options.device]
    run(CLUSTER, "run", "--", program, "train", "--data", options.data, "--steps", steps, "--log",
               log, "--route", load, *real, *more)
    sent = sent_by_nodes(options) - before
    lines = [json.loads(line) for line in log.read_text().splitlines()][options.skip:]
    ms = [line["ms"] for line in lines]
    moved = [line["moved"] for line in lines if "moved" in line]
    layers = [line["layers"] for line in lines if "layers" in line]
    return {"ms": statistics.median(ms), "least": min(ms), "most": max(ms),
            "beyond": sum(layer["exposed_ms"] for sets in layers for of in sets.values() for layer in of[1:]) /
                      max(len(layers), 1),
            "sent": sent / steps / options.nodes,
            "took": sum(step["ms"] for step in moved) / len(lines),
            "waited": sum(step["exposed_ms"] for step in moved) / len(lines),
            "late": sum(step["late_ms"] for step in moved) / len(lines)}


def exposed(result):
    if not result["took"]:
        return ["", "", ""]
    return [f"{result['took']:.0f}", f"{result['waited']:.0f} ({100 * result['waited'] / result['took']:.0f} %)",
            f"{result['late']:.0f}"]


def table(load, results):
    head = ["policy", "ms per step", "least to most", "of balanced ep", "times ep", "MB sent by a node",
            "sparse collectives ms", "waited for ms", "for late ranks ms"]
    lines = ["", f"## {load}", "", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name, result in results.items():
        lines.append("| " + " | ".join([
            name, f"{result['ms']:.0f}", f"{result['least']:.0f} to {result['most']:.0f}",
            f"{result['ms'] / results['ep, balanced']['ms']:.2f}",
            f"{results['ep']['ms'] / result['ms']:.2f}" if "ep" in results else "",
            f"{result['sent'] / 1e6:.0f}", *exposed(result)]) + " |")
    return "\n".join(lines) + "\n"


def variants_table(title, results):
    """One row for each variant of fssdp, beside the first of them."""
    first, whole = next((name, result["ms"]) for name, result in results.items())
    lines = ["", f"## {title}", "",
             f"| | ms per step | least to most | of {first} | sparse collectives ms | waited for ms | for late ranks ms |",
             "|" + " --- |" * 7]
    for name, result in results.items():
        lines.append("| " + " | ".join([
            name, f"{result['ms']:.0f}", f"{result['least']:.0f} to {result['most']:.0f}",
            f"{result['ms'] / whole:.2f}", *exposed(result)]) + " |")
    return "\n".join(lines) + "\n"


def heading(options, title="Policies that move experts"):
    kind = "Real" if options.real else "Emulated"
    how = ("kernels compute" if options.real else
           f"compute as timed waits by {Path(options.device).name}, scaled to the paper's cluster A")
    more = ", and dense parameters kept in several ways" if options.dense else ""
    return f"""# {title}{more}

{kind}: bench/fssdp/{Path(sys.argv[0]).name}, {options.nodes} nodes x {options.ranks} ranks on one machine of {os.cpu_count()} cores, real bytes over
{options.rate} a node, {how}; {Path(options.model).name} {options.compile}. Medians of
{options.steps - options.skip} steps. Load of the machine before: {os.getloadavg()[0]:.1f}.
"""


def parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hecatec", required=True)
    parser.add_argument("--loads", nargs="+", default=["zipf:1.2"])
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--skip", type=int, default=2)
    parser.add_argument("--period", type=int, default=4)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--model", default=HERE / "gpt-small.moe")
    parser.add_argument("--device", default=HERE / "v100.device")
    parser.add_argument("--real", action="store_true", help="kernels compute")
    parser.add_argument("--compile", default="", help="more for hecatec")
    parser.add_argument("--quarter", action="store_true", help="a quarter of the bytes, as slowly")
    parser.add_argument("--ablate", action="store_true", help="also fssdp without each of its parts")
    parser.add_argument("--dense", action="store_true", help="also fssdp with each way to keep dense parameters")
    parser.add_argument("--data", default="/usr/share/common-licenses/GPL-3")
    parser.add_argument("--out")
    return parser


def finished(options):
    if options.quarter:
        options.rate, options.device = "250mbit", HERE / "v100-quarter.device"
        options.compile = f"{QUARTER} {options.compile}"
    return options


def main():
    options = finished(parser().parse_args())
    texts = [heading(options)]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        programs = {policy: compile_model(options, policy, work) for policy in ["ep", *options.policies]}
        wanted = [("fssdp without", ABLATION)] * options.ablate + [("dense parameters under fssdp", DENSE)] * options.dense
        variants = {title: {name: compile_model(options, "fssdp", work, f"{title.split()[0]}{i}", flags)
                            for i, (name, flags) in enumerate(flags_of.items())} for title, flags_of in wanted}
        run(CLUSTER, "up", options.nodes, options.ranks, options.rate)
        try:
            links = run(CLUSTER, "check", codes=(0, 1))
            balanced = measure(options, programs["ep"], "balanced", work)
            for load in options.loads:
                results = {"ep, balanced": balanced}
                for policy in options.policies:
                    results[policy] = measure(options, programs[policy], load, work)
                    print(load, policy, results[policy], file=sys.stderr, flush=True)
                texts.append(table(load.split("/")[-1], results))
                for title, programs_of in variants.items():
                    texts.append(variants_table(f"{load.split('/')[-1]}: {title}", {
                        name: measure(options, program, load, work) for name, program in programs_of.items()}))
        finally:
            run(CLUSTER, "down")
    texts.append("\nThe links just before:\n\n" + "".join(f"    {line}\n" for line in links.split("\n---")[0].splitlines()))
    print("".join(texts))
    if options.out:
        Path(options.out).write_text("".join(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
