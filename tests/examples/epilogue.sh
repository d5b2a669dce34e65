#!/bin/sh
# epilogue.sh RANKS EXAMPLE.moe [hecatec option...]: a loop computes the same bits behind its product and
# as its epilogue.
# Environment: HECATEC; TEXT; RANKS where RANKS > 1.
set -eu
ranks=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

front=check-shapes,group-experts,inline,simplify,use-bf16,differentiate,simplify,recompute
behind=$front,fuse-elementwise,select-kernels,place-buffers
run=
if [ "$ranks" -gt 1 ]; then
    behind=$front,distribute-experts,fuse-elementwise,distribute-dense,select-kernels,place-buffers
    run="sh $RANKS $ranks"
fi
"$HECATEC" -w --save-temps="$work/with" -o "$work/epilogue" "$@"
"$HECATEC" -w --save-temps="$work/without" --passes=$behind -o "$work/behind" "$@"
grep -q 'hk_epilogue){' "$work"/with/*.c
if grep -q 'hk_epilogue){' "$work"/without/*.c; then
    echo "without the pass there are epilogues, too" >&2
    exit 1
fi
for program in epilogue behind; do
    $run "$work/$program" train --data "$TEXT" --steps 5 --seed 7 --save "$work/$program.saved"
done
cmp "$work/epilogue.saved" "$work/behind.saved"
