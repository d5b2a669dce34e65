#!/bin/sh
# curve_weighted.sh weighted|fractions EXPERTS...: twenty training steps of models/curve.moe in fp64 on data
# with weights (0 and 1, or between), three iterations each, on 1, 2, 4 and 8 ranks, with parallel.experts = EXPERTS,
# against stored/curve_KIND.json.
# Environment: HECATEC; PYTHON; RANKS.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/stored/curve.bytes" "$work/data"
kind=$1; shift
cp "$here/stored/curve_$kind.weights" "$work/data.weights"
seed=$("$PYTHON" "$here/compare_curve.py" --seed "$here/stored/curve_$kind.json")

for experts in "$@"; do
    for ranks in 1 2 4 8; do
        rm -f "$work/curve.jsonl"
        "$HECATEC" -o "$work/curve" --set train.precision=fp64 --set train.tokens=288 --set cluster.nodes=1 \
            --set "cluster.devices=$ranks" --set "parallel.experts=$experts" --set "parallel.microbatch=$((8 / ranks))" \
            "$here/models/curve.moe"
        run="$work/curve"
        [ "$ranks" = 1 ] || run="sh $RANKS $ranks $work/curve"
        $run train --set data.order=random --data "$work/data" --seed "$seed" --log "$work/curve.jsonl"
        echo "$experts, $ranks ranks"
        "$PYTHON" "$here/compare_curve.py" "$here/stored/curve_$kind.json" "$work/curve.jsonl" fp64
    done
done
