"""mutate.py [--count N] [--seed S] [--stage NAME] [--keep DIR]: random changes of the printed IR, N of them at each stage:
attributes, operands, types, order, symbols; operations gone or there twice. Each mutant is refused with a message, or
the passes that are left and the emitter take it, and then the reference interpreter finds the same numbers before and
behind them. Never a crash, a hang or a silent refusal. Environment: HECATEC, INTERPRET.

Counts at the end: refused; unproven (a proof refuses what the verifier cannot see: exit 1, too); meaningless (the mutant
itself reads what is undefined, so there is nothing to compare); equal."""
import argparse
import collections
import os
import pathlib
import random
import re
import select
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fuzz"))
import random_model

TRAIN = "train { tokens = 8 }\nparallel { microbatch = 2 }\ndata { format = bytes }\n"
SMALL = [word for size in ("V=8", "T=4", "D=4", "F=4", "H=2", "A=2") for word in ("-D", size)]
RANKS = ["--set", "cluster.devices=2", "--set", "parallel.microbatch=1"]
BASES = [  # Seed of a random model, or a file; flags.
    ("emitted.moe", ["-D", "G=2", "--set", "train.precision=fp32"]),
    (3, [*RANKS, "--set", "parallel.rows_max=4"]),
    ("emitted.moe", [*RANKS, "--set", "train.tokens=8", "--set", "parallel.rows_max=4", "--set", "train.precision=fp32"]),
    (6, []),
    (11, ["--set", "train.precision=bf16"]),
    (13, [*RANKS, "--set", "parallel.experts=ep"]),
]
SECONDS = 60
MUTANTS_OF_A_BASE = 10  # At least.
LOCATION = re.compile(r" loc\((?:[^()\"]|\"[^\"]*\"|\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\))*\)")
VALUE = re.compile(r"%[\w.#$-]+")
NUMBERS = [0, 1, -1, 2, 3, 7, 64, 4097, 1 << 31, 1 << 40]


def plain(text):
    """The text without locations."""
    return "\n".join(LOCATION.sub("", line) for line in text.splitlines() if not line.startswith("#loc"))


def operations(lines):
    return [i for i, line in enumerate(lines) if re.search(r'^\s*(%[^=]*= )?("\w|arith|scf\.for|func\.call)', line)]


def types_of(lines):
    """The type of each value, as far as lines tell it."""
    types = {}
    for line in lines:
        for name, own in re.findall(r"(%[\w.$-]+): (tensor<[^>]*>|index)", line):
            types[name] = own
        made = re.match(r"\s*(%[\w.$-]+)(:\d+)? = .*-> (.*?)( \{)?$", line)
        if made:
            own = re.findall(r"tensor<[^>]*>|index", made[3])
            for k, one in enumerate(own):
                types[f"{made[1]}#{k}" if made[2] else made[1]] = one
    return types


def change_operand(draw, lines, at):
    head = lines[at].split(" = ", 1)[-1]
    used = VALUE.findall(head)
    types = types_of(lines)
    if not used:
        return
    old = draw.choice(used)
    same = [name for name, own in types.items() if own == types.get(old)]
    new = draw.choice(same if same and draw.random() < 0.9 else list(types))
    tail = lines[at][len(lines[at]) - len(head):]
    lines[at] = lines[at][:len(lines[at]) - len(head)] + tail.replace(old, new, 1)


def change_number(draw, lines, at):
    found = list(re.finditer(r"= (-?\d+)( : i64)|= (-?\d+\.\d+[eE][+-]\d+)|constant (\d+)", lines[at]))
    if not found:
        return
    one = draw.choice(found)
    if one[3]:
        new = draw.choice(["0.0", "-1.5", "2.0e+00", "1.0e-03", "1.0e+30", repr(1.5 * float(one[3]))])
        begin, end = one.span(3)
    else:
        group = 1 if one[1] else 4
        value = int(one[group])
        new = str(draw.choice(NUMBERS + [value + 1, value - 1, 2 * value] * 3))
        begin, end = one.span(group)
    lines[at] = lines[at][:begin] + new + lines[at][end:]


def change_attribute(draw, lines, at):
    """Takes the value of the same key elsewhere, or flips it, or takes it away."""
    found = re.findall(r"([\w.]+) = (@[\w.]+|\"[^\"]*\"|true|false|\[[^\]]*\]|array<[^>]*>|-?\d+ : i64)", lines[at])
    if not found:
        return
    key, value = draw.choice(found)
    if draw.random() < 0.25:
        lines[at] = re.sub(rf"\b{re.escape(key)} = {re.escape(value)}(, )?", "", lines[at], count=1)
        return
    text = "\n".join(lines)
    others = re.findall(rf"\b{re.escape(key)} = (@[\w.]+|\"[^\"]*\"|true|false|\[[^\]]*\]|array<[^>]*>|-?\d+ : i64)", text)
    others += {"true": ["false"], "false": ["true"]}.get(value, [])
    if value.startswith("@"):
        others += re.findall(r"@[\w.]+", text)
    if value.startswith('"'):
        others += [f'"{word}"' for word in draw.sample(re.findall(r'"(\w+)"', text), 3)]
    lines[at] = lines[at].replace(f"{key} = {value}", f"{key} = {draw.choice(others)}", 1)


def add_attribute(draw, lines, at):
    others = re.findall(r"[{,] ?([\w.]+ = (?:@[\w.]+|\"[^\"]*\"|true|\d+ : i64))", "\n".join(lines))
    if others and re.search(r"\{\w", lines[at]):
        lines[at] = re.sub(r"\{(?=\w)", "{" + draw.choice(others) + ", ", lines[at], count=1)


def change_type(draw, lines, at):
    found = re.findall(r"tensor<[^>]*>", lines[at])
    if not found:
        return
    old = draw.choice(found)
    way = draw.randrange(4)
    if way == 0:
        new = re.sub(r"\d+x", lambda one: f"{draw.choice([1, 2, 3, 8])}x", old, count=1)
    elif way == 1:
        new = old.replace("f32", draw.choice(["f64", "bf16", "i32"]))
    elif way == 2:
        new = draw.choice(re.findall(r"tensor<[^>]*>", "\n".join(lines)))
    else:
        new = re.sub(r'"\w+"', f'"{draw.choice(["T", "D", "batch", "rows", "E", "F"])}"', old, count=1)
    if draw.random() < 0.6:  # Everywhere: often well formed.
        lines[:] = [line.replace(old, new) for line in lines]
    else:
        lines[at] = lines[at].replace(old, new, 1)


def delete(draw, lines, at):
    if not lines[at].rstrip().endswith(("{", "({")):
        del lines[at]


def duplicate(draw, lines, at):
    if lines[at].rstrip().endswith(("{", "({")):
        return
    line = re.sub(r"^(\s*%[\w.$-]+)", r"\1_again", lines[at])
    to = at + 1 if draw.random() < 0.6 else draw.choice(operations(lines))
    lines.insert(to, line)
    made = re.match(r"\s*(%[\w.$-]+)", lines[at])
    if made and draw.random() < 0.5:  # Somebody reads the second one.
        for k in range(to + 1, len(lines)):
            if made[1] in lines[k]:
                lines[k] = re.sub(re.escape(made[1]) + r"(?![\w.$-])", made[1] + "_again", lines[k], count=1)
                break


def move(draw, lines, at):
    if lines[at].rstrip().endswith(("{", "({")):
        return
    line = lines.pop(at)
    near = at + draw.choice([-3, -2, -1, 1, 2, 3]) if draw.random() < 0.7 else draw.choice(operations(lines))
    lines.insert(max(1, min(near, len(lines) - 1)), line)


def swap_operands(draw, lines, at):
    match = re.search(r"\((%[^()]*, [^()]*)\)", lines[at])
    if match:
        parts = match[1].split(", ")
        draw.shuffle(parts)
        lines[at] = lines[at].replace(match[1], ", ".join(parts), 1)


def drop_operand(draw, lines, at):
    match = re.search(r"\((%[^()]*)\)(.*) : \(((?:tensor<[^>]*>|index|, )*)\)", lines[at])
    if not match:
        return
    parts, types = match[1].split(", "), re.findall(r"tensor<[^>]*>|index", match[3])
    if len(parts) == len(types):
        gone = draw.randrange(len(parts))
        del parts[gone], types[gone]
        lines[at] = lines[at].replace(match[0], f"({', '.join(parts)}){match[2]} : ({', '.join(types)})", 1)


CHANGES = [change_operand] * 4 + [change_number] * 3 + [change_attribute] * 4 + [add_attribute, change_type, change_type, delete,
           delete, duplicate, duplicate, move, move, move, swap_operands, swap_operands, drop_operand]


def mutant(draw, text):
    lines = text.splitlines()
    for _ in range(draw.choice([1, 1, 1, 1, 2, 3])):
        places = operations(lines)
        at = draw.choice(places) if places and draw.random() < 0.97 else 0
        draw.choice(CHANGES)(draw, lines, at)
    return "\n".join(lines) + "\n"


class Server:
    """The interpreter, fed with mutants; started again when one of them kills it."""

    def __init__(self):
        self.process = None

    def start(self):
        self.process = subprocess.Popen([os.environ["INTERPRET"], "--serve"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.set_blocking(self.process.stderr.fileno(), False)

    def end(self, kill=True):
        if self.process:
            if kill:
                self.process.kill()
            self.process.stdin.close()
            self.process.wait()
            self.process = None

    def ask(self, stage, text):
        if not self.process:
            self.start()
        data = text.encode()
        try:
            self.process.stdin.write(f"{stage} {len(data)}\n".encode() + data)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        if not select.select([self.process.stdout], [], [], SECONDS)[0]:
            self.end()
            return f"HANG after {SECONDS} s"
        said = self.process.stdout.readline().decode(errors="replace").strip()
        if said:
            return said
        code = self.process.wait()
        errors = (self.process.stderr.read() or b"").decode(errors="replace")
        self.end()
        return f"CRASH exit {code}: {errors[-600:]}"


def printed(folder, stage, number):
    """Base `number` after the stage."""
    model, flags = BASES[number]
    source = pathlib.Path(folder, "m.moe")
    if isinstance(model, str):
        source.write_text(pathlib.Path(__file__).with_name(model).read_text())
    else:
        source.write_text(random_model.model(model) + TRAIN)
    return plain(subprocess.run([os.environ["HECATEC"], f"--compile-to={stage}", "-o", "-", *SMALL, *flags, source],
                                check=True, stdout=subprocess.PIPE, text=True).stdout)


def stages():
    said = subprocess.run([os.environ["HECATEC"], "--print-passes"], check=True, stdout=subprocess.PIPE, text=True).stdout
    used, names = collections.Counter(), ["graph"]
    for name in re.search(r"^default: (.*)", said, re.M)[1].split(","):
        used[name] += 1
        names.append(name if used[name] == 1 else f"{name}-{used[name]}")
    return names


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--count", type=int, default=20)
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--stage", choices=stages())
    parse.add_argument("--keep", type=pathlib.Path)
    asked = parse.parse_args()
    failed, server = 0, Server()
    with tempfile.TemporaryDirectory() as folder:
        for number, stage in enumerate([asked.stage] if asked.stage else stages()):
            used = range(number, number + min(len(BASES), asked.count // MUTANTS_OF_A_BASE + 1))
            texts, counts = [printed(folder, stage, k % len(BASES)) for k in used], collections.Counter()
            for text in texts:
                said = server.ask(stage, text)
                if said != "equal":
                    sys.exit(f"{stage}: what hecatec printed is {said}")
            for seed in range(asked.seed, asked.seed + asked.count):
                draw = random.Random(f"{stage} {seed}")
                text = mutant(draw, draw.choice(texts))
                said = server.ask(stage, text)
                word = said.split()[0].rstrip(":")
                counts[word] += 1
                if word in ("refused", "unproven", "meaningless", "equal"):
                    continue
                failed += 1
                print(f"{stage} {seed}: {said}", flush=True)
                if asked.keep:
                    asked.keep.mkdir(parents=True, exist_ok=True)
                    (asked.keep / f"{stage}.{seed}.mlir").write_text(text)
            print(f"{stage:20} {dict(sorted(counts.items()))}", flush=True)
    server.end(kill=False)
    sys.exit(1 if failed else 0)


main()
