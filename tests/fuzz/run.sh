#!/bin/sh
# run.sh FOLDER NAME SECONDS [FLAG...]: fuzzes the target FOLDER/NAME_fuzz from its seeds, from what
# earlier runs learned (FOLDER/corpus/NAME), and from the inputs that once failed (found/NAME).
# A failure leaves its input in FOLDER and prints it.
set -eu
folder=$1 name=$2 seconds=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
corpus=$folder/corpus/$name
mkdir -p "$corpus" "$folder/failures"
found=
[ -d "$here/found/$name" ] && found=$here/found/$name
# Its words, and the names of the lists of functions and operations.
root=$here/../..
names() {
    case $name in
    front) sed -n 's/^HEC_\(FUNCTION\|COMPOSED\)(\([^, ]*\),.*/"\2"/p' "$root/lang/builtins.def" ;;
    module) sed -n 's/^HEC_OP(\([^, ]*\), \([^, ]*\),.*/"\\"\2.\1\\""/p; s/^HEC_\(SCALAR\|NORM\)(\([^, )]*\).*/"\\"moe.\2\\""/p' \
        "$root/ir/ops.def" ;;
    esac
}
dictionary=
if [ -f "$here/$name.dict" ]; then
    names | cat "$here/$name.dict" - >"$folder/$name.dict"
    dictionary=-dict=$folder/$name.dict
fi
# Memory that the C library of MLIR keeps until exit is no leak of ours.
export ASAN_OPTIONS="detect_leaks=${FUZZ_LEAKS:-0}:allocator_may_return_null=1"
export UBSAN_OPTIONS=print_stacktrace=1
# shellcheck disable=SC2086 # Empty ones are left out.
if [ -n "$found" ]; then "$folder/${name}_fuzz" -timeout="${FUZZ_TIMEOUT:-60}" "$found"/*; fi
exec "$folder/${name}_fuzz" -max_total_time="$seconds" -timeout="${FUZZ_TIMEOUT:-60}" -rss_limit_mb=3072 -max_len=40000 \
    -print_final_stats=1 -verbosity="${FUZZ_VERBOSITY:-1}" -artifact_prefix="$folder/failures/$name-" \
    $dictionary "$@" "$corpus" "$folder/seeds/$name" $found
