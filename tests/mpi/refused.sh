# Refusals by programs of several ranks: the exit code, one message, and the culprit.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
$HECATEC -O1 --set cluster.devices=2 --set parallel.experts=ep --set parallel.microbatch=4 \
    "$MPI_TESTS/small.moe" -o model

# refuses CODE TEXT COMMAND...: it ends with CODE and says TEXT, one rank only.
refuses() {
    code=$1 text=$2
    shift 2
    status=0
    "$@" > out 2> err || status=$?
    if [ $status != "$code" ] || [ "$(grep -c "error: $text" err)" != 1 ]; then
        echo "expected $code and '$text' once, got $status:" && cat err
        exit 1
    fi
}

refuses 2 "compiled for 2 ranks .*, but 3 run; start it with mpirun -n 2" \
    sh "$RANKS" 3 ./model train --data "$TEXT"
refuses 2 "compiled for 2 ranks .*, but 1 run; start it with mpirun -n 2" ./model train --data "$TEXT"
refuses 2 "unknown option '--stpes'" sh "$RANKS" 2 ./model train --stpes 3
refuses 1 "cannot open '/nonexistent'" sh "$RANKS" 2 ./model train --data /nonexistent
refuses 1 "cannot open '/nonexistent'" sh "$RANKS" 2 ./model train --data "$TEXT" --load /nonexistent
refuses 2 "--check-grad needs a program of double precision" \
    sh "$RANKS" 2 ./model train --data "$TEXT" --check-grad 1

# Settings of the ranks themselves, also of one rank alone; nobody has joined anybody yet.
for setting in TIMEOUT=0 PATIENCE=soon; do
    refuses 2 "HECATE_COMM_${setting%%=*} is '${setting#*=}'" \
        env "HECATE_COMM_$setting" sh "$RANKS" 2 ./model train --data "$TEXT"
done
refuses 2 "HECATE_COMM_PROGRESS is 'maybe'" sh "$RANKS" 2 sh -c \
    '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || export HECATE_COMM_PROGRESS=maybe; exec "$0" "$@"' \
    ./model train --data "$TEXT"
echo 0 > half
refuses 2 "half: rank 1 is in no node" env HECATE_TOPOLOGY=half sh "$RANKS" 2 ./model train --data "$TEXT"
refuses 2 "cannot read /nonexistent: No such file" \
    env HECATE_TOPOLOGY=/nonexistent sh "$RANKS" 2 ./model train --data "$TEXT"

# Without an MPI to link with: the exit code of a missing compiler, and the package.
mkdir bin
for tool in sh grep; do ln -s "$(command -v $tool)" bin/$tool; done
refuses 3 "cannot run the C compiler 'mpicc'" env PATH="$work/bin" $HECATEC --set cluster.devices=2 \
    --set parallel.experts=ep --set parallel.microbatch=4 "$MPI_TESTS/small.moe" -o model
grep -q libopenmpi-dev err
