#!/bin/sh
# bench/build.sh [quickstart|test] [FOLDER]: the cost of ./quickstart.sh or ./test.sh on a machine that has built nothing before:
# steps of ninja, wall and CPU time of all that they start. ccache is off. A clone of the commit that is checked out is
# built in FOLDER, a temporary one if none is given, with nvcc and, for quickstart, once more without.
# Packages that ./setup.sh would install should be there.
# Prints a table's rows, and the machine with its load, as bench/results/*-build.md has them.
set -eu
what=${1:-quickstart}
root=$(cd "$(dirname "$0")/.." && pwd)
work=${2:-$(mktemp -d)}
[ $# -ge 2 ] || trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1

# measure NAME COMMAND...: a row of the table; the command's output goes to NAME.log.
measure() {
    name=$1
    shift
    git clone -q "$root" "$work/$name"
    python3 - "$work/$name" "$work/$name.log" "$name" "$@" <<'PYTHON'
import os, re, resource, subprocess, sys, time

folder, log, name, *command = sys.argv[1:]
load, begun = os.getloadavg()[0], time.monotonic()
with open(log, "w") as file:
    status = subprocess.run(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL).returncode
wall, used = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
with open(log, errors="replace") as file:
    last = re.findall(r"^\[(\d+)/\1\]", file.read().replace("\r", "\n"), re.MULTILINE)
steps = " + ".join(last) if last else "?"
print(f"| {name} | {steps} | {wall:.0f} s | {used.ru_utime + used.ru_stime:.0f} s | {load:.1f} | {status} |", flush=True)
if status:
    sys.exit(f"{' '.join(command)} ended with {status}: {log}")
PYTHON
}

echo "| what | steps of ninja | wall | CPU | load before | status |"
echo "| --- | ---: | ---: | ---: | ---: | ---: |"
case $what in
quickstart)
    measure quickstart ./quickstart.sh
    measure quickstart-without-nvcc ./quickstart.sh "-DHECATE_CUDA=$work/none"
    ;;
test) measure test ./test.sh ;;
*)
    echo "usage: bench/build.sh [quickstart|test] [FOLDER]" >&2
    exit 2
    ;;
esac
echo
sed -n 's/^model name\s*: /cpu: /p' /proc/cpuinfo | head -1
echo "cores: $(nproc); memory: $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo); commit: $(git -C "$root" rev-parse --short HEAD)"
echo "compiler: $(gcc --version | head -1); nvcc: $(nvcc --version 2> /dev/null | sed -n 's/.*release //p')"
