#!/bin/sh
# test.sh: installs what is missing, builds hecate (plain, with ASan and UBSan, for fuzzing), and runs
# every test. Ends with CTest's summary; exits non-zero when anything failed.
set -eu
cd "$(dirname "$0")"
./setup.sh
./setup.sh cuda-tools || echo "== Goes on: without these tools no test reads the machine code of CUDA kernels"

echo "== Style: clang-format"
git ls-files '*.c' '*.h' '*.cu' '*.cpp' | grep -v '\.golden\.' | xargs -r clang-format --dry-run -Werror

echo "== Build"
# CUDA kernels for the oldest devices and for those with code of their own: two thirds of nvcc's time for all.
cmake -G Ninja -B build -S . -DHECATE_WERROR=ON "-DHECATE_CUDA_ARCHITECTURES=80;90a" -DHECATE_CUDA_PTX=80
cmake --build build

echo "== Build with sanitizers"
wide=ON # Without bf16 in AVX-512, its kernels are compiled for AVX2, so that none is skipped.
if grep -q avx512_bf16 /proc/cpuinfo; then wide=OFF; fi
cmake -G Ninja -B build-sanitize -S . -DHECATE_WERROR=ON -DHECATE_SANITIZE=ON -DHECATE_WIDE=$wide
cmake --build build-sanitize

echo "== Tests with sanitizers"
# MLIR keeps its contexts' memory until exit, and is not ours to check for leaks.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
ctest --test-dir build-sanitize --output-on-failure -j3 -L 'unit|text|sanitized'

echo "== Fuzzing, a minute"
cmake -G Ninja -B build-fuzz -S . -DHECATE_WERROR=ON -DHECATE_FUZZ=ON -DCMAKE_C_COMPILER=clang
cmake --build build-fuzz
ctest --test-dir build-fuzz --output-on-failure -j2

echo "== Tests"
# Six at a time on two cores: many wait for each other's ranks, or for time to pass; tests of several ranks count twice. The
# longest begin. Tests of texts have run above.
ctest --test-dir build --output-on-failure -j6 -LE text
