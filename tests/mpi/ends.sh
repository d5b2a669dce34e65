# How trainings of several ranks end that cannot go on, with sums and experts under way: exit code 1 and one
# message, whether all ranks find it or one; the parameters of the last good step are saved.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "$*; it said:"
    cat err
    exit 1
}

# ended CODE TEXT: that is how the last job did.
ended() {
    [ $status = "$1" ] || fail "expected $1, got $status"
    [ "$(grep -c 'error: ' err)" = 1 ] || fail "expected one error"
    grep -q "error: $2" err || fail "expected '$2'"
    ! grep -qi 'signal\|assert' err || fail "expected an orderly end"
    [ -s kept ] && grep -q 'saved: kept' out || fail "expected parameters"
    rm kept
}

for experts in ep fssdp; do
    # Small buckets: their sums are under way early.
    $HECATEC -O1 --set cluster.devices=2 --set parallel.experts=$experts --set parallel.microbatch=4 \
        --set parallel.bucket=1Ki "$MPI_TESTS/small.moe" -o $experts

    # All ranks know the sum of their losses.
    status=0
    timeout 60 sh "$RANKS" 2 ./$experts train --data "$TEXT" --steps 50 --set train.optimizer.lr=1000 \
        --set train.optimizer.clip=0 --set train.schedule.warmup=0 --save kept \
        > out 2> err || status=$?
    ended 1 "step [0-9]*: the loss is not finite"

    # The data of one rank is gone, at another moment than for the other.
    cp "$TEXT" data
    status=0
    timeout 60 sh "$RANKS" 2 ./$experts train --data data --steps 1000000 --save kept \
        > out 2> err &
    job=$!
    until grep -q 'step *10' out; do sleep 0.1; done
    : > data
    wait $job || status=$?
    ended 1 "'data' became shorter while it was in use"
done
