"""compare.py gradients BOUND A B: gradients of one step, in two files, tensor by tensor: at most
BOUND |g| + BOUND / 20 of all gradients / sqrt(number of tensors) apart.
compare.py losses BOUND A B: two logs, step by step, at most BOUND apart, relatively."""
import array
import json
import math
import struct
import sys


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
    left, right = tensors(a), tensors(b)
    assert left and left.keys() == right.keys(), "the files have other tensors"
    everything = norm(norm(g) for g in left.values())
    assert everything > 0
    floor = bound / 20 * everything / math.sqrt(len(left))
    worst = 0
    for name, g in left.items():
        apart = norm(x - y for x, y in zip(g, right[name], strict=True))
        allowed = bound * norm(g) + floor
        worst = max(worst, apart / allowed)
        if not apart <= allowed:
            sys.exit(f"{name}: |g| {norm(g):.3g}, {apart:.3g} apart, {allowed:.3g} allowed")
    print(f"{len(left)} tensors, at worst {worst:.3f} of what is allowed")


def losses(bound, a, b):
    with open(a) as left, open(b) as right:
        steps = list(zip(map(json.loads, left), map(json.loads, right), strict=True))
    assert len(steps) > 1
    worst = 0
    for x, y in steps:
        for key in ("loss", "cross_entropy", "aux", "grad_norm"):
            apart = abs(x[key] - y[key]) / (abs(x[key]) or 1)
            worst = max(worst, apart)
            if not apart <= bound:
                sys.exit(f"step {x['step']}: {key} {x[key]} and {y[key]}, {apart:.3g} apart")
        assert x.get("tokens_per_expert") == y.get("tokens_per_expert"), f"loads of {x['step']}"
    print(f"{len(steps)} steps, at worst {worst:.3g} apart")


{"gradients": gradients, "losses": losses}[sys.argv[1]](float(sys.argv[2]), *sys.argv[3:])
