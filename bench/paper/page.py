"""Writes the page: tables, pictures, assumptions, the paper's figures beside ours."""
import re
import textwrap

import picture
import plan
import words
from numbers_of import Numbers, geometric, states

PAPER = {"A16": (1.40, 1.58), "A": (1.34, 1.78), "B": (1.26, 1.70)}  # Speedups over EP, its sections 5.2 and 5.3.
PAPER_BEST = {"A16": "1.645", "A": "2.05", "B": "2.945"}
LOADS = {"late": "recorded, late", "early": "recorded, early", "drawn": "drawn"}


def ms(us):
    return "" if us is None else f"{us / 1e3:,.0f}" if us >= 1e4 else f"{us / 1e3:.1f}"


def times(ratio):
    return "" if ratio is None else f"{ratio:.2f}"


def table(head, rows):
    align = ["---"] + ["---:"] * (len(head) - 1)
    return ["| " + " | ".join(each) + " |" for each in [head, align, *[[str(cell) for cell in row] for row in rows]]] + [""]


def spread(ratios):
    ratios = [r for r in ratios if r]
    return f"{min(ratios):.2f} to {max(ratios):.2f}, geometric mean {geometric(ratios):.2f}" if ratios else "not simulated"


class Page:
    def __init__(self, path, results, bench, quick):
        self.path, self.n, self.bench = path, Numbers(results, quick), bench
        self.pictures = path.parent / path.stem
        self.lines = []

    def add(self, *lines):
        self.lines += lines

    def section(self, title, kind, *lines):
        self.add(f"## {title}", "", f"*{kind}.* " + (lines[0] if lines else ""), *lines[1:], "")

    def show(self, name, svg):
        self.pictures.mkdir(parents=True, exist_ok=True)
        (self.pictures / f"{name}.svg").write_text(svg)
        title = svg.split("<title>")[1].split("</title>")[0]
        self.add(f"![{title}]({self.pictures.name}/{name}.svg)", "")

    # ---- what was asked

    def judged(self):
        n = self.n
        clusters = [c for c in n.clusters]
        rows = [(f"FSSDP over EP, {plan.CLUSTERS[c].title}", f"{PAPER[c][0]:.2f} to {PAPER[c][1]:.2f}",
                 spread([n.faster(m, c, "FSSDP", "EP") for m in n.models]),
                 spread([n.faster(m, c, "quota", "EP") for m in n.models])) for c in clusters]
        for rival in plan.RIVALS[1:4]:
            rows.append((f"over {rival}, all configurations", "", times(n.against("FSSDP", rival)), times(n.against("quota", rival))))
        for rival in plan.RIVALS[4:]:
            rows.append((f"over {rival}", "", "", times(n.against("quota", rival))))
        rows += [(f"over the best baseline, {plan.CLUSTERS[c].title}", PAPER_BEST[c], times(self.over_best("FSSDP", c)),
                  times(self.over_best("quota", c))) for c in clusters]
        for k, what in enumerate(("of balanced EP's speed", "of the ideal's speed")):
            rows.append((what, "", *[self.mean_bound(name, k) for name in ("FSSDP", "quota")]))
        self.add(*table(["", "the paper, measured", "FSSDP here", "quota here"], rows))

    def over_best(self, name, cluster):
        ratios = []
        for model in self.n.models:
            known = [r for rival in plan.RIVALS[:4] for r in [self.n.faster(model, cluster, name, rival)] if r]
            ratios += [min(known)] if known else []
        return geometric(ratios)

    def mean_bound(self, name, k):
        shares = [s[k] for c, m in self.n.every() for which in self.n.loads
                  for s in [self.n.of_bound(m, c, name, which)] if s]
        return f"{100 * sum(shares) / len(shares):.0f} %" if shares else ""

    # ---- end to end

    def end_to_end(self):
        n = self.n
        groups = [(f"{plan.NAMES[m]}\n{plan.CLUSTERS[c].title}",
                   {name: r for name in plan.POLICIES for r in [n.faster(m, c, name, "EP")] if r})
                  for c in n.clusters for m in n.models]
        for c in n.clusters:
            mine = [(name.split("\n")[0], values) for (name, values), (cc, _) in zip(groups, n.every()) if cc == c]
            marks = [(name, *PAPER[c]) for name, _ in mine]
            self.show(f"speedup-{c}", picture.bars(
                f"Times as fast as expert parallelism, {plan.CLUSTERS[c].title}; between the dashed lines: the paper's FSSDP", mine,
                "times", marks))
        for which in n.loads:
            self.add(f"Milliseconds a step, loads {LOADS[which]} (simulated):", "")
            rows = []
            for c, m in n.every():
                balanced, local = n.bounds(m, c)
                rows.append((f"{plan.NAMES[m]}, {plan.CLUSTERS[c].title}",
                             *[ms(n.us(plan.spec(m, c, name, which))) for name in plan.POLICIES], ms(balanced), ms(local)))
            self.add(*table(["", *plan.POLICIES, "EP, balanced", "local, balanced"], rows))

    # ---- per layer

    def per_layer(self):
        n, rows = self.n, []
        for c in [c for c in ("A", "B") if c in n.clusters]:
            curves = {}
            for name in plan.POLICIES:
                result = n.get(plan.spec("gpt-moe-s", c, name, n.loads[0]))
                if result:
                    curves[name] = [us / 1e3 for us in result["layer_us"]]
            for name in curves:
                if name != "EP":
                    rows.append((f"{name}, {plan.CLUSTERS[c].title}", spread([e / v for e, v in zip(curves["EP"], curves[name])])))
            self.show(f"layers-{c}", picture.lines(
                f"Time of the experts of each layer, GPT-MoE-S on {plan.CLUSTERS[c].title}, loads {LOADS[n.loads[0]]}", curves,
                [str(i) for i in range(len(curves["EP"]))], "ms", "layer"))
        self.add(*table(["times as fast as EP, layer by layer (simulated)", "least to most"], rows))

    # ---- critical path

    def breakdown(self):
        n = self.n
        for model in [m for m in ("gpt-moe-s", "bert-moe-deep") if m in n.models]:
            for c in [c for c in ("A", "B") if c in n.clusters]:
                rows = [(name, n.path(plan.spec(model, c, name, n.loads[0]))) for name in plan.POLICIES]
                rows += [("EP, balanced", n.path(plan.spec(model, c, "EP", "balanced", steps=2))),
                         ("local, balanced", n.path(plan.spec(model, c, "EP", "local", steps=2)))]
                self.show(f"path-{model}-{c}", picture.stacks(
                    f"Critical path of a step, {plan.NAMES[model]} on {plan.CLUSTERS[c].title}, loads {LOADS[n.loads[0]]}",
                    [row for row in rows if row[1]], "ms"))
        model = "bert-moe-deep" if "bert-moe-deep" in n.models else n.models[-1]
        paths = {name: n.path(plan.spec(model, "B", name, n.loads[0])) for name in ("EP", "FSSDP", "quota")}
        if all(paths.values()):
            less = {name: paths["EP"]["rows"] / paths[name]["rows"] for name in ("FSSDP", "quota")}
            self.add(f"Time of rows (all-to-all) on the critical path, {plan.NAMES[model]} on B: {less['FSSDP']:.1f} times less than EP's with "
                     f"FSSDP, {less['quota']:.1f} times with quota (the paper: 12.3 times less). What is less on the path can lie beside it: "
                     "a step that waits for sums or parameters hides rows.", "")

    # ---- memory

    def memory(self):
        n, rows = self.n, []
        for c, m in n.every():
            results = {name: n.get(plan.spec(m, c, name, n.loads[0])) for name in plan.POLICIES}
            base = results["EP"]
            if base:
                rows.append((f"{plan.NAMES[m]}, {plan.CLUSTERS[c].title}", f"{states(base) / 2**30:.2f} GiB",
                             *[f"+{100 * (states(r) / states(base) - 1):.0f} %" if r else "" for k, r in results.items() if k != "EP"],
                             f"{base['paper_memory']['saved'] / 2**30:.1f} GiB"))
        self.add(*table(["parameters, gradients, states of a device (the paper's count)", "EP", *[k for k in plan.POLICIES if k != "EP"],
                         "kept for backward"], rows))

    # ---- one thing at a time

    def ablations(self):
        n = self.n
        for c in ("A", "B"):
            paper = {what: n.us(plan.spec("gpt-moe-s", c, "FSSDP", "late", more=more)) for what, more in plan.PAPER_ABLATIONS.items()}
            if not paper["both"]:
                continue
            self.add(f"FSSDP, GPT-MoE-S on {c}, loads recorded, late (simulated); the paper's factors are those of B:", "")
            rows = [(what, ms(us), times(us and us / paper["both"]), known)
                    for (what, us), known in zip(paper.items(), ("", "1.27", "3.32"))]
            us = n.us(plan.spec("gpt-moe-s", c, "FSSDP", "late", passes="no overlap"))
            rows.append(("no transfer behind computation", ms(us), times(us and us / paper["both"]), ""))
            self.add(*table(["", "ms", "times as long", "the paper"], rows))
            whole = n.us(plan.spec("gpt-moe-s", c, "quota", "late"))
            rows = [(what, ms(us), times(us and us / whole)) for what, more in plan.ABLATIONS.items()
                    for us in [n.us(plan.spec("gpt-moe-s", c, "quota", "late", more=more))]]
            us = n.us(plan.spec("gpt-moe-s", c, "quota", "late", passes="no overlap"))
            rows.append(("no transfer behind computation", ms(us), times(us and us / whole)))
            self.add(f"Quota, the same:", "", *table(["", "ms", "times as long"], rows))

    def intervals(self):
        n, rows = self.n, []
        for every in plan.INTERVALS:
            more = (f"parallel.placement.reshard.iterations={every}",)
            base = n.us(plan.spec("gpt-moe-s", "B", "EP", "long"))
            known = [n.us(plan.spec("gpt-moe-s", "B", name, "long", more=more)) for name in ("SmartMoE", "FlexMoE", "FSSDP", "quota")]
            rows.append((every, *[times(us and base and base / us) for us in known]))
        self.add(*table(["iterations between re-shardings", "SmartMoE", "FlexMoE", "FSSDP", "quota"], rows))

    def batches(self):
        n, curves = self.n, {}
        wanted = list(dict.fromkeys(each.sets[-2].split("=")[1] for each in plan.batch_specs(n.quick)))
        for name, key, kind, steps in (("EP", "EP", "late", plan.STEPS), ("FSSDP", "FSSDP", "late", plan.STEPS),
                                       ("quota", "quota", "late", plan.STEPS), ("balanced", "EP", "balanced", 2),
                                       ("local", "EP", "local", 2)):
            known = []
            for b in wanted:
                us = n.us(plan.spec("gpt-moe-s", "B", key, kind, more=plan.batch_sets(int(b)), steps=steps))
                known.append(us and int(b) * 2048 * 32 / us)
            if all(known):
                curves[name] = known
        if "EP" not in curves:
            return
        self.show("batch", picture.lines("Tokens a second and batch, GPT-MoE-S on B, loads recorded, late", curves,
                                         [str(b) for b in wanted], "million tokens a second", "sequences of 2,048 tokens a device and iteration"))
        rows = [(b, *[f"{curves[name][i]:.2f}" for name in curves], times(curves["quota"][i] / curves["EP"][i]))
                for i, b in enumerate(wanted)]
        self.add(*table(["sequences a device", *[f"{name}, M tokens/s" for name in curves], "quota over EP"], rows))

    def growth(self):
        n, rows = self.n, []
        for nodes, experts in plan.GROWTH:
            specs = [plan.spec("gpt-moe-s", "B", name, "assumed", more=plan.growth_sets(nodes), defines=(f"E={experts}",), steps=3)
                     for name in ("EP", "FSSDP", "quota")]
            known = [n.us(each) for each in specs]
            if known[0]:
                took = max(n.get(each)["seconds"] for each in specs if n.get(each))
                rows.append((f"{8 * nodes:,} x {experts}", *[ms(us) for us in known], *[times(us and known[0] / us) for us in known[1:]],
                             f"{n.mean(specs[2], 'imbalance'):.2f}", f"{took:.0f} s"))
        self.add(*table(["devices x experts", "EP, ms", "FSSDP", "quota", "FSSDP over EP", "quota over EP", "quota, max/mean",
                         "simulating 3 steps took"], rows))

    def others(self):
        n, rows = self.n, []
        for name in plan.OTHERS:
            cells = []
            for c in ("A", "B"):
                for which in ("late", "early"):
                    us = n.us(plan.spec("gpt-moe-s", c, name, which, plan.OTHERS))
                    mine = n.us(plan.spec("gpt-moe-s", c, "quota", which))
                    cells += [f"{ms(us)} ({times(us / mine)})" if us and mine else ""]
            rows.append((name, *cells))
        self.add(*table(["ms (times quota's)", "A, late", "A, early", "B, late", "B, early"], rows))


def sentences(line):
    """A line of prose as one sentence a line, of at most 120 columns; other lines as they are."""
    if line.startswith(("|", "!", "#", "    ")):
        return [line]
    item = "  " if line.startswith("- ") else ""
    parts = re.split(r"(?<=[.:;]) (?=[A-Z*`\[])", line)
    indented = [parts[0], *(item + part for part in parts[1:])]
    return [row for part in indented
            for row in textwrap.wrap(part, 120, subsequent_indent=item, break_long_words=False, break_on_hyphens=False) or [""]]


def write(path, results, bench, quick):
    page = Page(path, results, bench, quick)
    words.compose(page)
    path.write_text("\n".join(row for line in page.lines for row in sentences(line)).rstrip() + "\n")
