"""Properties of --autotune --measure=N, with a launcher that writes planted logs and a compiler that compiles nothing:
the candidate that is fastest in the median of rounds is chosen, for any simulations; one that fails or hangs loses and
says why; nothing stays behind. measured.py HECATEC MODEL MODEL-OF-ONE-SET"""
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

hecatec, model, single = sys.argv[1:]
os.environ["TMPDIR"] = str(Path("temps").absolute())
os.mkdir("temps")

# All but the policy is given, so that the candidates are policies.
GIVEN = ["cluster.nodes=2", "cluster.devices=2", "train.tokens=4096", "parallel.microbatch=16", "parallel.dense=replicate",
         "parallel.bucket=1MiB", "parallel.recompute=elementwise", "parallel.rows=direct", "parallel.rows_max=640", "parallel.logits=whole", "parallel.placement.rematerialize=false", "parallel.placement.overlap=2",
         "parallel.placement.memory=2", "parallel.placement.calibrate=true", "parallel.placement.forecast=window(5)",
         "parallel.placement.reshard=never"]
FLAGS = [word for setting in GIVEN for word in ("--set", setting)]

# The "program" is the name of its policy, since a compiler of several ranks is told nothing else. Its arguments are
# kept.
COMPILER = r"""#!/bin/sh
echo "$@" >> compiled
while [ "$1" != -o ]; do shift; done
policy=$(sed -n 's/.*"parallel.experts", "\([a-z]*\)".*/\1/p' "$3")
if [ "$policy" = "$BROKEN" ]; then echo "in the compiler" >&2; echo "x.c:3: error: planted" >&2; echo "1 error" >&2; exit 1; fi
echo "$policy" > "$2"
"""

# Its machine becomes slower from round to round, and the first steps take long.
LAUNCHER = r"""#!/bin/sh
if [ "$1" = true ]; then echo probed >> runs; exit "${PROBE:-0}"; fi
policy=$(cat "$1"); echo "$@" >> runs; echo "$policy" >> order
case "${10}" in trace:*) cp "${10#trace:}" traced;; esac
while [ "$1" != --log ]; do shift; done
steps() { awk -v ms="$1" -v steps="${2:-15}" -v round="$(grep -c "^$policy$" order)" \
    'BEGIN { for (s = 1; s <= steps; s++) printf "{\"step\":%d,\"tokens_per_s\":%.9f}\n", s, 4096e3 / (ms * (s <= 5 ? 100 : round)) }' > "$log"; }
log=$2
case $policy in
fssdp) steps 10;;
hecate) [ "$SLOW" ] && [ "$(grep -c hecate order)" -ge "$SLOW" ] && { steps 15; exit; }; steps 5;;
ep) [ "$FULL" ] && { echo "small: warning: cannot write '$log': No space left on device" >&2; steps 20 3; exit 0; }
    echo "planted" >&2; echo "small: error: planted failure" >&2; echo ------ >&2; exit 1;;
ultraep) [ "$HANG" ] && { sleep 60; echo no > late; }; steps 12;;
esac
"""


def script(name, text):
    Path(name).write_text(text)
    os.chmod(name, 0o755)


def words(*more, model=model):
    return [hecatec, "--autotune=5", *FLAGS, "--cc=./mpifake", "--launch=./launch --here", *more, model]


def run(*more, status=0, model=model, **environment):
    for name in ("runs", "order", "compiled", "late"):
        Path(name).unlink(missing_ok=True)
    before = sorted(os.listdir())
    result = subprocess.run(words(*more, model=model), capture_output=True, text=True, env={**os.environ, **environment}, timeout=60)
    assert result.returncode == status, (result.returncode, result.stderr)
    left = set(os.listdir()) - set(before) - {"runs", "order", "compiled", "made", "plan.json", "traced"}
    assert not left and not os.listdir("temps"), (left, os.listdir("temps"))
    return result.stderr


def lines(name):
    return Path(name).read_text().splitlines()


def row(report, policy):
    """(chosen, measured, ratio or None) of a policy in the table."""
    said = "as the model says" if policy == "fssdp" else f"experts={policy}"
    table = report[report.index("Measured on "):]
    found = re.search(rf"^([* ]) \d: +\S+ \S+ +(failed|[\d.]+ \S+)(?: +([\d.]+) \(([\d.]+) to ([\d.]+)\))? +{said}$", table, re.M)
    assert found, (policy, report)
    ratios = [float(number) for number in found.groups()[2:] if number]
    assert len(set(ratios)) <= 1, ratios  # Rounds are compared in pairs: a common slowdown shows in none.
    return found.group(1) == "*", found.group(2), ratios[0] if ratios else None


script("mpifake", COMPILER)
script("launch", "#!/bin/sh\nshift\nexec ./launcher \"$@\"\n")  # Words of --launch stand before the program's.
script("launcher", LAUNCHER)

report = run("--measure=4,4", "-o", "made", "--emit-plan=plan.json", "-O1", HANG="1")
Path("report.txt").write_text(report)
assert row(report, "fssdp") == (False, "30 ms", 1), report
assert row(report, "hecate") == (True, "15 ms", 0.5), report
assert row(report, "ep") == row(report, "ultraep") == (False, "failed", None), report
assert "\n    small: error: planted failure\n" in report and "\n    took longer than 4 s, and was ended\n" in report, report
assert Path("made").read_text() == "hecate\n" and not os.path.exists("late")
assert "not certain" not in report, report
assert "--set parallel.experts=hecate" in report[report.index("The same without the search"):], report

# Every round begins with another candidate, and failed ones do not run again.
order = lines("order")
first = order[:4]
assert first[0] == "fssdp" and set(first) == {"fssdp", "hecate", "ep", "ultraep"}, order
left = [policy for policy in first if policy not in ("ep", "ultraep")]
rounds = [order[4 + 2 * i:6 + 2 * i] for i in range(4)]
expected = [[policy for policy in first[r:] + first[:r] if policy in left] for r in range(1, 5)]
assert rounds == expected and len(order) == 12, order

# Programs of candidates are compiled as the one that is kept, and run with the loads that were simulated.
compiled = {re.sub(r"\S*(hecatec-\S*|made\.\S*)", "X", line) for line in lines("compiled")}
assert len(lines("compiled")) == 5 and len(compiled) == 1 and " -O1 " in compiled.pop(), compiled
runs = lines("runs")
assert runs[0] == "probed" and all(" train " in r and " --route zipf:1.2 --steps 15 " in r for r in runs[1:]), runs

measured = json.load(open("plan.json"))["measured"]
assert abs(measured["step_us"] - 15000) < 1 and measured["launch"] == "./launch --here" and measured["route"] == "zipf:1.2", measured
assert (measured["rounds"], measured["steps"], measured["left_out"]) == (5, 15, 5) and measured["machine"] == os.uname().nodename
failed = {other["settings"]["parallel.experts"]: other["failed"] for other in measured["others"] if "failed" in other}
assert failed == {"ep": "small: error: planted failure", "ultraep": "took longer than 4 s, and was ended"}, measured
assert {} in [other["settings"] for other in measured["others"]] and len(measured["others"]) == 3
subprocess.run([hecatec, "--plan=plan.json", "-S", "-o", "/dev/null", *FLAGS, model], check=True)

# One candidate does not compile, and one loses its log: the others are compared all the same. Without the model's own
# the first that ran is what ratios are to.
report = run("--measure=4", "-o", "made", BROKEN="fssdp", FULL="1")
assert row(report, "fssdp")[1] == "failed" and "\n    x.c:3: error: planted\n" in report, report
assert "its log has 3 of 15 steps: small: warning: cannot write" in report, report
assert row(report, "hecate")[0], report
ratio = row(report, "ultraep")[2] / row(report, "hecate")[2]
assert abs(ratio - 12 / 5) < 0.01 and 1 in (row(report, "ultraep")[2], row(report, "hecate")[2]), report

# Programs get the last iterations of recorded loads, on which candidates are simulated; here of a model with one set of
# experts.
subprocess.run(["hecate-replay", "--nodes=2", "--devices=2", "--experts=4", "--layers=2", "--rows=64", "--iterations=20",
                "--synthesize=run.loads"], check=True, capture_output=True)
report = run("--measure=1", "-o", "made", "--profile=run.loads", model=single)
assert "--route trace:run.loads --steps 15\n" in report, report
recorded, traced = Path("run.loads").read_bytes(), Path("traced").read_bytes()
rows = (len(recorded) - 28) // 20  # Rows of an iteration, behind the head.
assert traced == recorded[:8] + (15).to_bytes(4, "little") + recorded[12:28] + recorded[28 + 5 * rows:], len(traced)
assert all("/hecatec-" in line.split("trace:")[1] for line in lines("runs")[1:]), lines("runs")
os.remove("traced")

# In two of five rounds the chosen one is slower than another.
report = run("--measure=4", "-o", "made", SLOW="4")
first = int(re.search(r"^  (\d): built .* as the model says$", report, re.M).group(1))
assert f"  not certain: {first} was faster than the chosen one in 2 of 5 rounds; another measurement may choose it\n" in report, report
assert "* " in report and Path("made").read_text() == "hecate\n", report

# None is left: nothing is written.
os.remove("made")
report = run("--set", "parallel.experts=ep", "--measure=2", "-o", "made", status=3)
assert report.endswith("hecatec: error: --measure: none of the candidates could be built and run\n"), report
assert not os.path.exists("made")

# A full disk.
result = subprocess.run(["sh", "-c", 'ulimit -f 200; exec "$@"', "sh", *words("--measure=1", "-o", "made")], capture_output=True, text=True)
assert result.returncode == 3 and re.search(r"error: cannot write './hecatec-\w+.tokens': File too large", result.stderr), result.stderr
assert not [name for name in os.listdir() if name.startswith("hecatec-")] and not os.listdir("temps")

# A launch line that starts nothing says so before the search.
report = run("--measure=1", PROBE="7", status=3)
assert report.startswith("hecatec: error: --measure: './launch --here' starts nothing here:\n"), report
assert "--launch='mpirun --oversubscribe -n 4'" in report and "Measuring" not in report, report
report = run("--measure=1", "--launch=no/such/launcher", status=3)
assert "'no/such/launcher' starts nothing here: cannot run 'no/such/launcher': No such file or directory" in report, report

# A signal while a program runs ends it, too, and all files go.
for name in ("runs", "order", "compiled"):
    Path(name).unlink(missing_ok=True)
before = sorted(os.listdir())
running = subprocess.Popen(words("--set", "parallel.experts=ultraep", "--measure=1", "-o", "made"), stderr=subprocess.DEVNULL,
                           env={**os.environ, "HANG": "1"})
while not os.path.exists("order"):
    time.sleep(0.05)
began = time.monotonic()
running.send_signal(signal.SIGTERM)
assert running.wait(30) == -signal.SIGTERM and time.monotonic() - began < 20
assert sorted(os.listdir()) == sorted(set(before) | {"runs", "order", "compiled"}) and not os.listdir("temps"), os.listdir()

for more, said in ((("--measure=0",), "needs a number of candidates from 1 to 8"), (("--measure=9",), "got '9'"),
                   (("--measure=2,",), "got '2,'"), (("--measure=2,0",), "limit for each run from 1 to 86400 seconds"),
                   (("--measure=x",), "got 'x'"), (("--measure=1", "-###"), "does not go with -###"),
                   (("--measure=1", "--launch= "), "--launch names no command"),
                   ((), "--launch is of measurements: add --autotune --measure=N")):
    report = run(*more, status=2)
    assert report.startswith("hecatec: error: --") and said in report, (more, report)
alone = subprocess.run([hecatec, "--measure=2", model], capture_output=True, text=True)
assert alone.returncode == 2 and "--measure is of a search: add --autotune" in alone.stderr, alone.stderr
