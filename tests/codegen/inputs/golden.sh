#!/bin/sh
# golden.sh OUT: emits inputs/small.mlir to OUT, with the version left out, as small.golden.c has it.
# After a change that is meant: golden.sh tests/codegen/inputs/small.golden.c
set -eu
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")" # Comments quote the lines of small.moe.
hecatec --compile-from=place-buffers -S -o - small.mlir |
    sed -e 's/hecatec [0-9][0-9.]*/hecatec VERSION/' -e 's/\.version = ".*"/.version = "VERSION"/' > "$out"
