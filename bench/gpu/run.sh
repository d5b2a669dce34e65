#!/bin/sh
# run.sh OUT [SECONDS] [PART...]: checks and times target cuda on the GPU of this machine, with what lies beside this script.
#
#   right    every kernel against its reference in double precision; programs against target cpu, to the bit where they run twice
#   fast     each kernel beside PyTorch's; steps of models that fill a GPU, with a profile; the same models by PyTorch
#   why      memory errors and races (compute-sanitizer), counters (ncu), the table of cuBLASLt's GEMMs
#
# A PART may also be a pattern of names of steps: run.sh OUT 'speed-*' 'steps-*'. Parts run in this order, most valuable steps first, for SECONDS (540) in all. Each step has a limit, and is skipped where less
# time is left than it needs. A line of OUT/results.tsv is written behind each step: name, result, seconds, its last line. Results:
#   passed   FAILED   timeout (took longer than its limit)   absent (something that it needs is not here)
#   skipped (no time left)
# OUT/logs.tgz has all output. Steps that have a result other than skipped are not run again: a run that was cut off goes on;
# begin anew in another folder. Exit status: 0 nothing failed, 1 a step failed, 2 a bad command line.
set -u
here=$(cd "$(dirname "$0")" && pwd)
case ${1:-} in '' | -*) sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//;p}' "$0" && exit 2 ;; esac
out=$1
shift
budget=540
case ${1:-x} in *[!0-9]*) ;; *) budget=$1 && shift ;; esac
parts=${*:-right fast why}
python=${PYTHON:-python3}
begun=$(date +%s)
logs=$out/logs
mkdir -p "$logs" || exit 2
out=$(cd "$out" && pwd) logs=$out/logs
group=
trap '[ -z "$group" ] || kill -s KILL -- -$group; exit 143' HUP INT TERM
left() { echo $((budget - $(date +%s) + begun)); }

# Libraries: ours, then the toolkit's, then those of PyTorch's packages.
path=$here/lib
packages=$("$python" -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null)
for name in libcudart.so.13 libcublasLt.so.13 libcublas.so.13 libnccl.so.2; do
    for place in /usr/local/cuda/lib64 /usr/local/cuda/lib ${packages:+"$packages"}; do
        found=$(find -L "$place" -name $name 2>/dev/null | head -n 1)
        if [ -n "$found" ]; then path=$path:${found%/*} && break; fi
    done
done
export LD_LIBRARY_PATH="$path" OMP_WAIT_POLICY=passive

# record NAME RESULT SECONDS LINE
record() {
    [ -z "$(cat "$out/results.tsv" 2>/dev/null)" ] || sed -i "/^$1	/d" "$out/results.tsv"
    printf '%s\t%s\t%s\t%s\n' "$@" >>"$out/results.tsv"
    tar -C "$out" -czf "$out/logs.tgz.part" logs && mv "$out/logs.tgz.part" "$out/logs.tgz"
}

# step NAME LIMIT NEEDS COMMAND...: runs it for LIMIT seconds at most, if NEEDS are left. Status 77 of a command: something is absent.
step() {
    name=$1 limit=$2 needs=$3
    shift 3
    # shellcheck disable=SC2254 # A pattern.
    case $name in $only) ;; *) return 0 ;; esac
    before=$(sed -n "s/^$name	\([^	]*\)	.*/\1/p" "$out/results.tsv" 2>/dev/null)
    case $before in passed | FAILED | timeout | absent) return 0 ;; esac
    now=$(left)
    if [ "$now" -lt "$needs" ]; then
        record "$name" skipped 0 "$now s left, $needs needed"
        return 0
    fi
    limit=${STEP_LIMIT:-$limit} # Tests have less patience.
    [ "$limit" -le "$now" ] || limit=$now
    from=$(date +%s)
    # A group of its own, all of which goes when the step ends: processes that are left would slow what comes behind.
    setsid timeout -k 5 "$limit" "$@" >"$logs/$name.txt" 2>&1 </dev/null &
    group=$!
    wait $group
    status=$?
    kill -s KILL -- -$group 2>/dev/null
    group=
    case $status in 0) word=passed ;; 77 | 126 | 127) word=absent ;; 124 | 137) word=timeout ;; *) word=FAILED ;; esac
    record "$name" $word $(($(date +%s) - from)) "$(tail -n 1 "$logs/$name.txt" | tr '\t' ' ' | cut -c1-200)"
}

# Tests of cmocka whose tests were all skipped have shown nothing.
test_of() { step "test-$1" 40 20 "$here/tests/kernels_$1_gpu"; }

# program_step NAME LIMIT NEEDS PROGRAM [FLAG]: where the bundle has the program.
program_step() {
    name=$1 limit=$2 needs=$3 place=$here/programs/$4
    shift 4
    [ ! -d "$place" ] || step "$name" "$limit" "$needs" "$python" "$here/check.py" "$place" "$out/tmp" "$@"
}

part_right() {
    # Products by Hopper's instructions first, which have run nowhere else.
    for test in products_bf16 grouped gathered swiglu matmul sdpa_values sdpa router route; do test_of $test; done
    for program in operations-fp32 operations-bf16 tiny gpt-moe-s deepseek-v3-like bench-medium tiny-muon tiny-student; do
        program_step "program-$program" 90 30 $program
    done
    # Ranks that share a GPU take turns of milliseconds, unless MPS lets them compute beside each other.
    for program in "$here"/programs/ranks-*; do
        program_step "${program##*/}" 90 40 "${program##*/}" --mps
    done
    program_step turns-of-ranks 90 60 ranks-tiny-4-fssdp-fp32
    for test in "$here"/tests/kernels_*_gpu; do
        test=${test##*/kernels_}
        test_of "${test%_gpu}"
    done
}

part_fast() {
    for part in matmul grouped gathered sdpa rmsnorm permute combine gather cross_entropy adamw sum_squares route; do
        step "speed-$part" 40 20 "$here/bin/gpu_bench" $part
    done
    step speed-torch 120 60 "$python" "$here/torch_kernels.py"
    for program in bench-medium qwen3-stack mixtral-stack; do
        program_step "steps-$program" 90 40 $program --time
    done
    step torch-qwen3 150 100 "$python" "$here/torch_steps.py" --model qwen3 --layers 4
    step torch-mixtral 150 100 "$python" "$here/torch_steps.py" --model mixtral --layers 2
}

part_why() {
    for program in mixtral-stack qwen3-stack bench-medium; do
        [ ! -d "$here/programs/$program" ] || step "kernels-$program" 120 40 "$python" "$here/kernels.py" "$here/programs/$program"
    done
    for part in matmul grouped sdpa; do
        step "counters-$part" 90 40 ncu --clock-control none --launch-skip 3 --launch-count 3 --set full --print-details all "$here/bin/gpu_bench" $part
    done
    for test in products_bf16 grouped sdpa_values router route rmsnorm; do
        for tool in memcheck racecheck; do
            step "$tool-$test" 60 30 compute-sanitizer --tool $tool --error-exitcode 1 "$here/tests/kernels_${test}_gpu"
        done
    done
    step tune 240 60 sh -c '"$0" "$1" 3 || { grep -q . "$1" 2>/dev/null && exit 1 || exit 77; }' "$here/bin/hecate-tune-cuda" "$out/products"
}

only='*'
step device 30 0 sh -c 'nvidia-smi --query-gpu=name,driver_version,memory.total,memory.free,clocks.max.sm,clocks.sm --format=csv && nvcc --version | tail -n 2 && cat "$0"/COMMIT' "$here"
for part in $parts; do
    case $part in
    right | fast | why) only='*' && part_"$part" ;;
    *[*-]*) only=$part && part_right && part_fast && part_why ;;
    *) echo "run.sh: error: there is no part '$part'; parts: right fast why, or a pattern of steps" >&2 && exit 2 ;;
    esac
done
cat "$out/results.tsv"
awk -F'\t' '{n[$2]++} END {for (w in n) printf "%s %d  ", w, n[w]; print ""}' "$out/results.tsv"
! grep -qE '	(FAILED|timeout)	' "$out/results.tsv"
