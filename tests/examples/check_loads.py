"""check_loads.py FREE BALANCED ZIPF TRACE: checks the loads of four runs of route.sh."""
import struct
import sys


def read(path):
    """The loads of every [iteration][layer], summed over devices and microbatches."""
    data = open(path, "rb").read()
    assert data[:8] == b"HLOADS1\n", path
    iterations, layers, devices, microbatches, experts = struct.unpack_from("<5I", data, 8)
    count = iterations * layers * devices * microbatches * experts
    flat = struct.unpack_from(f"<{count}H", data, 28)
    assert len(data) == 28 + 2 * count, path
    rows = [flat[i:i + experts] for i in range(0, count, experts)]
    groups = devices * microbatches
    return [[sum(column) for column in zip(*rows[i:i + groups])]
            for i in range(0, len(rows), groups)]


free, balanced, zipf, trace = (read(path) for path in sys.argv[1:5])
total = {sum(row) for run in (free, balanced, zipf, trace) for row in run}
assert len(total) == 1, f"runs of equal tokens have loads of {total}"
assert all(min(row) == max(row) for row in balanced), "balanced loads differ"
assert any(min(row) != max(row) for row in free), "free loads are all equal"
for row in zipf:
    # 1.5: the second expert gets 2^-1.5 of what the first would get, which at most is every token.
    assert max(row) >= 0.9 * sum(row) / 2, f"steep loads are {row}"
for a, b in zip(zipf, trace):
    off = max(abs(x - y) for x, y in zip(a, b))
    assert off <= 0.02 * sum(a), f"the trace is {a}, the run followed with {b}"
