# --check-grad on several ranks: gradients are differences of the loss over all ranks, on any owner of the
# parameter; one line per parameter, said once.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for way in "ep states" "fssdp states" "fssdp shard"; do
    set -- $way
    $HECATEC -w -O1 --set parallel.microbatch=2 --set cluster.devices=4 --set parallel.experts=$1 \
        --set parallel.dense=$2 --set train.precision=fp64 "$MPI_TESTS/small.moe" -o model
    sh "$RANKS" 4 ./model train --data "$TEXT" --check-grad 2 > out
    test "$(grep -c '^worst relative error' out)" = 1
    test "$(grep -c '^sparse.experts.w1 \|^embed ' out)" = 2
done
