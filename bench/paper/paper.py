#!/usr/bin/env python3
"""paper.py [--quick]: the evaluation of the FSSDP paper (Hecate, arXiv:2502.02581), simulated, as docs/results.md.

Every configuration is one `hecatec --simulate --json`, kept in --cache under what it depends on: the compiler, its input, the
loads. So what was stopped goes on, and a second run simulates only what changed. Recorded loads are read from --recording and
left out without it."""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import loads
import page
import plan

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Bench:
    def __init__(self, args):
        self.hecatec, self.replay = (pathlib.Path(args.bin).resolve() / name for name in ("hecatec", "hecate-replay"))
        self.cache = pathlib.Path(args.cache)
        self.cache.mkdir(parents=True, exist_ok=True)
        recording = pathlib.Path(args.recording)
        self.recording = loads.read(recording) if recording.is_file() else None
        self.compiler = hashlib.sha256(self.hecatec.read_bytes()).hexdigest()[:12]
        self.fit = loads.fit(self.recording, plan.WINDOWS["recorded"][0], 4, 60) if self.recording else plan.FIT
        self.drawing, self.skews = threading.Lock(), {}
        self.passes = self.without_overlap()
        self.cached = args.cached

    def without_overlap(self):
        """The default passes but for the one that hides transfers."""
        text = subprocess.run([self.hecatec, "--print-passes"], capture_output=True, text=True, check=True).stdout
        default = next(line for line in text.splitlines() if line.startswith("default: "))
        return ",".join(name for name in default.removeprefix("default: ").split(",") if name != "overlap")

    # ---- loads

    def file(self, name, make):
        path = self.cache / f"{name}.loads"
        if not path.exists():
            fresh = path.with_suffix(f".{os.getpid()}")
            make().write(fresh)
            fresh.rename(path)
        return path

    def recorded(self, which, layers, experts):
        """Loads to plan with, and those of the iterations behind them."""
        first, count = plan.WINDOWS[which]
        return [self.file(f"{which}-{part}-{layers}x{experts}",
                          lambda at=at, count=count: loads.adapt(self.recording, at, count, layers, experts))
                for part, at, count in (("before", first - 2, 2), ("judged", first, count))]

    def synthesized(self, layers, experts, devices, skew, iterations):
        """Drawn loads of 16 steps, as the recording drifts."""
        path = self.cache / f"drawn-{layers}x{experts}-{devices}-{iterations}-{skew:.5f}.loads"
        if not path.exists():
            fresh = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            command = [self.replay, f"--synthesize={fresh}", "--nodes=1", f"--devices={devices}", f"--experts={experts}",
                       f"--layers={layers}", "--iterations=16", f"--microbatches={iterations}", "--rows=8192", f"--skew={skew:.5f}",
                       f"--drift={self.fit['drift']}", f"--bias={self.fit['bias']}"]
            subprocess.run(command, check=True, capture_output=True)
            fresh.rename(path)
        return path

    def drawn(self, spec):
        """Loads with a skew for which expert parallelism's fullest device has `loads` times the mean."""
        cluster, layers = plan.CLUSTERS[spec.cluster], plan.MODELS[spec.model]
        shape = (layers, cluster.experts, cluster.devices)
        with self.drawing:
            if (shape, spec.loads) not in self.skews:
                self.skews[shape, spec.loads] = loads.skew_of(
                    float(spec.loads), cluster.devices, lambda skew: loads.read(self.synthesized(*shape, skew, 1)))
            whole = self.synthesized(*shape, self.skews[shape, spec.loads], spec.iterations)
            name = f"ep{spec.loads}-{layers}x{cluster.experts}-{cluster.devices}-{spec.iterations}"
            return [self.file(f"{name}-{part}", lambda at=at: loads.read(whole).part(at, 8)) for part, at in (("before", 0), ("judged", 8))]

    def loads_of(self, spec):
        """Loads to plan with, and those that are simulated."""
        cluster, layers = plan.CLUSTERS[spec.cluster], plan.MODELS[spec.model]
        if spec.loads in plan.WINDOWS:
            return self.recorded(spec.loads, layers, cluster.experts)
        if spec.loads in plan.IMBALANCES:
            return self.drawn(spec)
        if spec.loads == "assumed":
            return [None, None]
        name = f"{spec.loads}-{layers}x{cluster.experts}-{cluster.devices}"
        path = self.file(name, lambda: loads.balanced(layers, cluster.devices, cluster.experts, spec.loads == "local"))
        return [path, path]

    # ---- one simulation

    def command(self, spec):
        cluster, tokens = plan.CLUSTERS[spec.cluster], plan.TOKENS[spec.model]
        command = [str(self.hecatec), "--target=cuda", f"--cluster={ROOT}/examples/clusters/{cluster.file}.moe"]
        sets = [f"parallel.experts={spec.policy}", f"cluster.nodes={cluster.nodes}",
                f"parallel.microbatch={tokens // plan.dim(spec.model, 'T')}",
                f"train.tokens={spec.iterations * tokens * cluster.devices}", *spec.sets]
        for each in [f"E={cluster.experts}", *spec.defines]:
            command += ["-D", each]
        for each in sets:
            command += ["--set", each]
        if spec.passes:
            command += [f"--passes={self.passes}"]
        return command + [f"{ROOT}/examples/{spec.model}.moe"]

    def planned(self, spec, name, before):
        """A plan file from loads that were recorded before those that are simulated."""
        kept = self.cache / f"{name}.plan"
        subprocess.run([*self.command(spec), f"--profile={before}", f"--emit-plan={kept}", "-S", "-o", os.devnull], check=True,
                       capture_output=True, text=True)
        if spec.even:
            choices, devices = json.loads(kept.read_text()), plan.CLUSTERS[spec.cluster].devices
            for each in choices["sets"].values():
                each["owner"] = [[e * devices // each["experts"] for e in range(each["experts"])]] * each["layers"]
            kept.write_text(json.dumps(choices))
        return kept

    def simulate(self, spec, name):
        before, judged = self.loads_of(spec)
        command, kept = self.command(spec), None
        if judged:
            command += [f"--profile={judged}"]
        if spec.policy != "ep" and judged:
            kept = self.planned(spec, name, before)
            command += [f"--plan={kept}"]
        begin = time.monotonic()
        done = subprocess.run([*command, f"--simulate={spec.steps}", "--json"], check=True, capture_output=True, text=True)
        result = json.loads(done.stdout)
        result["seconds"] = time.monotonic() - begin
        if spec.loads in plan.LOADS:
            result["network_us"] = self.network_us(spec, judged)
        if kept:
            kept.unlink()
        return result

    def network_us(self, spec, judged):
        """The least time of a step on the nodes' links to the network."""
        cluster, model = plan.CLUSTERS[spec.cluster], spec.model
        width, own = plan.dim(model, "D"), cluster.experts // cluster.nodes
        rows = spec.iterations * plan.TOKENS[model] * plan.TOPK
        return loads.network_bytes(loads.read(judged), cluster, rows, 2 * width, 4 * width * plan.hidden(model), own) / cluster.network * 1e6

    def run(self, spec):
        """The result of a simulation; None where hecatec refuses it."""
        text = json.dumps([self.compiler, self.command(spec)[1:], spec.loads, spec.steps, spec.even, self.fit, loads_hash(), plan.WINDOWS])
        name = hashlib.sha256(text.encode()).hexdigest()[:24]
        path = self.cache / f"{name}.json"
        if path.exists():
            return json.loads(path.read_text())
        if self.cached:
            return None
        try:
            result = self.simulate(spec, name)
        except subprocess.CalledProcessError as error:
            print(f"{spec.key}: {(error.stderr or '').strip()}", file=sys.stderr)
            result = None
        fresh = path.with_suffix(".part")
        fresh.write_text(json.dumps(result))
        fresh.rename(path)
        return result

    def run_all(self, specs, jobs):
        specs = [each for each in specs if self.recording or each.loads not in plan.WINDOWS]
        begin, results = time.monotonic(), {}
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for each, result in zip(specs, pool.map(self.run, specs)):
                results[each.key] = result
                if sys.stderr.isatty():
                    print(f"\r{len(results)} of {len(specs)}, {time.monotonic() - begin:.0f} s", end="", file=sys.stderr)
        print(f"\n{len(results)} simulations, {time.monotonic() - begin:.0f} s", file=sys.stderr)
        return results


def loads_hash():
    return hashlib.sha256(pathlib.Path(loads.__file__).read_bytes()).hexdigest()[:12]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT / "build/bin", help="folder of hecatec and hecate-replay")
    parser.add_argument("--recording", default=ROOT.parent / "shared/data/smartmoe-gpt-24x32.loads.zst",
                        help="recorded loads (24 layers x 32 experts on 16 devices)")
    parser.add_argument("--cache", default=ROOT / "build/paper", help="folder of results that are kept")
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time")
    parser.add_argument("--quick", action="store_true", help="two models, one kind of loads: some minutes")
    parser.add_argument("--cached", action="store_true", help="simulate nothing: the page of what is in --cache")
    parser.add_argument("--output", default=ROOT / "docs/results.md", help="the page; pictures go to a folder of its name")
    args = parser.parse_args()
    bench = Bench(args)
    results = bench.run_all(plan.all_specs(args.quick), args.jobs)
    page.write(pathlib.Path(args.output), results, bench, args.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
