#!/bin/sh
# coverage.sh OPS.def: every operation of the moe dialect stands in some stage of some model of
# models/, so that the other tests check its gradient. Environment: HECATEC.
set -eu
ops=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for model in "$here"/models/*.moe; do
    for stage in graph simplify-2 place-buffers; do
        "$HECATEC" -w --compile-to=$stage -o - "$model" >> "$work/ir"
    done
done
sed -n 's/^HEC_OP(\([^, ]*\), moe,.*/moe.\1/p; s/^HEC_SCALAR(\([^, ]*\),.*/moe.\1/p' "$ops" | sort > "$work/known"
grep -oE '"?moe\.[A-Za-z0-9_]+' "$work/ir" | tr -d '"' | sort -u > "$work/used"
test "$(wc -l < "$work/known")" = "$(grep -cE '^ *HEC_(OP\(.*, moe|SCALAR\(.*), "' "$ops")"
comm -23 "$work/known" "$work/used" > "$work/missing"
if test -s "$work/missing"; then
    echo "no model of tests/reference has:" >&2
    cat "$work/missing" >&2
    exit 1
fi
