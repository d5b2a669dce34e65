#!/bin/sh
# bf16.sh MODEL: models/MODEL.moe in bf16 against the same model in fp64, both from its emitted C with
# the harness, on weights that bf16 holds exactly.
# Environment: HECATEC; CC; REFERENCE_CFLAGS; REFERENCE_LIBS: the harness and all it needs.
set -eu
model=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for precision in fp64 bf16; do
    "$HECATEC" -S -o "$work/$precision.c" --set "train.precision=$precision" "$here/models/$model.moe"
    # shellcheck disable=SC2086 # Lists of flags.
    "$CC" -std=gnu17 -O1 -fopenmp -Wall -Wextra -Werror $REFERENCE_CFLAGS -o "$work/$precision" \
        "$work/$precision.c" $REFERENCE_LIBS
done
"$work/fp64" "$here/stored/$model.json" write "$work/values"
"$work/bf16" "$here/stored/$model.json" compare "$work/values"
