# Logits by blocks of 512 tokens (parallel.logits) change no bit of what is trained, evaluated and sampled: on one rank, on two and on
# four, in bf16, of two losses whose heads are the table of embeddings. Other blocks: the same gradients.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# run NAME RANKS FLAG...: trains, evaluates and samples
run() {
    name=$1 ranks=$2
    shift 2
    "$HECATEC" -w -O1 "$@" "$model" -o "$name"
    {
        sh "$RANKS" "$ranks" "./$name" train --data "$TEXT" --steps 3 --save "$name.saved" &&
            sh "$RANKS" "$ranks" "./$name" eval --data "$TEXT" --load "$name.saved" --sequences 9 --logits "$name.logits" --losses "$name.losses" &&
            sh "$RANKS" "$ranks" "./$name" sample --load "$name.saved" --prompt 'The quick' --tokens 20 > "$name.text"
    } > out 2>&1 || { cat out && exit 1; }
}

# check NAME RANKS FLAG...: with 512 tokens at a time as with 1,024.
check() {
    case=$1 ranks=$2
    shift 2
    run "$case" "$ranks" "$@"
    run "$case-blocks" "$ranks" "$@" --set parallel.logits=512
    for kind in saved logits losses text; do cmp "$case.$kind" "$case-blocks.$kind"; done
}

model=$MPI_TESTS/small.moe
check one 1 --set parallel.microbatch=64 --set train.tokens=1024
for program in one one-blocks; do ./$program info | grep '  arena' > $program.arena; done
! cmp -s one.arena one-blocks.arena # One of them has logits of all tokens.
check bf16 1 --set parallel.microbatch=64 --set train.tokens=1024 --set train.precision=bf16 --set parallel.recompute=all
check two 2 --set parallel.microbatch=64 --set train.tokens=2048 --set cluster.devices=2
check four 4 --set parallel.microbatch=64 --set train.tokens=4096 --set cluster.devices=4 --set parallel.experts=ep --set parallel.dense=states
model=$MPI_TESTS/../../examples/tiny.moe # Its head is a matrix of its own, in panels.
check head 1 --set parallel.microbatch=8 --set train.tokens=1024

# Blocks that cut sums over tokens elsewhere, and no whole number of blocks: gradients against differences.
"$HECATEC" -w -O1 --set parallel.logits=7 --set train.precision=fp64 --set train.tokens=64 --set parallel.microbatch=4 "$MPI_TESTS/small.moe" -o small
./small train --data "$TEXT" --check-grad 4 --seed 2
