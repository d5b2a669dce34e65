"""Compares what programs of one rank and of several have computed: see exact.py."""
import array
import json
import math
import random
import struct


class Apart(Exception):
    """Two runs differ by more than rounding may explain."""


def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    header.pop("__metadata__")
    result = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        kind = {"F32": "f", "F64": "d"}[entry["dtype"]]
        result[name] = array.array(kind, data[end + first : end + last])
    return result


def norm(values):
    return math.hypot(*values)


def gradients(bound, a, b):
    """Files of gradients, tensor by tensor: at most BOUND |g| + BOUND / 20 of all gradients /
    sqrt(number of tensors) apart. Returns the worst as a share of what is allowed."""
    left, right = tensors(a), tensors(b)
    if not left or left.keys() != right.keys():
        raise Apart("the files have other tensors")
    everything = norm(norm(g) for g in left.values())
    if not everything > 0:
        raise Apart("all gradients are zero")
    floor = bound / 20 * everything / math.sqrt(len(left))
    worst = 0
    for name, g in left.items():
        apart = math.dist(g, right[name])
        allowed = bound * norm(g) + floor
        worst = max(worst, apart / allowed)
        if not apart <= allowed:
            raise Apart(f"{name}: |g| {norm(g):.3g}, {apart:.3g} apart, {allowed:.3g} allowed")
    return worst


def number(line, key):
    """A number of a step, or one of its losses by name."""
    return line[key] if key in line else line["losses"][key]


def distance(x, y, key):
    return abs(number(x, key) - number(y, key)) / (abs(number(x, key)) or 1)


def log(path):
    with open(path) as lines:
        return list(map(json.loads, lines))


def losses(bound, a, b, first=None, bent=()):
    """Logs, step by step, all or the FIRST ones: at most BOUND apart, relatively, and 8 times as far as the
    farthest of the logs BENT is from A in this step. Returns the worst."""
    steps, others = list(zip(log(a), log(b), strict=True)), [log(path) for path in bent]
    if len(steps) < 2:
        raise Apart("no steps")
    worst = 0
    for step, (x, y) in enumerate(steps[:first]):
        for key in ("loss", "cross_entropy", "aux", "grad_norm", *x.get("losses", ())):
            apart = distance(x, y, key)
            allowed = bound + 8 * max((distance(x, other[step], key) for other in others), default=0)
            worst = max(worst, apart)
            if not apart <= allowed:
                raise Apart(f"step {x['step']}: {key} {number(x, key)} and {number(y, key)}, {apart:.3g} apart, "
                            f"{allowed:.3g} allowed")
        if x.get("tokens_per_expert") != y.get("tokens_per_expert"):
            raise Apart(f"loads of step {x['step']}")
    return worst


def bend(path, bent, seed):
    """Copies a file of float parameters; of one in ten numbers that are not zero the last bit is another."""
    with open(path, "rb") as file:
        data = file.read()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    numbers, draw = array.array("I", data[end:]), random.Random(seed)
    for i, number in enumerate(numbers):
        if number & 0x7FFFFFFF and draw.random() < 0.1:
            numbers[i] ^= 1
    with open(bent, "wb") as file:
        file.write(data[:end] + numbers.tobytes())


def doubles(path):
    with open(path, "rb") as file:
        return array.array("d", file.read())


class Routing:
    """A record of routing (docs/routing.md): ids by sequence, layer, position and pick."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.sequences, self.positions, self.layers = struct.unpack("<3I", data[8:20])
        end = 20 + 8 * self.layers
        self.head, self.ids = data[:end], array.array("H", data[end:])
        self.topk = struct.unpack(f"<{2 * self.layers}I", data[20:end])[1::2]
        self.start = [sum(self.topk[:layer]) * self.positions for layer in range(self.layers + 1)]

    def sequence(self, number):
        return self.ids[number * self.start[-1] : (number + 1) * self.start[-1]]

    def token(self, sequence, layer, position):
        at = sequence * self.start[-1] + self.start[layer] + position * self.topk[layer]
        return self.ids[at : at + self.topk[layer]]


def first_flip(left, right):
    """The first sequence of two records with a token that went to another expert, or None. Records of
    other models are an error."""
    if left.head != right.head or len(left.ids) != len(right.ids):
        raise Apart("records of other runs")
    for sequence in range(left.sequences):
        if left.sequence(sequence) != right.sequence(sequence):
            return sequence
    return None


def flip_gap(left, right, gaps, step, sequences, each):
    """How close the choice was (capture.c: CAPTURE_GAPS) of the tokens that went to other experts in STEP of
    SEQUENCES sequences, EACH of them in one iteration. Only those of the lowest layer: they cannot follow
    from others. Returns the greatest gap and where it is."""
    first = step * sequences
    tokens = [(layer, sequence, position)
              for layer in range(left.layers)
              for sequence in range(first, first + sequences)
              for position in range(left.positions)
              if left.token(sequence, layer, position) != right.token(sequence, layer, position)]
    worst = max(
        (gaps[(sequence // each * left.layers + layer) * each * left.positions
              + sequence % each * left.positions + position], layer, sequence, position)
        for layer, sequence, position in tokens if layer == tokens[0][0])
    gap, layer, sequence, position = worst
    return gap, f"layer {layer}, sequence {sequence}, position {position}"
