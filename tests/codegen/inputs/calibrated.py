"""The effect of a file of measurements on simulations: twice the times are twice the computation, with any stages
between; and a fault of a file is reported with its place.  calibrated.py HECATEC MODEL FILE"""
import json
import re
import subprocess
import sys

hecatec, model, path = sys.argv[1:]
SETS = ["cluster.nodes=2", "cluster.devices=2", "parallel.experts=fssdp", "train.tokens=auto"]
UNITS = {"us": 1, "ms": 1e3, "s": 1e6}


def run(name, value, key="cluster.device.measured"):
    with open(name, "w") as f:
        f.write(value if isinstance(value, str) else json.dumps(value, indent=1))
    sets = [word for s in [*SETS, f"{key}={name}"] for word in ("--set", s)]
    return subprocess.run([hecatec, "--simulate=2", *sets, model], capture_output=True, text=True)


def computing(result):
    assert result.returncode == 0, result.stderr
    assert "measured (" in result.stdout, result.stdout
    us = 0
    for what in ("computing", "experts"):
        number, unit = re.search(rf"^  {what} +([\d.]+) (\w+)", result.stdout, re.M).groups()
        us += float(number) * UNITS[unit]
    return us


def refused(result, text, name):
    assert result.returncode == 1 and text in result.stderr, (result.returncode, result.stderr)
    assert re.search(rf"{name}:\d+:\d+: error", result.stderr), result.stderr


times = json.load(open(path))
once = computing(run("once", times))
assert once == computing(run("once", times))
for grid in times["kernels"].values():
    grid["us"] = [2 * us for us in grid["us"]]
twice = computing(run("twice", times))
assert abs(twice / once - 2) < 0.01, (once, twice)
for grid in ("matmul_nn_f32", "sdpa_f32", "loop"):  # Each of them counts.
    slower = json.loads(json.dumps(times))
    slower["kernels"][grid]["us"] = [100 * us for us in slower["kernels"][grid]["us"]]
    assert computing(run("slower", slower)) > 1.05 * twice, grid

# With a fault.
def spoilt(change):
    copy = json.loads(json.dumps(times))
    change(copy)
    return run("bad", copy)

refused(spoilt(lambda t: t.update(hecate_device=2)), "no times of kernels", "bad")
refused(spoilt(lambda t: t.pop("device")), "names no device", "bad")
refused(spoilt(lambda t: t["kernels"].pop("sdpa_f32")), "`sdpa_f32` is no grid of 2 axes", "bad")
refused(spoilt(lambda t: t["kernels"]["loop"]["us"].pop()), "`loop` is no grid of 1 axis", "bad")
refused(spoilt(lambda t: t["kernels"]["loop"]["us"].__setitem__(0, 0)), "`loop` is no grid", "bad")
refused(spoilt(lambda t: t["kernels"]["sdpa_f32"]["axes"][0].reverse()), "`sdpa_f32` is no", "bad")
refused(run("bad", "{"), "", "bad")
result = subprocess.run([hecatec, "--simulate", "--set", "cluster.device.measured=none", model],
                        capture_output=True, text=True)
assert result.returncode == 1 and "cluster.device.measured 'none': No such file" in result.stderr

# Links: the part that is not measured stays what it is said to be.
links = {"hecate_links": 1, "intra": {"bandwidth": 1e9, "latency": 1e-5}}
result = run("links", links, "cluster.link.measured")
assert "1 GB/s a device, 10 us (measured); 1.25 GB/s a node, 30 us; the other at 95 %; assumed" in result.stdout, result.stdout
links["inter"] = {"bandwidth": 5e7, "latency": 1e-4}
result = run("links", links, "cluster.link.measured")
assert "(measured); 50 MB/s a node, 100 us (measured)\n" in result.stdout, result.stdout
links["inter"]["latency"] = 0
refused(run("bad", links, "cluster.link.measured"), "expected a positive `bandwidth`", "bad")
refused(run("bad", {"hecate_links": 1}, "cluster.link.measured"), "expected a positive", "bad")
refused(run("bad", {}, "cluster.link.measured"), "no rates of links", "bad")
