# exact.sh POLICY PRECISION: a small model as 1, 2 and 4 ranks, equal sequences in each iteration.
# Gradients of one step agree tensor by tensor, with experts as the router chooses and with all tokens
# sent to one place; so do the losses of 20 steps on the experts that one rank chose, saved parameters,
# and what eval and sample make of them. Same ranks, same bits.
set -e
policy=$1 precision=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
here=$MPI_TESTS

bound=2e-6 close=2e-5
if [ "$precision" = fp64 ]; then bound=1e-12 close=1e-12; fi

for ranks in 1 2 4; do
    options="--set cluster.devices=$ranks --set parallel.microbatch=$((16 / ranks)) -w
             --set parallel.experts=$policy --set train.precision=$precision --march=native"
    $HECATEC $options "$here/small.moe" -o "model$ranks"
    $HECATEC $options "$here/small.moe" -c -o "model$ranks.o"
    cc=$MPICC libs=-lhecate_comm_mpi
    if [ $ranks = 1 ]; then cc=$CC libs=; fi
    $cc $EMITTED_CFLAGS -fopenmp -o "gradients$ranks" "model$ranks.o" "$here/gradients.c" \
        -L"$LIBRARIES" $libs -lhecate_runtime -lhecate_kernels -ljansson -lm
done

run() { # RANKS PROGRAM ARGUMENT...
    ranks=$1 program=$2
    shift 2
    if [ "$ranks" = 1 ]; then "./$program" "$@"; else sh "$RANKS" "$ranks" "./$program" "$@"; fi
}

for ranks in 1 2 4; do
    run $ranks gradients$ranks chosen$ranks
    run $ranks gradients$ranks one$ranks one
done
for ranks in 2 4; do
    "$PYTHON" "$here/compare.py" gradients $bound chosen1 chosen$ranks
    "$PYTHON" "$here/compare.py" gradients $bound one1 one$ranks
    run $ranks gradients$ranks again one
    cmp again one$ranks
done

train="train --data $TEXT --set log.loads=1 --set train.eval_every=10"
run 1 model1 $train --log log1 --save saved1 --record-ids ids > out1
for ranks in 2 4; do
    run $ranks model$ranks $train --log log$ranks --save saved$ranks --route=ids:ids > out$ranks
    "$PYTHON" "$here/compare.py" losses $close log1 log$ranks
    run $ranks model$ranks $train --log again --save saved-again --route=ids:ids > /dev/null
    cmp saved$ranks saved-again
    test "$(grep -c '^done: 20 steps' out$ranks)" = 1
    # Files know nothing of ranks.
    test "$(run $ranks model$ranks eval --data "$TEXT" --load saved1 --sequences 37)" = \
         "$(run 1 model1 eval --data "$TEXT" --load saved1 --sequences 37)"
    run $ranks model$ranks sample --load saved1 --tokens 20 > sample$ranks
    run 1 model1 sample --load saved1 --tokens 20 > sample1
    cmp sample1 sample$ranks
done
