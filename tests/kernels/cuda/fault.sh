#!/bin/sh
# fault.sh plain|race|asan FAULT PROGRAM: succeeds if PROGRAM, the test of a kernel in which FAULT is planted, finds it under one
# of four schedules, in the way that is this build's: a failed test or a report of the emulator; a race; a report of a
# sanitizer. The first failure ends the test.
set -u
ulimit -c 0
flavour=$1
fault=$2
program=$3
[ "$flavour" = asan ] || export CMOCKA_TEST_ABORT=1 # A report of a sanitizer may come behind a failure.
for seed in 0 1 2 3; do
    said=$(SIMT_FAULT=$fault SIMT_SEED=$seed timeout 100 "$program" 2>&1)
    status=$?
    case $flavour in
    plain) [ $status = 70 ] || echo "$said" | grep -q ': error: Failure!\|^Test failed with exception' ;;
    race) [ $status = 71 ] ;;
    asan) echo "$said" | grep -q 'ERROR: AddressSanitizer\|runtime error:' ;;
    esac && {
        echo "$said" | grep -m 3 'simt: \|ERROR: \|runtime error:\|Failure\|exception'
        echo "found with seed $seed"
        exit 0
    }
done
printf '%s\nfault.sh: not found by %s: the last run ended with status %d\n' "$said" "$flavour" "$status" >&2
exit 1
