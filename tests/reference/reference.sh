#!/bin/sh
# reference.sh MODEL PRECISION CHECK: compiles models/MODEL.moe, links the emitted C with the harness
# and compares with stored/MODEL.json. CHECK: stored, differences.
# A model without stored numbers has the tokens and weights' hashes of elementwise; functions is written by functions.py.
# Environment: HECATEC; PYTHON; CC; REFERENCE_CFLAGS; REFERENCE_LIBS: the harness and all it needs.
set -eu
model=$1 precision=$2 check=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

source=$here/models/$model.moe
if [ "$model" = functions ]; then
    source=$work/functions.moe
    "$PYTHON" "$here/functions.py" "$here/../../lang/builtins.def" > "$source"
fi
"$HECATEC" -S -o "$work/$model.c" --set "train.precision=$precision" "$source"
# shellcheck disable=SC2086 # Lists of flags.
"$CC" -std=gnu17 -O1 -fopenmp -Wall -Wextra -Werror $REFERENCE_CFLAGS -o "$work/$model" \
    "$work/$model.c" $REFERENCE_LIBS
stored=$here/stored/$model.json
[ -f "$stored" ] || stored=$here/stored/elementwise.json
"$work/$model" "$stored" "$check"
