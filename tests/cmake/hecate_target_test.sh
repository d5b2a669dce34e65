#!/bin/sh
# hecate_target_test.sh BUILD: the target `hecate`, which quickstart.sh builds, has the compiler and what programs link, and no test, no
# kernel for a GPU and no emulator.
set -u
fail() { echo "$1" >&2 && exit 1; }
commands=$(ninja -C "$1" -t commands hecate) || fail "no target hecate"
for file in bin/hecatec bin/hecate-report lib/libhecate_runtime.a lib/libhecate_kernels.a lib/libhecate_tokenizer.a; do
    echo "$commands" | grep -q -e "$file" || fail "it does not make $file"
done
said=$(echo "$commands" | grep -E -e ' -o (tests|bench)/|\.cu\.o|emulated|_fault[0-9]' | head -n 3)
[ -z "$said" ] || fail "it makes more: $said"
