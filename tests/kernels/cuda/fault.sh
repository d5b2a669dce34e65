#!/bin/sh
# fault.sh plain|race|asan PROGRAM: succeeds if PROGRAM, the test of a kernel with a planted fault, finds it under one
# of four schedules, in the way that is this build's: a failed test or a report of the emulator; a race; a report of a
# sanitizer.
set -u
flavour=$1
program=$2
for seed in 0 1 2 3; do
    said=$(SIMT_SEED=$seed timeout 100 "$program" 2>&1)
    status=$?
    case $flavour in
    plain) [ $status = 70 ] || echo "$said" | grep -q '^\[  FAILED  \]' ;;
    race) [ $status = 71 ] ;;
    asan) echo "$said" | grep -q 'ERROR: AddressSanitizer\|runtime error:' ;;
    esac && {
        echo "$said" | grep -m 3 'simt: \|ERROR: \|runtime error:\|FAILED'
        echo "found with seed $seed"
        exit 0
    }
done
printf '%s\nfault.sh: not found by %s: the last run ended with status %d\n' "$said" "$flavour" "$status" >&2
exit 1
