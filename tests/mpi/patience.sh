# A rank that takes long to load and to save is not lost: patience is for training steps.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
$HECATEC -O1 --set cluster.devices=2 --set parallel.experts=fssdp --set parallel.microbatch=4 \
    "$MPI_TESTS/small.moe" -o model
$CC -shared -fPIC -Wall -Wextra -Werror -o slow.so "$MPI_TESTS/slow.c"
sh "$RANKS" 2 ./model train --data "$TEXT" --steps 1 --save first > out 2> err || { cat err; exit 1; }

# Rank 1 is slow to load, rank 0 to save.
export HECATE_COMM_PATIENCE=2
train="train --data $TEXT --steps 2 --load first --save second"
slow="env LD_PRELOAD=$work/slow.so SLOW_SECONDS=4"
timeout 60 sh "$RANKS" 1 $slow ./model $train : -n 1 $slow SLOW_OPEN=first ./model $train \
    > out 2> err || { cat err; exit 1; }
grep -q 'saved: second' out
[ -s second ] && [ "$(ls | grep -c '^second')" = 1 ] || { ls; exit 1; }

# One that takes for ever in a step, as rank 0 does here with its log, is the one that is named: not those that wait
# for others that wait for it.
$HECATEC -O1 --set cluster.devices=4 --set parallel.experts=fssdp --set parallel.microbatch=4 \
    "$MPI_TESTS/small.moe" -o four
code=0
SLOW_SECONDS=60 SLOW_FLUSH=1 timeout 40 sh "$RANKS" 1 env LD_PRELOAD=$work/slow.so ./four train --data "$TEXT" \
    --steps 9 --log log.jsonl : -n 3 ./four train --data "$TEXT" --steps 9 --log log.jsonl > out 2> err || code=$?
[ $code = 1 ] || { echo "ended with $code"; cat err; exit 1; }
grep -q 'error: lost rank 0 (process' err || { cat err; exit 1; }
! grep -q 'lost rank [1-3]' err || { cat err; exit 1; }
