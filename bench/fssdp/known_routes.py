"""Plans from known routes on an emulated cluster: other experts are popular in each iteration and layer.

    known_routes.py --hecatec BIN [--zipf 1.2 ...] [--layers 2] [--iterations 1] and the options of compare.py,
    beside which it lies

Several exponents are those of the layers, in turn. Waits beyond the first layer are those for chunks of all others, and
for their gradients.

Steps with plans from known routes (parallel.placement.forecast = routes), from forecasts, and of expert
parallelism, all forced to the same ids; beside them the same programs forced to equal loads. Needs root;
exit code 77 where the testbed cannot be set up.
"""
import random
import struct
import sys
import tempfile
from pathlib import Path

import compare

EXPERTS, TOPK, MICROBATCH = 32, 2, 16  # Those of gpt-small.moe.
LAYERWISE = "--set log.loads=1"  # The log has waits by layer.
ROUTES = f"{LAYERWISE} --set parallel.placement.forecast=routes"


def picks(random_, weights, tokens):
    """TOPK experts of each token, all different, in proportion to `weights` as far as that can be."""
    chosen = []
    for _ in range(tokens):
        first = random_.choices(range(EXPERTS), weights)[0]
        second = first
        while second == first:
            second = random_.choices(range(EXPERTS), weights)[0]
        chosen += [first, second]
    return struct.pack(f"<{len(chosen)}H", *chosen)


def write_ids(path, zipf, layers, positions, iterations, sequences):
    """Ids of `sequences` per iteration, the layers' by the exponents `zipf` in turn. Each iteration and layer has
    another order of the experts. Tokens of an iteration repeat those of its first sequences, since drawing is slow."""
    random_ = random.Random(1)
    with open(path, "wb") as out:
        out.write(b"HROUTE1\n" + struct.pack("<3I", iterations * sequences, positions, layers))
        out.write(struct.pack("<2I", EXPERTS, TOPK) * layers)
        for _ in range(iterations):
            drawn_of = []
            for layer in range(layers):
                order = random_.sample(range(EXPERTS), EXPERTS)
                weights = [1 / (order[e] + 1) ** zipf[layer % len(zipf)] for e in range(EXPERTS)]
                drawn_of.append([picks(random_, weights, positions) for _ in range(8)])
            for sequence in range(sequences):
                for drawn in drawn_of:
                    out.write(drawn[sequence % len(drawn)])


def beyond(result):
    return f"{result['beyond']:.1f} ({100 * result['beyond'] / result['ms']:.2f} % of the step)" if result["took"] else ""


def table(results):
    lines = ["", "| program | ids | ms per step | least to most | of its own with equal loads | sparse collectives ms | "
             "waited for ms | for late ranks ms | waited for beyond the first layer ms |", "|" + " --- |" * 9]
    for (name, load), result in results.items():
        lines.append(f"| {name} | {load} | {result['ms']:.0f} | {result['least']:.0f} to {result['most']:.0f} | "
                     f"{result['ms'] / results[name, 'equal']['ms']:.3f} | "
                     + " | ".join(compare.exposed(result)) + " | " + beyond(result) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = compare.parser()
    parser.add_argument("--zipf", type=float, nargs="+", default=[1.2])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=1, help="iterations a step")
    options = compare.finished(parser.parse_args())
    batch = options.nodes * options.ranks * MICROBATCH
    positions = 344 if options.quarter else 688  # T of gpt-small.moe.
    if options.layers != 2:
        options.compile += f" -D L={options.layers}"
    if options.iterations > 1:
        options.compile += f" --set train.tokens={batch * positions * options.iterations}"
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_ids(work / "ids", options.zipf, options.layers, positions, options.steps * options.iterations, batch)
        programs = {"ep": compare.compile_model(options, "ep", work),
                    "fssdp, forecast": compare.compile_model(options, "fssdp", work, "forecast", LAYERWISE),
                    "fssdp, known": compare.compile_model(options, "fssdp", work, "known", ROUTES)}
        compare.run(compare.CLUSTER, "up", options.nodes, options.ranks, options.rate)
        try:
            for name, program in programs.items():
                for load, route in ("equal", "balanced"), ("change", f"ids:{work / 'ids'}"):
                    results[name, load] = compare.measure(options, program, route, work)
                    print(name, load, results[name, load], file=sys.stderr, flush=True)
        finally:
            compare.run(compare.CLUSTER, "down")
    text = compare.heading(options, "Plans from known routes") + \
        f"\nIds: Zipf {', '.join(map(str, options.zipf))}; in each iteration and layer other experts are popular; " \
        f"{options.iterations} iterations a step.\n" + table(results)
    print(text)
    if options.out:
        Path(options.out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
