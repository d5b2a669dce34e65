#!/usr/bin/env python3
"""parts.py HECATEC ROOT: fingerprint writes down the whole meaning of a program, and nothing else.

In the graphs of several models each attribute of each kind of operation is changed, each elementwise operation made
another, each pair of operands exchanged, one at a time: where hecatec still takes the graph, a part has to be another.
The models have every operation that graphs are built of. The machine of a program changes no part."""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

HECATEC, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
MODELS = [["-D", "soft=true", "tests/mpi/small.moe"],
          *([str(path.relative_to(ROOT))] for path in sorted((ROOT / "tests/reference/models").glob("*.moe")))]
# Initializers of parameters: a checkpoint has the values. Names of symbols: references to them have them, too.
BEGINS = {"param.init", "param.deviation"}
NAMES = {"param.sym_name", "set.sym_name", "slot.sym_name"}
ELEMENTWISE = ["silu", "gelu", "gelu_erf", "relu", "sigmoid", "tanh", "exp", "sqrt", "neg"]
PAIRS = ["add", "sub", "mul", "div", "minimum", "maximum"]
ONE = "--set cluster.nodes=1 --set cluster.devices=1 --set train.precision=fp32".split()
MACHINES = ["parallel.microbatch=2", "train.precision=bf16", "train.precision=fp64", "cluster.devices=2",
            "cluster.devices=2 parallel.experts=ep parallel.dense=states", "parallel.recompute=all",
            "parallel.experts=replicate cluster.devices=2"]


def run(*arguments):
    return subprocess.run([HECATEC, "-w", *arguments], capture_output=True, text=True, cwd=ROOT)


def parts_in(text):
    return re.search(r"hecate\.parts = (.*?), hecate\.positions = ", text).group(1)


def parts_of(graph):
    """None: hecatec does not take it."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(graph)
        file.flush()
        done = run("--compile-from=graph", "--compile-to=fingerprint", "-o", "-", file.name)
    if done.returncode not in (0, 1):
        sys.exit(f"ended with {done.returncode}: {done.stderr[-1000:]}")
    return None if done.returncode else parts_in(done.stdout)


def other_value(value):
    if value in ("true", "false"):
        return "false" if value == "true" else "true"
    if re.fullmatch(r"-?\d+ : \w+", value):
        number, kind = value.split(" : ")
        return f"{int(number) + 1} : {kind}"
    if value.endswith(" : f64"):
        number = float(value[:-6])
        return f"{number * 2 if number else 1.0:e} : f64"
    words = {'"softmax"': '"sigmoid"', '"sigmoid"': '"softmax"', '"renormalized"': '"scores"', '"scores"': '"renormalized"',
             '"lowest"': '"position"', '"position"': '"lowest"', '"best"': '"two_best"', '"two_best"': '"best"'}
    return words.get(value, value[:-1] + 'x"' if value.startswith('"') else None)


ATTRIBUTE = re.compile(r"(\w+) = (true|false|-?[\d.e+-]+ : \w+|\"[^\"]*\")")


def changes(graph):
    """The change, and the changed graph."""
    at = 0
    for line in graph.splitlines(True):
        kind = re.search(r'"moe\.(\w+)"\(([^)]*)\)(?: \{(.*?)\} :| :)', line)
        if kind:
            op, operands, attributes = kind.groups()
            begin = at + kind.start(3)
            for found in ATTRIBUTE.finditer(attributes or ""):
                other = other_value(found.group(2))
                if other:
                    here = slice(begin + found.start(2), begin + found.end(2))
                    yield f"{op}.{found.group(1)}", graph[:here.start] + other + graph[here.stop:]
            for family in (ELEMENTWISE, PAIRS):
                if op in family:
                    other = family[family.index(op) - 1]
                    yield f"{op} as {other}", graph[:at] + line.replace(f"moe.{op}", f"moe.{other}") + graph[at + len(line):]
            if op in PAIRS and operands.count(",") == 1:
                a, b = operands.split(", ")
                types = re.search(r": \((.*)\) ->", line).group(1)
                first, second = re.match(r"(tensor<.*?>), (tensor<.*>)", types).groups()
                turned = line.replace(operands, f"{b}, {a}").replace(types, f"{second}, {first}")
                if a != b:
                    yield f"operands of {op}", graph[:at] + turned + graph[at + len(line):]
        at += len(line)


def built():
    """Operations that graphs are built of."""
    text = "".join(path.read_text() for path in (ROOT / "ir/build").glob("*.c"))
    return {name for name in re.findall(r"HEC_OP_([a-z_0-9]+)", text)}


def main():
    seen, kinds, told, tries = set(), set(), set(), collections.Counter()
    for model in MODELS:
        graph = run("--compile-to=graph", *ONE, "-o", "-", *model)
        if graph.returncode:
            sys.exit(f"{model}: {graph.stderr}")
        graph = graph.stdout
        before = parts_of(graph)
        if before is None:
            sys.exit(f"{model}: the graph does not read back")
        kinds |= set(re.findall(r'"moe\.(\w+)"', graph))
        for what, other in changes(graph):
            tries[what] += 1
            if what in seen or tries[what] > 5:  # Some cannot be changed alone.
                continue
            parts = parts_of(other)
            if parts is None:
                continue
            seen.add(what)
            if what in BEGINS and parts != before and 'init=rope' not in before:
                sys.exit(f"{model[-1]}: {what} is said, though it only begins parameters")
            if what in BEGINS or what in NAMES:
                continue
            if parts == before:
                sys.exit(f"{model[-1]}: {what} is another, and no part is")
            told.add(what)
    if built() - kinds:
        sys.exit(f"no model here has {sorted(built() - kinds)}")
    if len(told) < 60:
        sys.exit(f"only {len(told)} changes were tried: {sorted(told)}")
    model = MODELS[0]
    same = parts_in(run("--compile-to=fingerprint", *ONE, "-o", "-", *model).stdout)
    for machine in MACHINES:
        settings = [word for key in machine.split() for word in ("--set", key)]
        done = run("--compile-to=fingerprint", *settings, "-o", "-", *model)
        if done.returncode or parts_in(done.stdout) != same:
            sys.exit(f"{machine}: parts are others {done.stderr}")
    print(f"{len(told)} kinds of changes, {len(seen)} tried")


main()
