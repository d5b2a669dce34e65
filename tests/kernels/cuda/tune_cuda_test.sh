#!/bin/sh
# tune_cuda_test.sh TUNER: hecate-tune-cuda on the emulator, where times mean nothing: it writes a line for each shape.
set -eu
tuner=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "$*" >&2
    exit 1
}
"$tuner" "$folder/table" 1 16 >"$folder/said"
grep -q '^sm_90: cuBLASLt computes [0-9]* of 450 shapes$' "$folder/said" || fail "it says: $(cat "$folder/said")"
[ "$(head -n 1 "$folder/table")" = "hecate-products 1 sm_90" ] || fail "head: $(head -n 1 "$folder/table")"
line='(bf16|f32) (nn|nt|tn) m=[0-9]+ n=[0-9]+ k=[0-9]+ own=[0-9.]+ cublaslt=[0-9.]+ (own|cublaslt)'
[ "$(grep -cE "^$line\$" "$folder/table")" = 450 ] || fail "the table: $(cat "$folder/table")"
status=0
"$tuner" "$folder/table" 0 2>"$folder/said" || status=$?
[ $status = 2 ] || fail "no rounds: status $status"
status=0
"$tuner" "$folder/no/table" 1 16 2>"$folder/said" || status=$?
[ $status = 1 ] && grep -q 'no/table: No such file' "$folder/said" || fail "no folder: status $status, $(cat "$folder/said")"
status=0
SIMT_MEMORY=1000 "$tuner" "$folder/table" 1 16 2>"$folder/said" || status=$?
[ $status = 1 ] && grep -q 'hecate-tune-cuda: memory: ' "$folder/said" || fail "no memory: status $status, $(cat "$folder/said")"
