#!/bin/sh
# gpu.sh [--again] [--emulated] [PART...]: checks and times target cuda on this machine's GPU. Without parts: all of them, in
# under ten minutes. A part that is done is not done again, so that a run which was cut off goes on; --again begins anew.
# Each part writes bench/results/gpu-NAME/PART.txt; the end puts them together into bench/results/gpu-NAME.md.
#
#   device      what GPU, driver and compiler this is
#   build       the project and gpu_bench
#   kernels     every kernel against its double reference, by the tests of its CPU twin
#   sanitizer   the same under compute-sanitizer, memcheck and racecheck, where it is installed
#   programs    whole programs against target cpu
#   speed       every kernel's time, as a share of the copy bandwidth or the peak of products
#   steps       steps of bench-medium and of stacks like Qwen3-30B-A3B and Mixtral 8x7B that fill a GPU
#   tuned       own products against cuBLASLt's, shape by shape, and the steps again with whichever is faster
#   torch       the same stacks by PyTorch: grouped products, compiled layers, flash attention
#
# --emulated: no GPU; part `speed` on the emulator, in the least sizes, and the others skipped: whether the script works.
# HECATE_BUILD: the build folder (build). HECATE_RESULTS: the folder of results. PYTHON: an interpreter with torch (python3).
# Exit status: 0 all parts passed or were skipped with a reason, 1 one failed, 2 a bad command line, 77 no GPU.
set -u
cd "$(dirname "$0")/.." || exit 1
all="device build kernels sanitizer programs speed steps tuned torch"
build=${HECATE_BUILD:-build} python=${PYTHON:-python3}
again=no emulated=no parts=""

usage() { sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//;p}' bench/gpu.sh; }

while [ $# -gt 0 ]; do
    case $1 in
    --again) again=yes ;;
    --emulated) emulated=yes ;;
    --help | -h) usage && exit 0 ;;
    --list) echo "$all" && exit 0 ;;
    *)
        case " $all " in
        *" $1 "*) parts="$parts $1" ;;
        *) echo "gpu.sh: error: there is no part '$1'; parts: $all" >&2 && exit 2 ;;
        esac
        ;;
    esac
    shift
done

if [ $emulated = yes ]; then
    name=emulated parts=${parts:-speed}
elif name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) && [ -n "$name" ]; then
    name=$(echo "$name" | tr 'A-Z ' 'a-z-')
else
    echo "gpu.sh: error: there is no GPU: nvidia-smi finds none (--emulated runs without one)" >&2
    exit 77
fi
results=bench/results
[ $emulated = no ] || results=$build
folder=${HECATE_RESULTS:-$results}/gpu-$name
[ $again = no ] || rm -rf "$folder"
mkdir -p "$folder" || exit 1

part_device() {
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
    nvcc --version | tail -n 2
    date -u '+measured on %Y-%m-%d'
    git rev-parse --short HEAD
}

# Runs a command, and shows the end of what it says.
end_of() {
    "$@" >"$folder/log" 2>&1
    ended=$?
    tail -n 40 "$folder/log"
    return $ended
}

part_build() {
    cmake -G Ninja -B "$build" -S . >/dev/null && end_of cmake --build "$build"
}

part_kernels() { end_of ctest --test-dir "$build" --output-on-failure -L gpu; }

part_sanitizer() {
    command -v compute-sanitizer >/dev/null || skip "compute-sanitizer is not installed"
    for test in rmsnorm router route products_bf16 sdpa; do
        for tool in memcheck racecheck; do
            echo "$test, $tool"
            end_of timeout 120 compute-sanitizer --tool $tool --error-exitcode 1 "$build/tests/kernels_${test}_gpu" || return 1
        done
    done
}

part_programs() { end_of ctest --test-dir "$build" --output-on-failure -R 'targets/cuda-gpu'; }

part_speed() {
    if [ $emulated = yes ]; then
        "$build/tests/gpu_bench_emulated" --tiny
    else
        "$build/bin/gpu_bench"
    fi
}

# steps_of NAME MODEL SETTINGS...: compiles for this GPU, trains and prints the last steps.
steps_of() {
    what=$1 model=$2
    shift 2
    major=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    case $major in 90) major=90a ;; esac
    "$build/bin/hecatec" --target="cuda:sm_$major" -o "$folder/$what" --set cluster.nodes=1 --set cluster.devices=1 \
        --set data.format=bytes --set train.precision=bf16 "$@" "$model" || return 1
    train "$what"
}

train() {
    echo "$1"
    end_of timeout 240 "$folder/$1" train --data /usr/share/common-licenses/GPL-3 --steps 16 --set log.every=1 --profile
}

part_steps() {
    steps_of bench-medium examples/bench-medium.moe &&
        steps_of qwen3-stack examples/qwen3-30b-a3b.moe -D L=4 --set train.tokens=8192 &&
        steps_of mixtral-stack examples/mixtral-8x7b.moe -D L=2 --set train.tokens=8192
}

part_tuned() {
    [ -x "$folder/bench-medium" ] || skip "part steps has compiled nothing"
    end_of timeout 240 "$build/bin/hecatec" "--tune=$folder/products" --target=cuda || return 1
    export HECATE_PRODUCTS="$folder/products"
    for what in bench-medium qwen3-stack mixtral-stack; do
        train $what || return 1
    done
}

part_torch() {
    for way in "" --eager; do
        "$python" bench/gpu/torch_steps.py --model qwen3 --layers 4 $way || return $?
        "$python" bench/gpu/torch_steps.py --model mixtral --layers 2 $way || return $?
    done
}

skip() { echo "skipped: $1" && exit 77; }

# Runs a part in a process of its own; its text becomes the part's file when it is done.
run() {
    file=$folder/$1.txt
    if [ -s "$file" ]; then
        echo "== $1: done before ($file)"
        return 0
    fi
    echo "== $1"
    (part_"$1") >"$file.part" 2>&1
    status=$?
    cat "$file.part"
    case $status in
    0 | 77) mv "$file.part" "$file" ;;
    *) echo "gpu.sh: error: part $1 failed (status $status): $file.part" >&2 && return 1 ;;
    esac
}

failed=0
for part in ${parts:-$all}; do
    run "$part" || failed=1
done
{
    echo "# Target cuda on $name"
    for part in $all; do
        [ -s "$folder/$part.txt" ] || continue
        printf '\n## %s\n\n' "$part"
        case $part in
        speed) cat "$folder/$part.txt" ;;
        *) printf '```\n' && cat "$folder/$part.txt" && printf '```\n' ;;
        esac
    done
} >"$folder.md"
echo "results: $folder.md"
exit $failed
