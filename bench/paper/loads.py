"""Loads for the models of the paper: a recording that is adapted to their experts, drawn ones with its skew and drift, balanced ones."""
import array
import math
import struct
import subprocess

MAGIC = b"HLOADS1\n"


class Loads:
    """rows[iteration][layer][device][microbatch][expert], as hecatec reads it."""

    def __init__(self, iterations, layers, devices, microbatches, experts, rows=None):
        self.shape = (iterations, layers, devices, microbatches, experts)
        self.rows = rows or array.array("H", bytes(2 * math.prod(self.shape)))

    def at(self, iteration, layer, device, microbatch):
        _, layers, devices, microbatches, experts = self.shape
        first = (((iteration * layers + layer) * devices + device) * microbatches + microbatch) * experts
        return slice(first, first + experts)

    def write(self, path):
        path.write_bytes(MAGIC + struct.pack("<5I", *self.shape) + self.rows.tobytes())

    def part(self, first, count):
        """Iterations from `first` on."""
        _, *rest = self.shape
        each = math.prod(rest)
        return Loads(count, *rest, self.rows[first * each:(first + count) * each])


def read(path):
    data = path.read_bytes()
    if path.suffix == ".zst":
        data = subprocess.run(["zstd", "-dc", str(path)], capture_output=True, check=True).stdout
    if data[:8] != MAGIC:
        raise ValueError(f"{path} has no recorded loads")
    shape = struct.unpack("<5I", data[8:28])
    rows = array.array("H")
    rows.frombytes(data[28:])
    if len(rows) != math.prod(shape):
        raise ValueError(f"{path} is damaged")
    return Loads(*shape, rows)


def adapt(recording, first, count, layers, experts):
    """Stored iterations [first, first + count) for a model of `layers` x `experts`.

    32 experts: the model's layers are spread over the recorded ones. 64 experts: those of two recorded layers, half the depth
    apart, side by side; so each half keeps its skew, the largest load over the mean stays that of the recording, and it drifts as
    recorded. hecatec divides each recorded device's rows over two where there are 32 devices."""
    _, recorded_layers, devices, microbatches, own = recording.shape
    out = Loads(count, layers, devices, microbatches, experts)
    halves = experts // own
    for i in range(count):
        for layer in range(layers):
            base = layer if halves > 1 else layer * recorded_layers // layers
            sources = [(base + h * recorded_layers // halves) % recorded_layers for h in range(halves)]
            for device in range(devices):
                for m in range(microbatches):
                    row = array.array("H")
                    for source in sources:
                        row += recording.rows[recording.at(first + i, source, device, m)]
                    out.rows[out.at(i, layer, device, m)] = row
    return out


def balanced(layers, devices, experts, local):
    """Even loads. `local`: each device's tokens choose the experts that it owns, so nothing travels; else all experts alike."""
    out = Loads(2, layers, devices, 1, experts)
    own = experts // devices
    for i in range(2):
        for layer in range(layers):
            for device in range(devices):
                row = [128] * experts
                if local:
                    row = [128 * devices if e // own == device else 0 for e in range(experts)]
                out.rows[out.at(i, layer, device, 0)] = array.array("H", row)
    return out


def totals(loads, iteration, layer, microbatch=None):
    _, _, devices, microbatches, experts = loads.shape
    sums = [0] * experts
    for device in range(devices):
        for m in range(microbatches) if microbatch is None else (microbatch,):
            for e, rows in enumerate(loads.rows[loads.at(iteration, layer, device, m)]):
                sums[e] += rows
    return sums


def shares(loads, iteration, layer):
    sums = totals(loads, iteration, layer)
    return [s / sum(sums) for s in sums]


def distance(left, right):
    """Total variation: the share of rows that went to another expert."""
    return 0.5 * sum(abs(a - b) for a, b in zip(left, right))


def fit(recording, first, count, apart):
    """Skew, drift and bias of `hecate-replay --synthesize` from stored iterations, `apart` steps from each other.

    skew: slope of log share over log rank, weighted by share. drift: of the step's standard deviation of a log share, weighted by
    share, over the root of the steps between. bias: of a device's log share about that of all devices, weighted likewise."""
    _, layers, devices, microbatches, experts = recording.shape
    skew = drift = bias = steps = cells = 0.0
    for layer in range(layers):
        known = [shares(recording, first + i, layer) for i in range(count)]
        for i, now in enumerate(known):
            ranked = sorted(now, reverse=True)
            points = [(math.log(k + 1), math.log(s), s) for k, s in enumerate(ranked) if s > 0]
            weight = sum(w for *_, w in points)
            x, y = (sum(p[k] * p[2] for p in points) / weight for k in range(2))
            skew -= (sum(w * (a - x) * (b - y) for a, b, w in points) /
                     sum(w * (a - x) ** 2 for a, b, w in points) / (layers * count))
            for device in range(devices):
                rows = [sum(recording.rows[recording.at(first + i, layer, device, m)][e] for m in range(microbatches))
                        for e in range(experts)]
                every = sum(rows)
                off = [(s, math.log(r / every / s)) for r, s in zip(rows, now) if r and s]
                mean = sum(s * o for s, o in off)
                bias += sum(s * (o - mean) ** 2 for s, o in off)
                cells += 1
            if not i:
                continue
            moved = [(s, math.log(s / old)) for s, old in zip(now, known[i - 1]) if s and old]
            mean = sum(s * m for s, m in moved)
            drift += sum(s * (m - mean) ** 2 for s, m in moved)
            steps += 1
    return {"skew": round(skew, 3), "drift": round(math.sqrt(drift / steps / apart), 4),
            "bias": round(math.sqrt(bias / cells), 3)}


def fullest(loads, devices):
    """Rows of expert parallelism's fullest device over the mean; the mean over iterations, layers and microbatches."""
    iterations, layers, _, microbatches, experts = loads.shape
    found = []
    for i in range(iterations):
        for layer in range(layers):
            for m in range(microbatches):
                sums = totals(loads, i, layer, m)
                each = [0] * devices
                for e, rows in enumerate(sums):
                    each[e * devices // experts] += rows
                found.append(max(each) * devices / sum(sums))
    return sum(found) / len(found)


def skew_of(wanted, devices, draw):
    """The skew for which `draw(skew)` has a `fullest` device of `wanted` times the mean, by halving."""
    low, high = 0.0, 4.0
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if fullest(draw(middle), devices) < wanted else (low, middle)
    return (low + high) / 2


def network_bytes(loads, cluster, rows, row_bytes, chunk_bytes, own):
    """Bytes that a mean node has to receive from the network in a step, under any placement: a bound from below.

    Each expert that a node does not own costs the cheaper of two: the node's rows travel (there and back, forward and
    backward), or the expert comes in bf16 and its gradient leaves in fp32. Every byte leaves one node and enters
    another. A node owns `own` experts of a layer, at best those that would cost most."""
    iterations, layers, devices, microbatches, experts = loads.shape
    total = 0.0
    for node in range(cluster.nodes):
        mine = range(node * devices // cluster.nodes, (node + 1) * devices // cluster.nodes)
        for i in range(iterations):
            for layer in range(layers):
                cells = [loads.rows[loads.at(i, layer, d, m)] for d in mine for m in range(microbatches)]
                every = sum(map(sum, cells))
                here = (rows * cluster.devices / cluster.nodes * sum(cell[e] for cell in cells) / every for e in range(experts))
                costs = sorted(min(4 * n * row_bytes, 3 * chunk_bytes) for n in here)
                total += sum(costs[:experts - own])
    return total / iterations / cluster.nodes
