#!/bin/sh
# gpu_sh_test.sh SCRIPT: what bench/gpu.sh says without a GPU, and that it writes results, once.
set -eu
script=$1
export HECATE_RESULTS="$TMPDIR/results"

fail() { echo "$1" >&2 && exit 1; }

status=0
"$script" nonsense 2>"$TMPDIR/said" || status=$?
[ $status -eq 2 ] && grep -q "there is no part 'nonsense'" "$TMPDIR/said" || fail "a part that is none: status $status"
if ! command -v nvidia-smi >/dev/null; then
    status=0
    "$script" 2>"$TMPDIR/said" || status=$?
    [ $status -eq 77 ] && grep -q 'there is no GPU' "$TMPDIR/said" || fail "no GPU: status $status"
fi
"$script" --emulated >"$TMPDIR/said" || fail "--emulated: $(cat "$TMPDIR/said")"
for kernel in rmsnorm_grad_bf16 adamw_rounded_f32 matmul_tn_bf16 grouped_nn_bf16 sdpa_grad_bf16 router_f32; do
    grep -q "| $kernel " "$HECATE_RESULTS/gpu-emulated.md" || fail "no line of $kernel"
done
"$script" --emulated | grep -q 'speed: done before' || fail "a part that is done is done again"
