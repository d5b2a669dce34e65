"""simulated.py HECATEC MODEL: properties of simulated steps that hold for any numbers."""
import json
import re
import subprocess
import sys

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def simulate_text(*flags, steps=3):
    command = [sys.argv[1], f"--simulate={steps}", "--set", "train.tokens=auto"]
    for flag in flags:
        command += ["--set", flag] if "=" in flag and not flag.startswith("--") else [flag]
    return subprocess.run(command + [sys.argv[2]], capture_output=True, text=True, check=True).stdout


def simulate(*flags, steps=3):
    text = simulate_text(*flags, steps=steps)
    found = re.search(r"A step takes ([\d.]+) (us|ms|s):", text)
    spent = {}
    for name, value, unit in re.findall(r"^  (\S.*?)  +([\d.]+) (us|ms|s) ", text, re.M):
        spent.setdefault(name, float(value) * SECONDS[unit])
    return float(found[1]) * SECONDS[found[2]], spent, text


def check(sound, what):
    if not sound:
        sys.exit(f"simulated.py: {what}")


def near(left, right, part):
    return abs(left - right) <= part * max(abs(left), abs(right))


CLUSTER = ("cluster.nodes=2", "cluster.devices=2")
# One device waits for nobody.
us, spent, text = simulate()
check(not any(name.startswith("waiting") for name in spent), "one device waits:\n" + text)
check(near(us, spent["computing"], 0.01), "one device does not only compute:\n" + text)

# Slow links make steps longer; where links cost nothing what is left is the most loaded device, or none of it.
FREE = ("cluster.link.intra.bandwidth=1000TB/s", "cluster.link.inter.bandwidth=1000TB/s",
        "cluster.link.intra.latency=1ns", "cluster.link.inter.latency=1ns")
SLOW = ("cluster.link.intra.bandwidth=100MB/s", "cluster.link.inter.bandwidth=10MB/s")
for experts in ("ep", "fssdp", "hecate", "laer", "fsdp", "edp", "ultraep", "llep", "fastermoe", "flexmoe", "eplb", "smartmoe", "replicate"):
    free, spent, text = simulate(*CLUSTER, *FREE, f"parallel.experts={experts}")
    busy = spent["computing"] + spent.get("experts", 0)
    check(free < 1.004 * (busy + sum(v for k, v in spent.items() if k.startswith(("wait", "plan")))),
          f"{experts}: a mean device's time is not all of the step:\n{text}")
    if experts == "replicate":
        check(near(free, busy, 0.01), f"replicate waits although links are free:\n{text}")
    slow, _, text = simulate(*CLUSTER, *SLOW, f"parallel.experts={experts}")
    check(slow > 1.5 * free, f"{experts}: slow links cost nothing: {free} and {slow} s\n{text}")

# Parts of dense parameters come twice in each iteration in place of once in a step; where links are free they cost nothing.
for links, costs in ((FREE, False), (SLOW, True)):
    states, _, _ = simulate(*CLUSTER, *links, "parallel.experts=fssdp", "parallel.dense=states")
    shard, _, text = simulate(*CLUSTER, *links, "parallel.experts=fssdp", "parallel.dense=shard")
    check(shard > 1.1 * states if costs else near(shard, states, 0.01),
          f"dense = shard takes {shard} s, states {states} s:\n{text}")

# Counts wait for latencies alone here: of 32 devices for one in each of three layers; of 40, on five nodes, for three
# rounds, and for as many of the words that are compared where ranks decide by counts.
for experts, nodes, latencies in (("ep", 4, 1), ("ep", 5, 3), ("ep", 16, 4), ("ep", 17, 5), ("fssdp", 4, 1), ("fssdp", 5, 2 * 3), ("llep", 5, 2 * 3)):
    text = simulate_text(*FREE[:3], "cluster.link.inter.latency=1ms", f"cluster.nodes={nodes}", "cluster.devices=8", f"parallel.experts={experts}",
                         "parallel.microbatch=1", "--json", steps=1)
    counts = json.loads(text)["steps"][0]["spent_us"]["counts"] / 3
    check(1e3 * (latencies - 0.1) <= counts < 1e3 * (latencies + 0.5), f"{experts} on {nodes} x 8: counts take {counts:.0f} us a layer, not {latencies} ms")

# Gradients in bf16 are half as many bytes, of experts and of others, and a step that waits for them is shorter.
MOVED = ("parallel.experts=hecate", "parallel.placement.memory=1", "parallel.placement.overlap=1", "parallel.placement.calibrate=false",
         "parallel.placement.rematerialize=false", "parallel.placement.lifetime=step", "parallel.microbatch=1")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def transfers(numbers):
    """A step's time, and the bytes of each kind of transfer to the busiest device."""
    taken, _, _ = simulate(*CLUSTER, *SLOW, *MOVED, f"parallel.gradients={numbers}")
    flags = [word for flag in (*CLUSTER, *MOVED, f"parallel.gradients={numbers}") for word in ("--set", flag)]
    text = subprocess.run([sys.argv[1], "-w", "--explain=comm", *flags, sys.argv[2]], capture_output=True, text=True, check=True).stdout
    check(("Gradients travel in bf16, sums are fp32" in text) == (numbers == "bf16"), f"{numbers}: it does not say how they travel:\n{text}")
    found = re.findall(r"^  (\S.*?)  +[\d.]+ +([\d.]+) (B|[KMG]iB) ", text, re.M)
    return taken, {name: float(size) * UNITS[unit] for name, size, unit in found}


(slow, whole), (fast, half) = transfers("fp32"), transfers("bf16")
check(fast < 0.9 * slow, f"gradients in bf16 take {fast} s, in fp32 {slow} s")
check(whole.keys() == half.keys() >= {"gradients", "dense gradients", "rows", "parameters"}, f"other transfers: {whole} and {half}")
for name, size in whole.items():
    check(near(half[name], size / 2 if name in ("gradients", "dense gradients") else size, 0.01), f"{name}: {size} and {half[name]} bytes")

# As JSON: the critical path is the whole step, a mean device's time likewise; all nodes together send as much as they
# get.
for experts in ("ep", "fssdp", "hecate", "replicate"):
    said = json.loads(simulate_text(*CLUSTER, "--json", f"parallel.experts={experts}"))
    check(len(said["steps"]) == 3 and said["experts"] == experts, f"{experts}: not what was asked for: {said}")
    for step in said["steps"]:
        for what in ("path_us", "spent_us"):
            check(near(sum(step[what].values()), step["us"], 0.001), f"{experts}: {what} is not the step: {step}")
        check(all(us > -1e-3 for us in step["path_us"].values()), f"{experts}: a path that goes back: {step}")
        check(step["path_us"]["rows"] > 0 or experts == "replicate", f"{experts}: rows cost nothing: {step}")
    carried = said["carried"]
    check(near(sum(carried["node_out"]), sum(carried["node_in"]), 1e-6), f"{experts}: lost on the way: {carried}")
    check((said["movement"] is None) == (experts in ("ep", "replicate")), f"{experts}: {said['movement']}")

# The same twice; the trace says when every step ends, and nothing overlaps on a track.
one = simulate(*CLUSTER, "parallel.experts=fssdp", "--trace=trace.json")
two = simulate(*CLUSTER, "parallel.experts=fssdp")
check(one[2] == two[2], "two simulations differ")
tracks, arrows = {}, {}
with open("trace.json", encoding="utf-8") as file:
    for event in json.load(file)["traceEvents"]:
        if event["ph"] in "sf":
            arrows.setdefault(event["id"], {})[event["ph"]] = event
        if event["ph"] == "X":
            tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["dur"]))
check(len({device for device, _ in tracks}) == 4, "the trace does not have four devices")
for track, events in tracks.items():
    events.sort()
    for (begin, long), (after, _) in zip(events, events[1:]):
        check(begin + long <= after + 0.002, f"two things at a time on track {track}: {begin} + {long}, {after}")
# An arrow leads from a transfer of one device to one of another, forward in time.
check(len(arrows) > 100, f"only {len(arrows)} messages")
for arrow in arrows.values():
    leaves, arrives = arrow["s"], arrow["f"]
    check(leaves["pid"] != arrives["pid"] and leaves["ts"] < arrives["ts"], f"no way: {arrow}")
    for end in (leaves, arrives):
        around = tracks[end["pid"], end["tid"]]
        check(any(begin - 0.002 <= end["ts"] <= begin + long + 0.002 for begin, long in around), f"outside of a transfer: {end}")
for device in range(4):
    own = tracks[device, 1]
    end = max(begin + long for begin, long in own)
    check(near(end, sum(long for _, long in own), 0.001), f"device {device} has gaps: nobody knows what it does")

# New owners are steps of their own where an interval passes, and divided over its steps where none does; policies that
# keep placements or spread owners pay for them.
for experts in ("fssdp", "eplb", "laer"):
    every = ("parallel.placement.reshard.iterations=2",)
    said = json.loads(simulate_text(*CLUSTER, f"parallel.experts={experts}", *every, "--json", steps=5))
    if experts == "laer":
        check(said["new_owners"] is None, f"laer changes owners: {said['new_owners']}")
        continue
    owners, steps = said["new_owners"], said["steps"]
    check(owners["every"] == 2 and owners["changes"] == 2, f"{experts}: {owners}")
    check([step["moved_chunks"] > 0 for step in steps][0::2] == [False] * 3, f"{experts}: new owners in every step")
    for step in steps:
        check(near(sum(step["path_us"].values()), step["us"], 0.001), f"{experts}: the critical path is not the step: {step}")
    single = json.loads(simulate_text(*CLUSTER, f"parallel.experts={experts}", "--json", steps=1))["new_owners"]
    check(single["every"] == 100 and single["changes"] == 0 and near(single["us_of_a_step"], single["us"] / 100, 0.001), f"{experts}: {single}")
