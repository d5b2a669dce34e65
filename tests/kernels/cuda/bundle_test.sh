#!/bin/sh
# bundle_test.sh SCRIPT: the bundle for machines with a GPU, with one program. Without a GPU every step starts and says that
# something is absent, and nothing counts as passed. A kernel that is changed in its sources is built there, and the library that all load with it.
set -u
script=$1
fail() { echo "$1" >&2 && exit 1; }

"$script" bundle --quick "$TMPDIR/b" || fail "no bundle"
size=$(stat -c %s "$TMPDIR/b.tar.xz")
[ "$size" -lt $((45 << 20)) ] || fail "the bundle has $size bytes"
rm -rf "$TMPDIR/there" "$TMPDIR/out" && mkdir "$TMPDIR/there" && tar -C "$TMPDIR/there" -xJf "$TMPDIR/b.tar.xz" || fail "no archive"
there=$TMPDIR/there/b
if ! command -v nvidia-smi >/dev/null; then
    "$there/run.sh" "$TMPDIR/out" 200 right 'memcheck-*' >"$TMPDIR/said" || fail "without a GPU: $(cat "$TMPDIR/said")"
    awk -F'\t' '$2 != "absent"' "$TMPDIR/out/results.tsv" | grep . && fail "a step that is not absent"
    [ "$(grep -c '^test-' "$TMPDIR/out/results.tsv")" = "$(ls "$there/tests" | wc -l)" ] || fail "tests are missing"
    grep -q '^program-operations-fp32' "$TMPDIR/out/results.tsv" || fail "no step of the program"
fi

before=$(sha256sum "$there/lib/libhecate_kernels_cuda.so")
make -s -C "$there/src" NVCC="$NVCC" || fail "sources as they are do not build"
sed -i 's/sum\[i\] += term/sum[i] += 2 * term/' "$there/src/kernels/add/add_cuda.cu"
built=$(make -C "$there/src" NVCC="$NVCC") || fail "a changed kernel does not build"
[ "$(echo "$built" | grep -c -e ' -c ')" = 1 ] || fail "not one kernel is built again: $built"
[ "$(sha256sum "$there/lib/libhecate_kernels_cuda.so")" != "$before" ] || fail "the library is as before"
