#!/bin/sh
# curve.sh PRECISION: twenty training steps of models/curve.moe, as its command line takes them,
# against stored/curve.json; by two threads and by one, and then once more: the same bits.
# Environment: HECATEC; PYTHON.
set -eu
precision=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$HECATEC" -o "$work/curve" --set "train.precision=$precision" "$here/models/curve.moe"
seed=$("$PYTHON" "$here/compare_curve.py" --seed "$here/stored/curve.json")
for run in 1 2 3; do
    "$work/curve" train --set data.order=random --data "$here/stored/curve.bytes" --seed "$seed" --log "$work/curve.jsonl" \
        --threads $((run < 3 ? run : 1)) --save "$work/saved$run"
done
cmp "$work/saved1" "$work/saved2"
cmp "$work/saved1" "$work/saved3"
"$PYTHON" "$here/compare_curve.py" "$here/stored/curve.json" "$work/curve.jsonl" "$precision"
