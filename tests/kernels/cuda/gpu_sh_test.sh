#!/bin/sh
# gpu_sh_test.sh SCRIPT [RUN]: the messages of bench/gpu.sh for a bad command line, every case of gpu_bench on the
# emulator, and how run.sh of a bundle deals with steps that pass, fail, lack something, hang, and with being killed.
set -u
script=$1 run=$(dirname "$1")/gpu/run.sh
fail() { echo "$1" >&2 && exit 1; }

status=0
"$script" nonsense 2>"$TMPDIR/said" || status=$?
[ $status -eq 2 ] && grep -q "there is no 'nonsense'" "$TMPDIR/said" || fail "a command that is none: status $status"
"$script" emulated >"$TMPDIR/said" || fail "emulated: $(cat "$TMPDIR/said")"
for kernel in rmsnorm_grad_bf16 adamw_rounded_f32 matmul_tn_bf16 grouped_nn_bf16 sdpa_grad_bf16 router_f32; do
    grep -q "| $kernel " "$TMPDIR/said" || fail "no line of $kernel"
done

# A bundle whose tests are scripts.
bundle=$TMPDIR/bundle out=$TMPDIR/out
rm -rf "$bundle" "$out"
mkdir -p "$bundle/tests" "$bundle/programs"
cp "$run" "$bundle"
test_is() { printf '#!/bin/sh\necho "$0" >>"%s/ran"\n%s\n' "$TMPDIR" "$2" >"$bundle/tests/kernels_$1_gpu" && chmod +x "$bundle/tests/kernels_$1_gpu"; }
test_is good 'echo fine'
test_is bad 'exit 3'
test_is lacking 'exit 77'
test_is hanging '(trap "" TERM; exec sleep 1234.5) & sleep 1234.5' # One that does not obey.
result_of() { sed -n "s/^test-$1	\([^	]*\)	.*/\1/p" "$out/results.tsv"; }

rm -f "$TMPDIR/ran"
status=0
STEP_LIMIT=2 "$bundle/run.sh" "$out" 100 'test-[bghl]*[dg]' >"$TMPDIR/said" || status=$?
[ $status -eq 1 ] || fail "a failed step: status $status"
for pair in good:passed bad:FAILED lacking:absent hanging:timeout; do
    [ "$(result_of "${pair%:*}")" = "${pair#*:}" ] || fail "$pair: $(cat "$out/results.tsv")"
done
[ "$(tar -xzOf "$out/logs.tgz" logs/test-good.txt)" = fine ] || fail "no log of a step"
! pgrep -f 'sleep 1234\.5' >/dev/null || fail "what a step has started is left"

# Finished steps are not run again; those without time are.
ran=$(wc -l <"$TMPDIR/ran")
"$bundle/run.sh" "$out" 100 'test-[bghl]*[dg]' >"$TMPDIR/said"
[ "$(wc -l <"$TMPDIR/ran")" = "$ran" ] || fail "a step that is done is run again"
rm -rf "$out"
"$bundle/run.sh" "$out" 10 'test-go*' >"$TMPDIR/said"
[ "$(result_of good)" = skipped ] || fail "without time: $(cat "$out/results.tsv")"
"$bundle/run.sh" "$out" 100 'test-go*' >"$TMPDIR/said"
[ "$(result_of good)" = passed ] || fail "with time again: $(cat "$out/results.tsv")"

# Killed at some moments: finished steps are kept, and a run goes on.
rm -rf "$out"
for delay in 0.2 0.5 0.9 1.3; do
    STEP_LIMIT=2 timeout -s KILL $delay "$bundle/run.sh" "$out" 100 'test-[bghl]*[dg]' >/dev/null 2>&1
    [ ! -e "$out/logs.tgz" ] || tar -tzf "$out/logs.tgz" >/dev/null || fail "half an archive of logs"
done
STEP_LIMIT=2 "$bundle/run.sh" "$out" 100 'test-[bghl]*[dg]' >"$TMPDIR/said"
for pair in good:passed bad:FAILED lacking:absent hanging:timeout; do
    [ "$(result_of "${pair%:*}")" = "${pair#*:}" ] || fail "killed, $pair: $(cat "$out/results.tsv")"
done
