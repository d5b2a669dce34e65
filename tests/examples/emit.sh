#!/bin/sh
# emit.sh EXAMPLE.moe [hecatec option...]: the emitted C compiles without a warning under gcc and
# clang. Environment: HECATEC; EMITTED_CFLAGS.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$HECATEC" -S -o "$work/program.c" "$@"
for compiler in gcc clang; do
    # -O2: some warnings need the optimizer's knowledge.
    # shellcheck disable=SC2086 # A list of flags.
    "$compiler" -std=gnu17 -O2 -fopenmp -Wall -Wextra -Werror $EMITTED_CFLAGS -c -o /dev/null \
        "$work/program.c"
done
