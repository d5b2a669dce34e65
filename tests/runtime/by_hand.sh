#!/bin/sh
# by_hand.sh N PROGRAM ARGUMENT...: runs PROGRAM as N ranks that nothing but the environment joins: no MPI. Ends with
# the first status that is not 0.
ranks=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HECATE_RANKS="$ranks" HECATE_LOCAL_RANKS="$ranks" HECATE_RENDEZVOUS="${HECATE_RENDEZVOUS-$folder/meet}" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
[ -n "$HECATE_RENDEZVOUS" ] || unset HECATE_RENDEZVOUS
rank=0 pids=
while [ "$rank" -lt "$ranks" ]; do
    HECATE_RANK=$rank HECATE_LOCAL_RANK=$rank "$@" </dev/null &
    pids="$pids $!"
    rank=$((rank + 1))
done
status=0
for pid in $pids; do
    wait "$pid" || { code=$?; [ $status -ne 0 ] || status=$code; }
done
exit $status
