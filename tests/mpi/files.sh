# Files know nothing of ranks: several ranks evaluate and sample the file of one rank as one does; one rank loads
# the file of several.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Evaluates as one rank and as four: each token loses the same, to the bit. Means are of floats of each batch, and ranks have
# smaller ones: the last digit printed may differ.
evaluate() { # ONE FOUR SAVED
    ./$1 eval --data "$TEXT" --load $3 --sequences 37 --losses losses1 > eval1
    sh "$RANKS" 4 ./$2 eval --data "$TEXT" --load $3 --sequences 37 --losses losses4 > eval4
    cmp losses1 losses4
    paste -d ' ' eval1 eval4 | awk '{
        for (i = 1; i <= NF / 2; i++) {
            apart = $i - $(i + NF / 2)
            if ($i != $(i + NF / 2) && (apart == 0 || apart > 2e-6 || apart < -2e-6)) exit 1
        }
    }'
}

$HECATEC -w -O1 --set parallel.microbatch=16 "$MPI_TESTS/small.moe" -o model1
$HECATEC -w -O1 --set parallel.microbatch=4 --set cluster.devices=4 --set parallel.experts=ep \
    "$MPI_TESTS/small.moe" -o model4
./model1 train --data "$TEXT" --steps 10 --save saved1 > /dev/null
for saved in saved1 saved4; do
    evaluate model1 model4 $saved
    ./model1 sample --load $saved --tokens 20 > sample1
    sh "$RANKS" 4 ./model4 sample --load $saved --tokens 20 > sample4
    cmp sample1 sample4
    sh "$RANKS" 4 ./model4 train --data "$TEXT" --load $saved --steps 5 --save saved4 > out
done
test "$(grep -c '^done: 5 steps' out)" = 1 # Said once, not by every rank.

# Where each rank has the states of a part, the same bits come out.
$HECATEC -w -O1 --set parallel.microbatch=4 --set cluster.devices=4 --set parallel.experts=ep \
    --set parallel.dense=states "$MPI_TESTS/small.moe" -o model4s
for model in model4 model4s; do
    sh "$RANKS" 4 ./$model train --data "$TEXT" --steps 10 --save $model.saved > /dev/null
done
cmp model4.saved model4s.saved

# A capacity drops the same rows in an evaluation, too, though the last round leaves ranks without sequences.
sed 's/  experts =/  capacity = 0.9\n  experts =/' "$MPI_TESTS/small.moe" > limited.moe
$HECATEC -w -O1 --set parallel.microbatch=16 limited.moe -o limited1
$HECATEC -w -O1 --set parallel.microbatch=4 --set cluster.devices=4 --set parallel.experts=fssdp limited.moe \
    -o limited4
evaluate limited1 limited4 saved1
