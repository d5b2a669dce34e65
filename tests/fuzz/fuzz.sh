#!/bin/sh
# fuzz.sh SECONDS [NAME...]: builds the fuzz targets in build-fuzz and runs each NAME (all of them by
# default) for SECONDS. An hour of the front end: tests/fuzz/fuzz.sh 3600 front
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:?SECONDS}
shift
[ $# -gt 0 ] || set -- front module data store checkpoint config weights ids loads topology blocking movement options
cmake -G Ninja -B build-fuzz -S . -DHECATE_FUZZ=ON -DCMAKE_C_COMPILER=clang > /dev/null
cmake --build build-fuzz
for name in "$@"; do
    sh tests/fuzz/run.sh build-fuzz/fuzz "$name" "$seconds"
done
