#!/bin/sh
# router_words.sh ROOT CC [CXX CUDA_INCLUDE]: a score or a weight that the router's kernels do not compute is found when they are
# compiled, on each target. Adds one to a copy of router.h or scores.def, and compiles with the project's warnings.
set -eu
root=$1 cc=$2 cxx=${3-} cuda=${4-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/kernels/router"
header=$work/kernels/router/router.h

on_cpu() {
    "$cc" -I"$work" -I"$root" -DHK_BITS=32 -DHK_ISA_NAME=portable -std=gnu17 -fopenmp -Wall -Wextra -Werror -fsyntax-only \
        "$root/kernels/router/router_cpu.c"
}
on_cuda() {
    "$cxx" -I"$work" -I"$root" -I"$root/tests/simt" -isystem "$cuda" -std=gnu++17 -Wall -Wextra -Werror -Wno-unknown-pragmas \
        -Wno-psabi -fsyntax-only -x c++ "$root/kernels/router/router_cuda.cu"
}
targets=on_cpu
[ -z "$cxx" ] || targets="on_cpu on_cuda"

for target in $targets; do
    cp "$root/kernels/router/router.h" "$root/kernels/router/scores.def" "$work/kernels/router"
    $target
    for planted in header scores; do
        cp "$root/kernels/router/router.h" "$root/kernels/router/scores.def" "$work/kernels/router"
        case $planted in
        header) sed -i "s/^    HK_SOFTMAX_OF_TOPK.*/    HK_SOFTMAX_OF_TOPK, HK_PLANTED/" "$header" && grep -q HK_PLANTED "$header" ;;
        scores) echo 'HK_SCORE_OF_ALL(PLANTED, planted)' >>"$work/kernels/router/scores.def" ;;
        esac
        if $target 2>"$work/said"; then
            echo "$target: HK_PLANTED of $planted is compiled, though nothing computes it"
            exit 1
        fi
        grep -q "HK_PLANTED.* not handled" "$work/said" || { cat "$work/said"; exit 1; }
    done
done
