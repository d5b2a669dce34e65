"""placements.py HECATEC REPLAY [--check]: the choice of `parallel.experts = auto`, the table of docs/fssdp.md.

Each row is a model of the FSSDP paper on its cluster B with drawn loads: `ep` is the load of expert parallelism's
fullest device over the mean. --check refuses a choice that is more than 1 % slower than the best rival.
Otherwise the table is written, too."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from page_table import renew  # noqa: E402

sys.path.insert(0, str(ROOT / "bench" / "paper"))
import loads
import plan

PAGE = ROOT / "docs" / "fssdp.md"
BEGIN, END = "<!-- bench/timeline/placements.py -->\n", "<!-- end of placements -->\n"
MODELS = ("gpt-moe-s", "bert-moe-deep")
IMBALANCES = (1.0, 1.1, 1.3, 2.0)
OTHERS = ("hecate", "eplb", "ultraep", "flexmoe", "smartmoe", "fastermoe")
US = {"us": 1e-3, "ms": 1, "s": 1e3}


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.skews = options, pathlib.Path(folder), {}

    def synthesize(self, layers, skew, microbatches=1):
        cluster, path = plan.CLUSTERS["B"], self.folder / f"{layers}-{microbatches}-{skew:.5f}.loads"
        bias = plan.FIT["bias"] if skew else 0
        if not path.exists():
            subprocess.run([self.options.replay, f"--synthesize={path}", "--nodes=1", f"--devices={cluster.devices}",
                            f"--experts={cluster.experts}", f"--layers={layers}", "--iterations=16",
                            f"--microbatches={microbatches}", "--rows=8192", f"--skew={skew:.5f}",
                            f"--drift={plan.FIT['drift']}", f"--bias={bias}"], check=True, capture_output=True)
        return path

    def loads_of(self, layers, imbalance, microbatches=1):
        if imbalance == 1:
            return self.synthesize(layers, 0, microbatches)
        if (layers, imbalance) not in self.skews:
            self.skews[layers, imbalance] = loads.skew_of(imbalance, plan.CLUSTERS["B"].devices,
                                                          lambda skew: loads.read(self.synthesize(layers, skew)))
        return self.synthesize(layers, self.skews[layers, imbalance], microbatches)

    def run(self, model, profile, experts, *words, cluster="B"):
        on = ROOT / "examples" / "clusters" / f"{plan.CLUSTERS[cluster].file}.moe"
        done = subprocess.run([self.options.hecatec, "--target=cuda", f"--cluster={on}", f"--profile={profile}",
                               "--set", f"parallel.experts={experts}", *words, ROOT / "examples" / f"{model}.moe"],
                              capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            sys.exit(f"{model}, {experts}: {done.stderr}")
        return done

    def row(self, model, imbalance):
        profile = self.loads_of(plan.MODELS[model], imbalance)
        said = self.run(model, profile, "auto", "-S", "-o", "/dev/null").stderr
        chosen, list_ = re.search(r"parallel\.experts = (\w+).*; a step takes with (.*)", said).groups()
        ms = {name: float(value) * US[unit] for name, value, unit in re.findall(r"(\w+) ([\d.]+) ([mu]?s)\b", list_)}
        for name in OTHERS:
            report = json.loads(self.run(model, profile, name, "-w", "--simulate", "--json").stdout)
            ms[name] = report["step_us"] / 1e3
        best = min(ms, key=ms.get)
        rival = min((name for name in ms if name not in ("fssdp", "hecate")), key=ms.get)
        slower = 100 * (ms[chosen] / ms[best] - 1)
        if ms[chosen] > 1.0105 * ms[rival]:
            print(f"{model} at {imbalance}: {chosen} is slower than {rival}")
            self.failed = True
        return (f"| {model} | {imbalance} | {ms['ep']:.0f} ms | {rival}, {ms[rival]:.0f} ms | {ms['fssdp']:.0f} ms | {chosen} | "
                f"{slower:+.1f} % |\n")

    failed = False


def main():
    parser = argparse.ArgumentParser(description="what parallel.experts = auto chooses")
    parser.add_argument("hecatec")
    parser.add_argument("replay")
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        new = "| model | `ep` | step of `ep` | best rival | `fssdp` | chosen | to the best |\n" + "| --- " * 7 + "|\n"
        for model in MODELS:
            for imbalance in IMBALANCES:
                new += bench.row(model, imbalance)
    print(new)
    if not options.check:
        renew(PAGE, BEGIN, END, new, False, "")
    sys.exit(bench.failed)


if __name__ == "__main__":
    main()
