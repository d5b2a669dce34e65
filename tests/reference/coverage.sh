#!/bin/sh
# coverage.sh IR-TOOL: every operation of the moe dialect stands in some stage of some model of
# models/, or in that of functions.py, so that the other tests check its gradient; but for what has none, since a pass
# for another target puts it in place of others. Environment: HECATEC; PYTHON.
set -eu
tool=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$PYTHON" "$here/functions.py" "$here/../../lang/builtins.def" > "$work/functions.moe"
for model in "$here"/models/*.moe "$work/functions.moe"; do
    for stage in graph simplify-2 place-buffers; do
        "$HECATEC" -w --compile-to=$stage -o - "$model" >> "$work/ir"
    done
done
"$tool" --irdl | sed -n '/irdl.dialect @moe/,/^ *irdl.dialect @fssdp/s/.*irdl.operation @\([A-Za-z0-9_]*\).*/moe.\1/p' | grep -vxE "moe\.(gathered_contract|(gathered_)?swiglu)" | sort > "$work/known"
grep -qx moe.rmsnorm_grad "$work/known"
grep -oE '"?moe\.[A-Za-z0-9_]+' "$work/ir" | tr -d '"' | sort -u > "$work/used"
comm -23 "$work/known" "$work/used" > "$work/missing"
if test -s "$work/missing"; then
    echo "no model of tests/reference has:" >&2
    cat "$work/missing" >&2
    exit 1
fi
