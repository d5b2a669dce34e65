#!/bin/sh
# A program for target cpu that no MPI joins learns what the one with MPI learns, to the bit: rows, counts and experts that
# move travel over TCP. It is linked without MPI.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for ranks in mpi tcp; do
    $HECATEC -O1 --ranks=$ranks --set cluster.devices=3 --set train.tokens=480 --set parallel.microbatch=auto "$MPI_TESTS/small.moe" -o $ranks
done
sh "$RANKS" 3 ./mpi train --data "$TEXT" --steps 6 --save mpi.st >said 2>&1 || { cat said && exit 1; }
by_hand=$(dirname "$RANKS")/by_hand.sh
sh "$by_hand" 3 ./tcp train --data "$TEXT" --steps 6 --save tcp.st >said 2>&1 || { cat said && exit 1; }
cmp mpi.st tcp.st
status=0
./tcp train --data "$TEXT" >said 2>&1 || status=$?
if [ $status != 2 ] || ! grep -q 'compiled for 3 ranks .*, but 1 run; start it as 3 ranks' said; then
    echo "one of three ranks: $status" && cat said && exit 1
fi
if ldd ./tcp | grep -q libmpi; then
    echo "tcp is linked with MPI" && exit 1
fi

# The rendezvous file is compared with all others before ranks meet.
cp "$TEXT" book && cp book kept
for use in '--data' '--save'; do
    status=0
    HECATE_RANK=0 HECATE_RANKS=3 HECATE_RENDEZVOUS=book HECATE_COMM_JOIN=1 ./tcp train --data "$TEXT" --steps 1 $use book >said 2>&1 || status=$?
    if [ $status != 2 ] || ! grep -q "HECATE_RENDEZVOUS 'book' is the same file as $use 'book'" said; then
        echo "$use is the rendezvous file: $status" && cat said && exit 1
    fi
    cmp book kept
done
