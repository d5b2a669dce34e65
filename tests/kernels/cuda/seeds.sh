#!/bin/sh
# seeds.sh COUNT PROGRAM: the test of a kernel passes under COUNT schedules of the emulator, from SIMT_SEED (0) on.
set -u
first=${SIMT_SEED:-0}
for seed in $(seq "$first" $((first + $1 - 1))); do
    said=$(SIMT_SEED=$seed "$2" 2>&1)
    status=$?
    if [ $status != 0 ]; then
        printf '%s\nwith SIMT_SEED=%d: status %d\n' "$said" "$seed" $status >&2
        exit 1
    fi
done
