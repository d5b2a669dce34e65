#!/bin/sh
# A program of two ranks that clang compiled: mpicc brings MPI along for any compiler.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$HECATEC" --cc=clang -O1 -o "$work/program" --set cluster.devices=2 --set parallel.experts=ep \
    "$MPI_TESTS/small.moe"
sh "$RANKS" 2 "$work/program" train --data "$TEXT" --steps 2 >"$work/out" 2>&1 || {
    cat "$work/out" >&2
    exit 1
}
