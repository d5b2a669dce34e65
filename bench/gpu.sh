#!/bin/sh
# gpu.sh bundle [--quick] [FOLDER]
#     Makes FOLDER.tar.xz (build/gpu-bundle.tar.xz): one file that checks and times target cuda on a machine that has a GPU, a
#     driver, CUDA's libraries and Python, and nothing of this project. --quick: with the smallest program only.
# gpu.sh run OUT [SECONDS] [PART...]
#     Makes the bundle and runs it on this machine: as `run.sh OUT ...` does, which the bundle has. Parts: right fast why.
# gpu.sh results OUT FILE
#     Turns what a run has left in OUT into a page of bench/results.
# gpu.sh emulated
#     gpu_bench on the emulator, in the least sizes: whether every case of it runs.
#
# On the machine with the GPU: tar xf gpu-bundle.tar.xz && gpu-bundle/run.sh OUT
# HECATE_BUILD: the build folder (build). PYTHON: an interpreter (python3), with torch where PyTorch is to be measured, too.
# Exit status: 0 done, 1 a step failed, 2 a bad command line.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${HECATE_BUILD:-build} python=${PYTHON:-python3}
usage() { sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//;p}' bench/gpu.sh; }

what=${1:-}
[ $# -eq 0 ] || shift
case $what in
bundle) exec "$python" bench/gpu/bundle.py "$build" "$@" ;;
run)
    case ${1:-} in '' | -*) usage >&2 && exit 2 ;; esac
    "$python" bench/gpu/bundle.py "$build" && exec "$build/gpu-bundle/run.sh" "$@"
    exit 1
    ;;
results) exec "$python" bench/gpu/results.py "$@" ;;
emulated) exec "$build/tests/gpu_bench_emulated" --tiny ;;
--help | -h) usage ;;
*)
    echo "gpu.sh: error: there is no '$what'; bundle, run, results, emulated (--help)" >&2
    exit 2
    ;;
esac
