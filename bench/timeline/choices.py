"""choices.py HECATEC REPLAY [--check] [--few]: t and m of the search beside the best of a grid, a table of docs/fssdp.md.

Each row is a model of the FSSDP paper on its clusters with drawn loads: `ep` is the load of expert parallelism's
fullest device over the mean. Steps of all t and m of a grid that fit in memory are simulated message by message; the
other choices are those of the search. A choice that takes more than 1 % longer than the best of the grid is refused.
--check changes nothing; --few compares some."""
import argparse
import itertools
import json
import pathlib
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from placements import Bench, plan, renew

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "fssdp.md"
BEGIN, END = "<!-- bench/timeline/choices.py -->\n", "<!-- end of choices -->\n"
GRID = list(itertools.product((0, 2, 6, 12, 24, 48), (2, 4, 8, 16)))  # t, m.
IMBALANCES = (1.3, 2.0)
FEW = (("gpt-moe-s", "A", 1.3), ("gpt-moe-s", "B", 2.0))


def choose(bench, model, cluster, imbalance, *words):
    """The report of a simulation with further settings."""
    profile = bench.loads_of(plan.MODELS[model], imbalance)
    settings = [word for setting in words for word in ("--set", setting)]
    done = bench.run(model, profile, "fssdp", "-w", "--simulate=6", "--json", *settings, cluster=cluster)
    return json.loads(done.stdout)


def row(bench, model, cluster, imbalance):
    own = choose(bench, model, cluster, imbalance)
    movement = own["movement"]
    others = [f"parallel.placement.rematerialize={str(movement['rematerialize']).lower()}",
              f"parallel.placement.calibrate={'false' if movement['calibrate'] == 'never' else 'true'}"]

    def simulate(at):
        report = choose(bench, model, cluster, imbalance, f"parallel.placement.overlap={at[0]}", f"parallel.placement.memory={at[1]}", *others)
        return report["step_us"] / 1e3, at, report["memory"]["all"] <= report["memory"]["device"]

    with ThreadPoolExecutor(2) as pool:
        ms, best = min((ms, at) for ms, at, fits in pool.map(simulate, GRID) if fits)
    mine = own["step_us"] / 1e3
    slower = 100 * (mine / ms - 1)
    text = (f"| {model} | {cluster} | {imbalance} | t = {movement['overlap']}, m = {movement['slots']} | {mine:.1f} ms | "
            f"t = {best[0]}, m = {best[1]} | {ms:.1f} ms | {slower:+.1f} % |\n")
    print(text, end="", flush=True)
    return text, slower <= 1


def main():
    parser = argparse.ArgumentParser(description="t and m beside the best of a grid")
    parser.add_argument("hecatec")
    parser.add_argument("replay")
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--few", action="store_true", help="two configurations")
    options = parser.parse_args()
    configurations = FEW if options.few else itertools.product(plan.MODELS, "AB", IMBALANCES)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        rows = [row(bench, *configuration) for configuration in configurations]
    if not options.check:
        head = "| model | cluster | `ep` | chosen | step | best of the grid | step | chosen takes |\n"
        renew(PAGE, BEGIN, END, head + "| --- " * 8 + "|\n" + "".join(text for text, _ in rows), False, "")
    sys.exit(not all(sound for _, sound in rows))


if __name__ == "__main__":
    main()
