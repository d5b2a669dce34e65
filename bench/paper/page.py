"""Writes the page: tables, pictures, assumptions, the paper's figures beside ours."""
import re
import textwrap

import picture
import plan
import words
from numbers_of import Numbers, geometric

PAPER = {"A16": (1.40, 1.58), "A": (1.34, 1.78), "B": (1.26, 1.70)}  # Speedups over EP, its sections 5.2 and 5.3.
LOADS = {which: f"EP {which}" for which in plan.IMBALANCES} | {"recorded": "recorded"}
SLOWER = 1.01  # Times as long as the best rival: a loss.


def ms(us):
    return "" if us is None else f"{us / 1e3:,.0f}" if us >= 1e4 else f"{us / 1e3:.1f}"


def times(ratio):
    return "" if ratio is None else f"{ratio:.2f}"


def mean_and_least(ratios):
    return f"{geometric(ratios):.2f} ({min(ratios):.2f})" if ratios else ""


def table(head, rows):
    align = ["---"] + ["---:"] * (len(head) - 1)
    return ["| " + " | ".join(each) + " |" for each in [head, align, *[[str(cell) for cell in row] for row in rows]]] + [""]


def spread(ratios):
    ratios = [r for r in ratios if r]
    return f"{min(ratios):.2f} to {max(ratios):.2f}, geometric mean {geometric(ratios):.2f}" if ratios else "not simulated"


def title_of(model, cluster):
    return f"{plan.NAMES[model]}, {plan.CLUSTERS[cluster].title}"


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

    def rows(self, head, rows):
        """A table; nothing where it has no rows."""
        self.add(*(table(head, rows) if rows else []))

    # ---- losses, and the whole

    def losses(self):
        """Configurations in which the best rival is faster than quota by more than 1 %."""
        n, rows = self.n, []
        for c, m in n.every():
            for which in n.loads:
                name, us = n.best(m, c, which)
                mine = n.us(plan.spec(m, c, "quota", which))
                if us and mine and mine > SLOWER * us:
                    rows.append((f"{title_of(m, c)}, {LOADS[which]}", ms(mine), f"{ms(us)}, {name}", times(mine / us)))
        for c in n.clusters:
            for k in plan.ITERATIONS:
                name, us = n.best("gpt-moe-s", c, "2", iterations=k)
                mine = n.us(plan.spec("gpt-moe-s", c, "quota", "2", iterations=k))
                if us and mine and mine > SLOWER * us:
                    rows.append((f"{title_of('gpt-moe-s', c)}, {LOADS['2']}, {k} iterations a step", ms(mine), f"{ms(us)}, {name}",
                                 times(mine / us)))
        for b in plan.SEQUENCES:
            known = {name: n.us(plan.spec("gpt-moe-s", "B", name, "2", more=plan.batch_sets(b))) for name in ("EP", "LAER", "quota")}
            us = min((each, name) for name, each in known.items() if each and name != "quota") if known["EP"] else None
            if us and known["quota"] and known["quota"] > SLOWER * us[0]:
                rows.append((f"{title_of('gpt-moe-s', 'B')}, {LOADS['2']}, {b} sequences", ms(known["quota"]), f"{ms(us[0])}, {us[1]}",
                             times(known["quota"] / us[0])))
        return rows

    def judged(self):
        n, rows = self.n, []
        for c in n.clusters:
            for which in n.loads:
                best = dict.fromkeys(n.best(m, c, which)[0] for m in n.models)
                rows.append((f"{plan.CLUSTERS[c].title}, {LOADS[which]}", mean_and_least(n.over("FSSDP", "EP", which, [c])),
                             mean_and_least(n.over("quota", "EP", which, [c])), mean_and_least(n.over("quota", None, which, [c])),
                             ", ".join(name for name in best if name),
                             f"{100 * geometric(n.of_ideal('quota', which, [c])):.0f} %"))
        self.rows(["cluster, loads", "FSSDP over EP", "quota over EP", "quota over the best rival", "best rivals",
                         "quota, of the ideal's speed"], rows)

    # ---- end to end

    def end_to_end(self):
        n = self.n
        for c in n.clusters:
            groups = [(LOADS[which], {name: r for name in plan.POLICIES
                                      for r in [geometric(n.over(name, "EP", which, [c]))] if r}) for which in n.loads]
            marks = [(LOADS[which], *PAPER[c]) for which in n.loads if which in ("1.3", "2")]
            self.show(f"speedup-{c}", picture.bars(
                f"Times as fast as expert parallelism, {plan.CLUSTERS[c].title}; dashed: FSSDP's range in the paper", groups,
                "times", marks))
        for which in n.loads:
            self.add(f"Milliseconds a step, loads {LOADS[which]} (simulated):", "")
            rows = [(title_of(m, c), *[ms(n.us(plan.spec(m, c, name, which))) for name in plan.POLICIES],
                     ms(n.us(plan.free(m, c, which))), ms(n.ideal(m, c, which))) for c, m in n.every()]
            self.rows(["", *plan.POLICIES, "EP, free links", "ideal"], rows)

    def small(self):
        n, rows = self.n, []
        for m in n.models:
            for which in ("1.3", "2"):
                known = {name: n.us(plan.spec(m, "A16", name, which)) for name in ("EP", "FSSDP", "quota")}
                if all(known.values()):
                    rows.append((f"{title_of(m, 'A16')}, {LOADS[which]}", *map(ms, known.values()),
                                 times(known["EP"] / known["FSSDP"]), times(known["EP"] / known["quota"])))
        self.rows(["", *[f"{name}, ms" for name in ("EP", "FSSDP", "quota")], "FSSDP over EP", "quota over EP"], rows)

    # ---- several iterations a step

    def accumulated(self):
        n, rows = self.n, []
        for c in n.clusters:
            for k in (1, *plan.ITERATIONS):
                known = [n.us(plan.spec("gpt-moe-s", c, name, "2", iterations=k)) for name in plan.POLICIES]
                rival, us = n.best("gpt-moe-s", c, "2", iterations=k)
                mine = known[-1]
                if mine and us:
                    rows.append((f"{plan.CLUSTERS[c].title}, {k}", *map(ms, known),
                                 ms(n.us(plan.free("gpt-moe-s", c, "2", iterations=k))),
                                 ms(n.ideal("gpt-moe-s", c, "2", k)), f"{us / mine:.2f} ({rival})"))
        self.rows(["cluster, iterations of a step", *plan.POLICIES, "EP, free links", "ideal", "quota over the best rival"], rows)

    # ---- per layer

    def per_layer(self):
        n, rows = self.n, []
        for c in n.clusters:
            curves = {}
            for name in plan.POLICIES:
                result = n.get(plan.spec("gpt-moe-s", c, name, "2"))
                if result:
                    curves[name] = [us / 1e3 for us in result["layer_us"]]
            for name in curves:
                if name != "EP":
                    rows.append((f"{name}, {plan.CLUSTERS[c].title}", spread([e / v for e, v in zip(curves["EP"], curves[name])])))
            self.show(f"layers-{c}", picture.lines(
                f"Time of the experts of each layer, GPT-MoE-S on {plan.CLUSTERS[c].title}, loads {LOADS['2']}", curves,
                [str(i) for i in range(len(curves["EP"]))], "ms", "layer"))
        self.rows(["times as fast as EP, layer by layer (simulated)", "least to most"], rows)

    # ---- critical path

    def breakdown(self):
        n = self.n
        for model in [m for m in ("gpt-moe-s", "bert-moe-deep") if m in n.models]:
            for c in n.clusters:
                rows = [(name, n.path(plan.spec(model, c, name, "2"))) for name in plan.POLICIES]
                rows += [("EP, free links", n.path(plan.free(model, c, "2"))), ("even, nothing sent", n.path(plan.local(model, c)))]
                self.show(f"path-{model}-{c}", picture.stacks(
                    f"Critical path of a step, {plan.NAMES[model]} on {plan.CLUSTERS[c].title}, loads {LOADS['2']}",
                    [row for row in rows if row[1]], "ms"))

    # ---- memory

    def memory(self):
        n, rows = self.n, []
        for c, m in n.every():
            results = [n.get(plan.spec(m, c, name, "2")) for name in plan.POLICIES]
            rows.append((title_of(m, c), *[f"{r['memory']['all'] / 2**30:.1f}" if r else "" for r in results]))
        self.rows(["GiB of a device (simulated)", *plan.POLICIES], rows)
        rows = []
        for m in n.models:
            for name in ("FSSDP", "quota"):
                known = [n.get(plan.spec(m, "B", name, "2", more=(f"parallel.placement.rematerialize={flag}",)))
                         for flag in plan.REMATERIALIZE.values()]
                base = n.get(plan.spec(m, "B", "EP", "2"))
                if base and all(known):
                    rows.append((f"{plan.NAMES[m]}, {name}", *[f"+{100 * (states(r) / states(base) - 1):.0f} %" for r in known],
                                 *[ms(r["step_us"]) for r in known]))
        if rows:
            self.add("Parameters, gradients and states as the paper counts them (`paper_memory` of "
                     "[`--simulate --json`](simulate.md#for-programs)), over EP's, on B. "
                     "The paper: +64 % for FSSDP, +11.6 % re-materialized.", "",
                     *table(["", *plan.REMATERIALIZE, *[f"{name}, ms" for name in plan.REMATERIALIZE]], rows))

    # ---- one thing at a time

    def ablations(self):
        for c in self.n.clusters:
            self.ablation("FSSDP", c, plan.PAPER_ABLATIONS, ("", "1.27", "3.32", ""))
            self.ablation("quota", c, plan.ABLATIONS, ())

    def ablation(self, name, cluster, changes, paper):
        n = self.n
        known = {what: n.us(plan.spec("gpt-moe-s", cluster, name, "2", more=more, even=even)) for what, (more, even) in changes.items()}
        known[plan.WITHOUT_OVERLAP] = n.us(plan.spec("gpt-moe-s", cluster, name, "2", passes="no overlap"))
        whole = next(iter(known.values()))
        if not whole:
            return
        head = ["", "ms", "times as long"] + (["the paper, on B"] if paper else [])
        rows = [(what, ms(us), times(us and us / whole), *([paper[i]] if paper else [])) for i, (what, us) in enumerate(known.items())]
        self.add(f"{name}, {title_of('gpt-moe-s', cluster)}, loads {LOADS['2']} (simulated):", "", *table(head, rows))

    def intervals(self):
        n, rows = self.n, []
        for every in plan.INTERVALS:
            more = (f"parallel.placement.reshard.iterations={every}",)
            base = n.us(plan.spec("gpt-moe-s", "B", "EP", "long"))
            known = [n.us(plan.spec("gpt-moe-s", "B", name, "long", more=more)) for name in ("SmartMoE", "FlexMoE", "FSSDP", "quota")]
            rows.append((every, *[times(us and base and base / us) for us in known]))
        self.rows(["iterations between re-shardings", "SmartMoE", "FlexMoE", "FSSDP", "quota"], rows)

    def batches(self):
        n, curves = self.n, {}
        wanted = plan.SEQUENCES[1:4] if n.quick else plan.SEQUENCES
        specs = {name: [plan.spec("gpt-moe-s", "B", name, "2", more=plan.batch_sets(b)) for b in wanted]
                 for name in ("EP", "LAER", "FSSDP", "quota")}
        specs["even, nothing sent"] = [plan.local("gpt-moe-s", "B", more=plan.batch_sets(b)) for b in wanted]
        for name, each in specs.items():
            known = [(b, n.us(one)) for b, one in zip(wanted, each)]
            if all(us for _, us in known):
                curves[name] = [b * 2048 * 32 / us for b, us in known]
        self.show("batch", picture.lines(f"Tokens a second and batch, GPT-MoE-S on B, loads {LOADS['2']}", curves,
                                         [str(b) for b in wanted], "million tokens a second", "sequences of 2,048 tokens a device and iteration"))
        rows = [(b, *[f"{curves[name][i]:.2f}" for name in curves], times(curves["quota"][i] / curves["EP"][i]))
                for i, b in enumerate(wanted)]
        self.rows(["sequences a device", *[f"{name}, M tokens/s" for name in curves], "quota over EP"], rows)

    def growth(self, sizes):
        n, rows = self.n, []
        for nodes, devices, experts in sizes:
            specs = {name: plan.growth_spec(name, nodes, devices, experts) for name in plan.SHOWN}
            known = {name: n.us(each) for name, each in specs.items()}
            if known["EP"] and known["quota"]:
                rival = min((us, name) for name, us in known.items() if us and name in plan.RIVALS)
                took = max(n.get(each)["seconds"] for each in specs.values() if n.get(each))
                rows.append((f"{nodes} x {devices}, {experts} experts", *map(ms, known.values()), f"{rival[0] / known['quota']:.2f} ({rival[1]})",
                             f"{n.mean(specs['quota'], 'imbalance'):.2f}", f"{took:.0f} s"))
        self.rows(["nodes x devices", *[f"{name}, ms" for name in plan.SHOWN], "quota over the best rival", "quota, max/mean",
                         "simulating 3 steps took"], rows)


def states(result):
    """The paper's count, in bytes: parameters, gradients and optimizer states of a device, replicas as the policy's
    authors hold them, without saved values and temporaries."""
    memory = result["paper_memory"]
    return memory["experts"] + memory["replicas"] + memory["rest"]


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
