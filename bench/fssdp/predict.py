"""How near does `hecatec --simulate` come to real bytes? Policies of moving experts on the emulated cluster, measured and simulated.

    predict.py --hecatec BIN [--loads zipf:1.2 zipf:0.8] [--rates 250 125] [--steps 8] [--topk 2] [--only TEXT]
               [--out FILE.md]

Each configuration trains in the testbed as in compare.py --quarter (kernels wait as long as a device would compute, bytes and
links are real) and records its loads; the same plan is then simulated on these loads. Shares of the cost model are those of
any simulation: nothing is fitted. Configurations marked * were looked at while the simulation was written; the others are what it
is judged by. Needs root; exit code 77 where the testbed cannot be set up.
"""
import argparse
import itertools
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

import compare

SECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
# Policy, and choices of its own.
# Simulations charge each policy its authors' collective; these are the policies whose programs have it, too (docs/planner.md).
CONFIGURATIONS = [("ep", ""), ("fssdp", ""), ("hecate", ""), ("fastermoe", ""), ("llep", ""), ("ultraep", ""),
                  ("fssdp", "--set parallel.placement.overlap=2 --set parallel.placement.memory=2"),
                  ("fssdp", "--set parallel.placement.overlap=0 --set parallel.placement.memory=1"),
                  ("fssdp", "--set parallel.placement.rematerialize=true"),
                  ("ep", "--set parallel.rows=node"), ("fssdp", "--set parallel.rows=node")]
SEEN = [(policy, "", "zipf:1.2", 250) for policy in ("ep", "fssdp", "hecate", "llep")]


def simulate(options, policy, flags, rate, work, loads, plan):
    """The median step of the same plan and loads, in ms, behind the steps that are not measured either."""
    more = ["--profile", loads] if policy == "ep" else ["--profile", loads, "--plan", plan]
    text = compare.run(options.hecatec, options.model, f"--simulate={options.steps}", *cluster(options, policy, rate), *flags.split(),
                       *(f"{more[i]}={more[i + 1]}" for i in range(0, len(more), 2)))
    steps = [float(value) * SECONDS[unit] for value, unit in re.findall(r"^ +\d+ +([\d.]+) (us|ms|s)\b", text, re.MULTILINE)]
    return statistics.median(steps[options.skip:])


def cluster(options, policy, rate):
    return [*options.compile.split(), "--set", f"parallel.experts={policy}", "--set", f"cluster.nodes={options.nodes}", "--set",
            f"cluster.devices={options.ranks}", "--set", f"cluster.link.inter.bandwidth={rate}Mbit/s"]


def try_one(options, policy, flags, load, rate, work):
    program, plan, loads = work / policy, work / "plan.json", work / "run.loads"
    flags_of_plan = [] if policy == "ep" else [f"--emit-plan={plan}"]
    compare.run(options.hecatec, options.model, "-o", program, *cluster(options, policy, rate), *flags.split(), *flags_of_plan)
    loads.unlink(missing_ok=True)
    measured = compare.measure(options, program, load, work, "--record-loads", loads)
    return {"policy": policy, "flags": flags.replace("--set parallel.", "").replace("placement.", ""), "load": load, "rate": rate,
            "seen": (policy, flags, load, rate) in SEEN, "simulated": simulate(options, policy, flags, rate, work, loads, plan),
            **measured}


def wrong_pairs(results):
    """Pairs more than 5 % apart that the simulation ranks the other way round."""
    wrong = total = 0
    for a, b in itertools.combinations(results, 2):
        if (a["load"], a["rate"]) != (b["load"], b["rate"]) or abs(a["ms"] / b["ms"] - 1) <= 0.05:
            continue
        total += 1
        wrong += (a["ms"] < b["ms"]) != (a["simulated"] < b["simulated"])
    return wrong, total


def summary(results):
    lines = []
    for name, of in (("judged by", [r for r in results if not r["seen"]]), ("all", results)):
        errors = [abs(r["simulated"] / r["ms"] - 1) for r in of]
        if errors:
            lines.append(f"{name}: {len(errors)} configurations, mean error {100 * statistics.mean(errors):.1f} %, "
                         f"worst {100 * max(errors):.1f} %")
    wrong, total = wrong_pairs(results)
    return "\n".join(lines + [f"pairs more than 5 % apart: {total}, {wrong} ranked wrongly"]) + "\n"


def table(results):
    lines = ["| policy | choices | loads | Mbit/s a node | measured, ms | least to most | simulated, ms | simulated / measured |",
             "| --- " * 8 + "|"]
    for r in results:
        lines.append(f"| {r['policy']}{' *' if r['seen'] else ''} | {r['flags']} | {r['load'].split('/')[-1]} | {r['rate']} | {r['ms']:.0f} | "
                     f"{r['least']:.0f} to {r['most']:.0f} | {r['simulated']:.0f} | {r['simulated'] / r['ms']:.3f} |")
    return "\n".join(lines) + "\n"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hecatec", required=True)
    parser.add_argument("--loads", nargs="+", default=["zipf:1.2", "zipf:0.8"])
    parser.add_argument("--rates", nargs="+", type=int, default=[250, 125])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--topk", type=int, default=2)
    parser.add_argument("--only", default="", help="policies that contain this")
    parser.add_argument("--out")
    options = parser.parse_args()
    options.nodes, options.ranks, options.skip, options.real = 4, 2, 2, False
    options.compile = compare.QUARTER
    options.device, options.data = compare.HERE / "v100-quarter.device", "/usr/share/common-licenses/GPL-3"
    return options


def main():
    options = arguments()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        text = (compare.HERE / "gpt-small.moe").read_text(encoding="utf-8")
        options.model = Path(folder) / "gpt-small.moe"
        options.model.write_text(text.replace("topk = 2", f"topk = {options.topk}"), encoding="utf-8")
        for rate in options.rates:
            compare.run(compare.CLUSTER, "up", options.nodes, options.ranks, f"{rate}mbit")
            try:
                for load, (policy, flags) in itertools.product(options.loads, CONFIGURATIONS):
                    if options.only in policy:
                        results.append(try_one(options, policy, flags, load, rate, Path(folder)))
                        print(table(results[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
            finally:
                compare.run(compare.CLUSTER, "down")
    text = f"""# Simulated and measured steps

bench/fssdp/predict.py: gpt-small.moe, top-{options.topk}, on {options.nodes} nodes x {options.ranks} ranks of one machine of {os.cpu_count()} cores, a quarter of the bytes
(README.md), medians of {options.steps - options.skip} steps. * was looked at while the simulation was written.

{summary(results)}
{table(results)}"""
    print(text)
    if options.out:
        Path(options.out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
