#!/bin/sh
# nccl_test.sh NCCL_RANKS: the fake of NCCL between processes. Right programs pass under several seeds; a wrong
# one is reported by some rank, and none hangs. 70: a report of the emulator.
set -u
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

expect() { # SIZE CASE STATUSES WORDS: statuses of the ranks in order
    for seed in 0 1 2; do
        rm -f "$folder/id"
        rank=0
        processes=
        while [ $rank -lt "$1" ]; do
            SIMT_SEED=$((seed * 8 + (seed > 0) * rank)) SIMT_DEADLINE=5 \
                timeout 20 "$program" $rank "$1" "$folder/id" "$2" >"$folder/$rank" 2>&1 &
            processes="$processes $!"
            rank=$((rank + 1))
        done
        statuses=
        for process in $processes; do
            wait "$process"
            statuses="$statuses$? "
        done
        if ! echo "$statuses" | grep -q "^$3 $" || ! cat "$folder"/[0-9]* | grep -q "$4"; then
            printf '%s of %d, seed %d: statuses %s, expected %s with "%s":\n' "$2" "$1" $seed "$statuses" "$3" "$4"
            cat "$folder"/[0-9]*
            failed=1
        fi
        [ ! -f "$folder/id" ] || rm -rf "$(tr -d '\0' <"$folder/id")"
        rm -f "$folder"/[0-9]*
    done
}

expect 2 ring "0 0" "rank 1 is done"
expect 3 ring "0 0 0" "rank 2 is done"
expect 2 right "0 0" "rank 1 is done"
expect 2 order "70 70" "NCCL mismatch: rank 1 receives 10 elements of type 7, rank 0 sends 1000 elements"
expect 2 count "70 70" "NCCL mismatch: rank 1 receives 11 elements of type 7, rank 0 sends 10 elements"
expect 2 ungrouped "70 70" "rank 0 of 2 sends rank 1 1000 elements of type 7"
expect 3 ungrouped "70 70 70" "NCCL deadlock, seen by rank"
expect 2 dies "70 9" "rank 1 has died"
expect 2 dies_and_is_seen "0 9" "told: a rank has died"
expect 3 cold_relay "70 70 70" "rank 0 of 3 waits in ncclGroupEnd for rank 2 to connect"
expect 3 cold_rounds "0 0 0" "rank 2 is done"
expect 3 warm_relay "0 0 0" "rank 2 is done"
expect 2 cold_pair "70 70" "ranks [01] and [01] connect in other groups of messages"
expect 2 host "70 70" "are not in one allocation of the device"
exit $failed
