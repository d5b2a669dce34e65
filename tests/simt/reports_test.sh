#!/bin/sh
# reports_test.sh PROGRAM FLAVOUR: each fault of reports.cu is reported in its words, in the builds that can see it,
# under the fixed order and under a random one, and right code is not. 70: the emulator, 71: its race detector.
set -u
program=$1
flavour=$2
failed=0

expect() { # BUILDS STATUS NAME WORDS
    case " $1 " in *" $flavour "*) ;; *) return ;; esac
    for seed in 0 1; do
        said=$(SIMT_SEED=$seed SIMT_PROTECT=1 SIMT_DEADLINE=0.2 timeout 20 "$program" "$3" 2>&1)
        status=$?
        if [ $status != "$2" ] || ! echo "$said" | grep -q "$4"; then
            printf '%s, seed %d: status %d, expected %d with "%s":\n%s\n' "$3" $seed $status "$2" "$4" "$said"
            failed=1
        fi
    done
}

expect "plain race" 70 some_miss_a_barrier "lanes of one warp came to __syncthreads at .*reports.cu:"
expect "plain race" 70 a_lane_is_missing "have exited or do not exist\|exits while other lanes wait for it in __shfl_xor_sync"
expect "plain race" 70 half_waits "the warp diverged: lane .* is in __shfl"
expect "plain race" 70 reads_who_is_not_there "reads lane 20, which takes no part"
expect "plain race" 70 waits_for_ever "deadlock"
expect "plain race" 70 copies_from_an_odd_place "is not a multiple of 16"
expect "plain" 70 copies_and_exits "exits with 1 cp.async under way"
expect "plain race" 70 copies_too_much "which are not in one allocation"
expect "race" 71 neighbours_without_barrier "race on shared memory"
expect "race" 71 parts_beside_a_whole "race on device memory"
expect "plain race" 0 parts_beside_each_other "no report"
expect "race" 71 blocks_share_a_place "race on device memory"
expect "race" 71 adds_beside_atomics "race on device memory"
expect "race" 70 writes_to_the_host "touches .* which is the host's"
expect "plain race" 70 too_many_below "a grid of (1,65536,1) is too large"
expect "plain race" 70 too_many_behind "a grid of (1,1,65536) is too large"
expect "plain race" 70 too_many_threads "a block of 2048 threads; at most 1024"
expect "plain race" 70 too_deep_a_block "a block of (1,1,65) is too large"
expect "plain race" 70 more_threads_than_bounds "a block of 96 threads; it was compiled for 64"
expect "plain race" 0 as_many_as_bounds "no report"
expect "plain race" 70 too_many_without_bounds "a block of 288 threads; without __launch_bounds__"
expect "plain race" 0 few_without_bounds "no report"
expect "plain race" 70 shared_without_asking "65536 bytes of shared memory; it may have 49152"
expect "plain race" 70 more_shared_than_there_is "refused: for_two_warps"
expect "plain race" 70 default_stream "on the default stream"
expect "plain race" 70 host_reads_the_device "the host touches device memory"
expect "plain race" 70 frees_what_is_not_its_own "which was not allocated"
expect "plain race" 70 copies_beyond_the_end "cross an allocation's end"
expect "plain race" 70 streams_wait_for_each_other "stands at a message that never comes"
exit $failed
