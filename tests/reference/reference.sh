#!/bin/sh
# reference.sh MODEL PRECISION CHECK: compiles models/MODEL.moe, links the emitted C with the harness
# and compares with stored/MODEL.json. CHECK: stored, differences.
# A model without stored numbers has the tokens and weights' hashes of elementwise.
# Environment: HECATEC; CC; REFERENCE_CFLAGS; REFERENCE_LIBS: the harness and all it needs.
set -eu
model=$1 precision=$2 check=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$HECATEC" -S -o "$work/$model.c" --set "train.precision=$precision" "$here/models/$model.moe"
# shellcheck disable=SC2086 # Lists of flags.
"$CC" -std=gnu17 -O1 -fopenmp -Wall -Wextra -Werror $REFERENCE_CFLAGS -o "$work/$model" \
    "$work/$model.c" $REFERENCE_LIBS
stored=$here/stored/$model.json
[ -f "$stored" ] || stored=$here/stored/elementwise.json
"$work/$model" "$stored" "$check"
