"""check_trace.py TRACE INFO TABLE: the trace nests, and computes what `info` announced per token."""
import json
import re
import sys


def flops_of(event):
    """The flops of a kernel by its sizes, as the compiler counts: attention backward is twice forward."""
    size, kernel = event["args"], event["name"].split()[0]
    if event["cat"] == "product":
        return 2 * size.get("m", size.get("rows")) * size["n"] * size["k"]
    pairs = size["batch"] * size["heads"] * size["positions"] ** 2 / 2  # Causal.
    return (4 if kernel == "sdpa_grad" else 2) * pairs * (size["width"] + size["vwidth"])


def check_nesting(events):
    ends = []
    for event in events:
        start, end = event["ts"], event["ts"] + event["dur"]
        while ends and ends[-1] <= start + 1e-6:
            ends.pop()
        assert not ends or end <= ends[-1] + 1e-6, event
        ends.append(end)


def main(trace, info, table):
    events = [event for event in json.load(open(trace))["traceEvents"] if event["ph"] == "X"]
    check_nesting(events)
    steps = [event for event in events if event["name"].startswith("step ")]
    assert [step["name"] for step in steps] == ["step 1", "step 2", "step 3"], steps
    tokens = int(re.search(r"^profile of .*: (\d+) tokens each", open(table).read(), re.M)[1])
    announced = float(re.search(r"FLOP per token ([\d.]+)M", open(info).read())[1]) * 1e6
    work = [event for event in events if event["cat"] in ("product", "attention")]
    done = sum(map(flops_of, work)) / len(steps) / tokens
    assert abs(done / announced - 1) < 0.005, (done, announced)  # It is announced in three digits.


main(*sys.argv[1:])
