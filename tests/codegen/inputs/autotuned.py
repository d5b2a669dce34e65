"""Properties of --autotune: the same input gives the same choice; the program is that of the settings it names;
settings of the command line stay; nothing is chosen that takes longer, or needs more memory than there is.
autotuned.py HECATEC MODEL"""
import json
import re
import subprocess
import sys

hecatec, model = sys.argv[1:]
SETS = ["cluster.nodes=2", "cluster.devices=2", "train.tokens=4096"]
UNITS = {"us": 1, "ms": 1e3, "s": 1e6}


def flags(settings):
    return [word for s in settings for word in ("--set", s)]


def run(*arguments, model=model):
    result = subprocess.run([hecatec, *arguments, model], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result


def program(*arguments):
    """The C without its table of settings and the command that it names."""
    return run("-S", "-o", "-", *arguments).stdout


def tuned(*more):
    result = run("--autotune=1", "-S", "-o", "-", *flags(SETS), *more)
    last = re.search(r"^The same without the search: (.*)", result.stderr, re.M)
    chosen = last.group(1).split() if last else []
    times = re.search(r"takes ([\d.]+) (\w+) as the model says, ([\d.]+) (\w+) as chosen", result.stderr)
    before, unit, after, unit_after = times.groups()
    assert float(after) * UNITS[unit_after] <= float(before) * UNITS[unit], result.stderr
    return result, chosen


def report_of(result):
    """Without the progress that a slow machine prints before."""
    return result.stderr[result.stderr.index("Autotuned: "):]


first, chosen = tuned()
again, _ = tuned("--emit-plan=plan.json")
with open("report.txt", "w") as f:
    f.write(first.stderr)
assert (first.stdout, report_of(first)) == (again.stdout, report_of(again))
assert chosen == ["--set", "parallel.microbatch=16"], first.stderr
assert first.stdout == program(*flags(SETS), *chosen)

fixed, chosen = tuned("--set", "parallel.microbatch=2")
assert not any("microbatch" in word for word in chosen), chosen
assert fixed.stdout == program(*flags(SETS), "--set", "parallel.microbatch=2", *chosen)

# 16 sequences at a time are too much for this device.
small, chosen = tuned("--set", "cluster.device.memory=46.5MB")
assert ", 0 too large" not in small.stderr, small.stderr
assert "parallel.microbatch=16" not in chosen, small.stderr

# With everything else given policies alone are compared: corrected short simulations agree with those at length.
GIVEN = ["parallel.microbatch=16", "parallel.dense=replicate", "parallel.bucket=1MiB", "parallel.rows=direct", "parallel.rows_max=640",
         "parallel.placement.rematerialize=false", "parallel.placement.overlap=2", "parallel.placement.memory=2",
         "parallel.placement.calibrate=true", "parallel.placement.forecast=window(5)", "parallel.placement.reshard=never"]
policies, _ = tuned(*flags(GIVEN))
corrected = re.search(r"single messages beside sums: .*ultraep ([-+][\d.]+) %", policies.stderr)
assert corrected and abs(float(corrected.group(1))) > 2, policies.stderr
nearest = float(re.search(r"^  parallel.experts +hecate +([-+][\d.]+) %", policies.stderr, re.M).group(1))
own = re.search(r"([\d.]+) (\w+) as chosen", policies.stderr).groups()
other = re.search(r"([\d.]+) (\w+) +[\d.]+ \w+ +--set parallel.experts=hecate$", policies.stderr, re.M).groups()
longer = float(other[0]) * UNITS[other[1]] / (float(own[0]) * UNITS[own[1]])
assert abs(1 + nearest / 100 - longer) < 0.03, policies.stderr

# Other systems' movement is charged as everywhere, also where programs do otherwise; the search does not choose such a
# policy.
SLOW = flags([*SETS, "cluster.link.inter.bandwidth=10MB/s", "parallel.experts=laer"])
authors = re.search(r"A step takes ([^:]*):", run("--simulate", *SLOW).stdout).group(1)
assert f"a step takes {authors} as the model says" in run("--autotune=1", "-S", "-o", "-", *SLOW).stderr, authors
assert "laer" not in policies.stderr, policies.stderr

# One process has nothing to simulate: it is compiled as ever.
nothing = "hecatec: warning: --autotune: one process has nothing to choose\n"
alone = run("--autotune=1", "-S", "-o", "-", *flags(["cluster.nodes=1", "cluster.devices=1"]))
assert alone.stderr == nothing, alone.stderr
assert alone.stdout == program(*flags(["cluster.nodes=1", "cluster.devices=1"]))

# A plan file repeats it without the search, says what it was made for, and tells where that differs.
plan = json.load(open("plan.json"))
assert plan["settings"] == {"parallel.microbatch": "16"}, plan
assert plan["made_for"]["loads"] == "assumed" and plan["made_for"]["cluster"]["cluster.nodes"] == "2"
predicted = plan["predicted"]
assert all(predicted["step_us"] <= other["step_us"] for other in predicted["runners_up"]), predicted
assert {} in [other["settings"] for other in predicted["runners_up"]], predicted


def planned(*arguments):
    return run("--plan=plan.json", "-S", "-o", "-", *flags(SETS), *arguments)


repeated = planned()
assert (repeated.stdout, repeated.stderr) == (first.stdout, ""), repeated.stderr
assert planned("--set", "parallel.microbatch=4").stdout != first.stdout  # The command line counts more.
told = planned("--set", "cluster.link.inter.bandwidth=5GB/s").stderr
assert re.search(r"plan.json:\d+:\d+: this plan was made for another cluster: "
                 r"`cluster.link.inter.bandwidth` is 5000000000 here, was auto", told), told
told = planned("-D", "V=300").stderr
assert "this plan was made for other parameters: those of `small`" in told, told

for settings, message in (({"train.steps": "3"}, "settings of section parallel, not `train.steps`"),
                          ({"parallel.microbatch": 4}, "not `parallel.microbatch`"),
                          ([], "expected an object `settings`"),
                          ({"parallel.microbatch": "some"}, "parallel.microbatch")):
    with open("bad.json", "w") as f:
        json.dump({**plan, "settings": settings}, f)
    result = subprocess.run([hecatec, "--plan=bad.json", "-S", "-o", "-", *flags(SETS), model],
                            capture_output=True, text=True)
    assert result.returncode == 1 and message in result.stderr, result.stderr
