# Files know nothing of ranks: what one rank has saved, several evaluate and sample as one does; what they
# have saved, one loads.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
$HECATEC -w --set parallel.microbatch=16 "$MPI_TESTS/small.moe" -o model1
$HECATEC -w --set parallel.microbatch=4 --set cluster.devices=4 --set parallel.experts=ep \
    "$MPI_TESTS/small.moe" -o model4
./model1 train --data "$TEXT" --steps 10 --save saved1 > /dev/null
for saved in saved1 saved4; do
    ./model1 eval --data "$TEXT" --load $saved --sequences 37 > eval1
    sh "$RANKS" 4 ./model4 eval --data "$TEXT" --load $saved --sequences 37 > eval4
    cmp eval1 eval4
    ./model1 sample --load $saved --tokens 20 > sample1
    sh "$RANKS" 4 ./model4 sample --load $saved --tokens 20 > sample4
    cmp sample1 sample4
    sh "$RANKS" 4 ./model4 train --data "$TEXT" --load $saved --steps 5 --save saved4 > out
done
test "$(grep -c '^done: 5 steps' out)" = 1 # Said once, not by every rank.

# Where each rank has the states of a part, the same bits come out.
$HECATEC -w --set parallel.microbatch=4 --set cluster.devices=4 --set parallel.experts=ep \
    --set parallel.dense=shard "$MPI_TESTS/small.moe" -o model4s
for model in model4 model4s; do
    sh "$RANKS" 4 ./$model train --data "$TEXT" --steps 10 --save $model.saved > /dev/null
done
cmp model4.saved model4s.saved

# A capacity drops the same rows in an evaluation, too, though the last round leaves ranks without sequences.
sed 's/  experts =/  capacity = 0.9\n  experts =/' "$MPI_TESTS/small.moe" > limited.moe
$HECATEC -w --set parallel.microbatch=16 limited.moe -o limited1
$HECATEC -w --set parallel.microbatch=4 --set cluster.devices=4 --set parallel.experts=fssdp limited.moe \
    -o limited4
./limited1 eval --data "$TEXT" --load saved1 --sequences 37 > eval1
sh "$RANKS" 4 ./limited4 eval --data "$TEXT" --load saved1 --sequences 37 > eval4
cmp eval1 eval4
