# Ranks that were started differently: one of them names itself and the difference, all end with exit code 2, and
# nothing is trained or written.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for seed in 1 2; do
    $HECATEC -O1 --set cluster.devices=2 --set parallel.experts=ep --set parallel.microbatch=4 \
        --set train.seed=$seed "$MPI_TESTS/small.moe" -o model$seed
done
cat "$TEXT" > text
sed '1,/the/s/the/thy/' text > other # One letter.

# differ TEXT ARGUMENT... : ARGUMENT...: two ranks, started so, do.
differ() {
    expected=$1
    shift
    status=0
    timeout 60 sh "$RANKS" 1 "$@" > out 2> err || status=$?
    if [ $status != 2 ] || [ "$(grep -c 'error: ' err)" != 1 ] ||
        ! grep -q "error: rank 1 (on .*) was not started as rank 0: $expected" err || [ -s log ]; then
        echo "expected '$expected', got $status:" && cat err
        exit 1
    fi
}

train="train --data text --steps 2"
differ "--seed is '2', but is '1' on rank 0" \
    ./model1 $train --seed 1 --log log : -n 1 ./model1 $train --seed 2 --log log
differ "argument 6 is missing, but is '--log' on rank 0" \
    ./model1 $train --log log : -n 1 ./model1 $train
differ "argument 1 is 'info', but is 'train' on rank 0" ./model1 $train : -n 1 ./model1 info
differ "the program's file has [0-9]* bytes and checksum [0-9a-f]*, but has" \
    ./model1 $train : -n 1 ./model2 $train
differ "HECATE_ISA is 'portable', but is missing on rank 0" \
    ./model1 $train : -n 1 env HECATE_ISA=portable ./model1 $train

# The same name, not the same content.
mkdir there
cp other there/text
mkfifo pipe
cp text there/pipe
differ "data file 1 'text' has [0-9]* bytes and checksum [0-9a-f]*, but 'text' has" \
    ./model1 $train : -n 1 --wdir there ../model1 $train
differ "the file of --load has .*, but cannot be read on rank 0" \
    ./model1 $train --load pipe : -n 1 --wdir there ../model1 $train --load pipe

# A fault that only one rank finds in its command line; and options that may differ.
status=0
timeout 60 sh "$RANKS" 1 ./model1 $train : -n 1 ./model1 $train --stpes 3 > out 2> err || status=$?
[ $status = 2 ] && [ "$(grep -c "error: unknown option '--stpes'" err)" = 1 ] || { cat err; exit 1; }
timeout 60 sh "$RANKS" 1 ./model1 $train --threads 1 : -n 1 env OMP_NUM_THREADS=2 ./model1 $train \
    --threads=2 > out 2> err || { cat err; exit 1; }
grep -q 'done: 2 steps' out
