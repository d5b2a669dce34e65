"""choices.py HECATEC REPLAY [--check] [--few] [--only=MODEL,...] [--kept=FILE]: a table of docs/fssdp.md.

Each row is a model of the FSSDP paper on its clusters with drawn loads: `ep` is the load of expert parallelism's
fullest device over the mean. Steps of all t and m of a grid that fit in memory are simulated message by message; the
other choices are those of the search. A choice that takes more than 1 % longer than the best of the grid is refused,
and so is one that is more than 1 % slower than the best rival.
All steps are planned and simulated on the same loads.
--check changes nothing; --few compares some, without rivals; --only some models; --kept keeps times in FILE, so that a
second run simulates only changes: of the compiler, or of the model."""
import argparse
import hashlib
import itertools
import json
import pathlib
import sys
import tempfile

from placements import OTHERS, Bench, plan, renew

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "fssdp.md"
BEGIN, END = "<!-- bench/timeline/choices.py -->\n", "<!-- end of choices -->\n"
GRID = list(itertools.product((0, 2, 6, 12, 24, 48), (2, 4, 8, 16)))  # t, m.
IMBALANCES, ITERATIONS = (1.3, 2.0), (1, 8)
FEW = (("gpt-moe-s", "A", 1.3, 1), ("gpt-moe-s", "B", 2.0, 1))
RIVALS = ("ep", "edp", "llep", "laer", "fsdp", *(name for name in OTHERS if name != "hecate"))
LASTING = ("edp", "laer", "fsdp")  # Rivals whose replicas may live for a step.
SLOWER = 1  # Percent that a choice may be slower.
HEAD = ("model", "cluster", "`ep`", "iterations", "chosen", "step", "best of the grid", "chosen takes", "replicas of an iteration",
        "best rival, for an iteration", "best rival")


class Choices:
    def __init__(self, options, folder):
        self.options, self.bench = options, Bench(options, folder)
        self.kept = json.loads(options.kept.read_text()) if options.kept and options.kept.exists() else {}
        self.compiler = hashlib.sha256(pathlib.Path(options.hecatec).read_bytes()).hexdigest()[:12]
        self.failed = False

    def step(self, model, cluster, imbalance, iterations, experts, *sets):
        """A step of a report: its milliseconds, whether it fits, its choices."""
        tokens = plan.TOKENS[model]
        every = [f"parallel.microbatch={tokens // plan.dim(model, 'T')}",
                 f"train.tokens={iterations * tokens * plan.CLUSTERS[cluster].devices}", *sets]
        # A step whose choices are given does not depend on how a compiler would find them.
        given = all(any(key in each for each in sets) for key in ("overlap", "memory", "lifetime"))
        key = " ".join([model, cluster, str(imbalance), str(iterations), experts, *sets, "" if given else self.compiler])
        if key not in self.kept:
            profile = self.bench.loads_of(plan.MODELS[model], imbalance, iterations)
            words = [word for setting in every for word in ("--set", setting)]
            done = self.bench.run(model, profile, experts, "-w", "--simulate", "--json", *words, cluster=cluster)
            report = json.loads(done.stdout)
            self.kept[key] = {"ms": report["step_us"] / 1e3, "movement": report["movement"],
                              "fits": report["memory"]["all"] <= report["memory"]["device"]}
            if self.options.kept:
                self.options.kept.write_text(json.dumps(self.kept, indent=1))
        return self.kept[key]

    def best_of_grid(self, at, movement):
        others = [f"parallel.placement.lifetime={movement['lifetime']}",
                  f"parallel.placement.rematerialize={str(movement['rematerialize']).lower()}",
                  f"parallel.placement.calibrate={'false' if movement['calibrate'] == 'never' else 'true'}"]
        found = []
        for t, m in GRID:
            step = self.step(*at, "fssdp", f"parallel.placement.overlap={t}", f"parallel.placement.memory={m}", *others)
            if step["fits"]:
                found.append((step["ms"], t, m))
        return min(found)

    def best_rival(self, at, lasting):
        """The fastest one's milliseconds and name."""
        once = ["parallel.placement.lifetime=iteration"]
        steps = {name: self.step(*at, name, *(once if name in LASTING and not lasting else [])) for name in RIVALS}
        return min((step["ms"], name) for name, step in steps.items() if step["fits"])

    def refuse(self, at, text):
        print(*at, text)
        self.failed = True

    def row(self, *at):
        own = self.step(*at, "fssdp")
        movement, mine = own["movement"], own["ms"]
        ms, t, m = self.best_of_grid(at, movement)
        slower = 100 * (mine / ms - 1)
        if slower > SLOWER:
            self.refuse(at, f"the choice takes {slower:.1f} % longer than t = {t}, m = {m}")
        cells = [*at, f"t = {movement['overlap']}, m = {movement['slots']}", f"{mine:.0f} ms", f"t = {t}, m = {m}", f"{slower:+.1f} %"]
        if not self.options.few:
            once = self.step(*at, "fssdp", "parallel.placement.lifetime=iteration")["ms"]
            (old, of_old), (new, of_new) = self.best_rival(at, False), self.best_rival(at, True)
            if mine > (1 + SLOWER / 100) * new:
                self.refuse(at, f"{of_new} takes {new:.1f} ms, the choice {mine:.1f}")
            cells += [f"{once / mine:.2f}", f"{old / mine:.2f} ({of_old})", f"{new / mine:.2f} ({of_new})"]
        text = "| " + " | ".join(map(str, cells)) + " |\n"
        print(text, end="", flush=True)
        return text


def main():
    parser = argparse.ArgumentParser(description="choices of the search beside a grid and rivals")
    parser.add_argument("hecatec")
    parser.add_argument("replay")
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--few", action="store_true", help="two configurations")
    parser.add_argument("--only", help="models, divided by commas")
    parser.add_argument("--kept", type=pathlib.Path, help="a file of times")
    options = parser.parse_args()
    models = options.only.split(",") if options.only else plan.MODELS
    with tempfile.TemporaryDirectory() as folder:
        choices = Choices(options, folder)
        rows = [choices.row(*at) for at in (FEW if options.few else itertools.product(models, "AB", IMBALANCES, ITERATIONS))]
    if not (options.check or options.few or options.only):
        renew(PAGE, BEGIN, END, f"| {' | '.join(HEAD)} |\n{'| --- ' * len(HEAD)}|\n" + "".join(rows), False, "")
    sys.exit(choices.failed)


if __name__ == "__main__":
    main()
