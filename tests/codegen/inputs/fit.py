"""fit.py EXAMPLES FOLDER: settings that are open are chosen so that the program fits into the device's memory.

A set value stays, a program that fits stays, the choice is that of the settings it names, and plans repeat it."""
import itertools
import pathlib
import re
import subprocess
import sys

EXAMPLES, FOLDER = map(pathlib.Path, sys.argv[1:])
OLMOE, TINY = EXAMPLES / "olmoe-1b-7b.moe", EXAMPLES / "tiny.moe"
RANKS = ("cluster.nodes=1", "cluster.devices=2")
FEWEST = ("parallel.placement.memory=1", "parallel.placement.overlap=1", "parallel.placement.rematerialize=true",
          "parallel.placement.lifetime=iteration", "parallel.placement.calibrate=false")
LADDER = {"parallel.microbatch": "8 4 2 1", "parallel.logits": "whole 512", "parallel.recompute": "elementwise cheap all",
          "parallel.dense": "replicate states shard"}


def run(*words, sets=()):
    done = subprocess.run(["hecatec", *words, *(word for key in sets for word in ("--set", key))], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def chosen(text):
    """Settings of the note on standard error."""
    note = re.search(r"^hecatec: \S+ needs .* to fit, chosen are(.*)", text, re.M)
    return dict(re.findall(r" (parallel\.\w+) = (\w+) \([+-]", note[1])) if note else {}


def fits(report):
    return re.search(r"of a device +\d+ % taken", report) is not None


def c_of(*words, sets=()):
    """Without the first lines, which name the command, and the cluster's settings."""
    text = run("-w", "-S", "-o", "-", *words, sets=sets).stdout.split("\n#include", 1)[1]
    return [line for line in text.splitlines() if '"cluster.' not in line]


def listed(settings):
    return [f"{key}={value}" for key, value in settings.items()]


# A program that fits stays, and says nothing.
small = ("parallel.microbatch=1",)
assert not run("-S", "-o", "/dev/null", OLMOE, sets=small).stderr
assert c_of(OLMOE, sets=small) == c_of(OLMOE, sets=(*small, "cluster.device.memory=400GB"))

# One that does not fit gets settings; the report has the costs of each, and the program is that of the settings.
report = run("--explain=memory", OLMOE)
choice = chosen(report.stderr)
assert choice and fits(report.stdout), report
for setting in listed(choice):
    assert re.search(rf"--set {setting}  \+[\d.]+ % time, [\d.]+ [MG]iB less", report.stdout), report.stdout
given = run("--explain=memory", OLMOE, sets=listed(choice))
assert fits(given.stdout) and not given.stderr, given
assert c_of(OLMOE) == c_of(OLMOE, sets=listed(choice))

# A set value stays.
other = run("--explain=memory", OLMOE, sets=["parallel.microbatch=4", "cluster.device.memory=28GB"])
assert "parallel.microbatch" not in chosen(other.stderr) and chosen(other.stderr) and fits(other.stdout), other

# Any choice fits, and no program does whose settings go less far.
points = list(itertools.product(*(values.split() for values in LADDER.values())))
place = [dict(zip(values.split(), range(9))) for values in LADDER.values()]
need = {}
for point in points:
    report = run("-w", "--explain=memory", TINY, sets=[*RANKS, *FEWEST, "cluster.device.memory=1GB", *listed(dict(zip(LADDER, point)))]).stdout
    need[point] = float(re.search(r"([\d.]+) MiB  together", report)[1])
levels = sorted(set(need.values()))
for below, above in list(zip(levels, levels[1:]))[::len(levels) // 8]:
    memory = int((below + above) / 2 * 2**20)
    done = run("-S", "-o", "/dev/null", TINY, sets=[*RANKS, f"cluster.device.memory={memory}B"])
    choice = {**{key: values.split()[0] for key, values in LADDER.items()}, **chosen(done.stderr)}
    at = [column[value] for column, value in zip(place, choice.values())]
    assert need[tuple(choice.values())] <= memory / 2**20, (memory, choice)
    for point in points:
        before = [column[value] for column, value in zip(place, point)]
        assert before == at or any(b > a for b, a in zip(before, at)) or need[point] > memory / 2**20, (memory, choice, point)

# A plan repeats the choice.
plan = FOLDER / "plan.json"
run("-w", "-S", "-o", "/dev/null", f"--emit-plan={plan}", OLMOE)
assert c_of(f"--plan={plan}", OLMOE) == c_of(OLMOE)

# One rank: the program is built once, for real, and lists the settings.
whole = run("--explain=memory", TINY, sets=["cluster.device.memory=1GB", "parallel.microbatch=8"]).stdout
need = float(re.search(r"([\d.]+) MiB  together", whole)[1])
one = run("-o", FOLDER / "one", TINY, sets=[f"cluster.device.memory={int((need - 1) * 2**20)}B", "parallel.microbatch=8"])
info = subprocess.run([FOLDER / "one", "info"], capture_output=True, text=True).stdout
choice = chosen(one.stderr)
assert choice, one
for key, value in choice.items():
    assert re.search(rf"^  {key} = {value}$", info, re.M), (choice, info)

# States go to the host where nothing else is open.
device = ("parallel.microbatch=1", "parallel.logits=512", "parallel.recompute=all", "parallel.dense=states", *RANKS)
whole = run("--target=cuda", "--explain=memory", TINY, sets=[*device, "cluster.device.memory=1GB"]).stdout
need = float(re.search(r"([\d.]+) MiB  together", whole)[1])
host = run("--target=cuda", "--explain=memory", TINY, sets=[*device, f"cluster.device.memory={int((need - 1) * 2**20)}B"])
assert chosen(host.stderr) == {"parallel.states": "host"} and fits(host.stdout), host

# Nothing fits: the report says by how much, and names a cluster that would do, and no smaller one would.
none = run("--explain=memory", EXAMPLES / "mixtral-8x7b.moe", sets=["cluster.nodes=1", "cluster.device.memory=40GB"])
assert not none.stderr and re.search(r"the least, with .*: [\d.]+ GiB, still [\d.]+ GiB too much", none.stdout), none
nodes = int(re.search(r"--set cluster\.nodes=(\d+)$", none.stdout, re.M)[1])
least = re.search(r"the least, with((?: --set \S+)+):", none.stdout)[1].replace(" --set ", " ").split()
for count in (nodes, nodes - 1):
    sets = [*least, f"cluster.nodes={count}", "cluster.device.memory=40GB", "train.tokens=auto", *FEWEST]
    assert fits(run("--explain=memory", EXAMPLES / "mixtral-8x7b.moe", sets=sets).stdout) == (count == nodes), (count, nodes)
