"""Compares what programs of one rank and of several have computed: see exact.py."""
import array
import json
import math
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
    return math.sqrt(sum(v * v for v in values))


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
        apart = norm(x - y for x, y in zip(g, right[name], strict=True))
        allowed = bound * norm(g) + floor
        worst = max(worst, apart / allowed)
        if not apart <= allowed:
            raise Apart(f"{name}: |g| {norm(g):.3g}, {apart:.3g} apart, {allowed:.3g} allowed")
    return worst


def losses(bound, a, b, first=None):
    """Logs, step by step, all or the FIRST ones: at most BOUND apart, relatively. Returns the worst."""
    with open(a) as left, open(b) as right:
        steps = list(zip(map(json.loads, left), map(json.loads, right), strict=True))
    if len(steps) < 2:
        raise Apart("no steps")
    worst = 0
    for x, y in steps[:first]:
        for key in ("loss", "cross_entropy", "aux", "grad_norm"):
            apart = abs(x[key] - y[key]) / (abs(x[key]) or 1)
            worst = max(worst, apart)
            if not apart <= bound:
                raise Apart(f"step {x['step']}: {key} {x[key]} and {y[key]}, {apart:.3g} apart")
        if x.get("tokens_per_expert") != y.get("tokens_per_expert"):
            raise Apart(f"loads of step {x['step']}")
    return worst


def first_flip(a, b):
    """Records of routing (docs/routing.md): the first sequence with a token that went to another expert,
    or None. Heads of other models are an error."""
    left, right = (open(path, "rb").read() for path in (a, b))
    sequences, _, layers = struct.unpack("<3I", left[8:20])
    head = 20 + 8 * layers
    if left[:head] != right[:head] or len(left) != len(right):
        raise Apart("records of other runs")
    each = (len(left) - head) // sequences
    for sequence in range(sequences):
        at = head + sequence * each
        if left[at : at + each] != right[at : at + each]:
            return sequence
    return None
