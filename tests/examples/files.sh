#!/bin/sh
# files.sh TINY.moe: runs hecatec, a program and hecate-replay with files that are each other, that are no files, and
# with descriptors that are closed. Nothing is lost, nothing hangs.
# Environment: HECATEC, REPLAY.
set -eu
model=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0

fail() {
    echo "$*" >&2
    sed 's/^/  /' err >&2
    failures=$((failures + 1))
}

# expect STATUS TEXT COMMAND...: within ten seconds; TEXT is in standard error.
expect() {
    status=$1 text=$2
    shift 2
    got=0
    timeout -k 1 10 "$@" > out 2> err || got=$?
    { [ "$got" = "$status" ] && { [ -z "$text" ] || grep -qF -- "$text" err; }; } || fail "$*: status $got, want $status and '$text'"
}

# same FILE: is as it was.
same() { cmp -s "$1" "kept/$1" || fail "$1 was overwritten"; }

small="-D D=16 -D F=16 -D L=1 -D T=16 -D E=4 -D H=2 --set train.tokens=32 --set parallel.microbatch=2"
cp "$model" tiny
cp "$model" ow.moe
ln ow.moe hard.moe
ln -s ow.moe soft.moe
seq 1 2000 > text
mkdir kept
cp tiny ow.moe text kept
# shellcheck disable=SC2086 # A list of flags.
"$HECATEC" $small -o m ow.moe
run="./m train --data text --steps 2"
$run --save a.st --record-ids ids --record-loads loads > out
printf 'products 1e12\nattention 1e12\nmemory 1e12\ncall 0\n' > device
cp a.st ids loads device m kept

# The compiler's inputs and outputs.
for output in ow.moe hard.moe soft.moe; do
    expect 2 "-o '$output' is the same file as the input 'ow.moe'" "$HECATEC" ow.moe -o $output
done
expect 2 "is the same file as the input" "$HECATEC" ow.moe -S -o ow.moe
expect 2 "the output 'tiny' is the same file as the input 'tiny'" "$HECATEC" tiny
expect 2 "--emit-plan 'p' is the same file as -o 'p'" "$HECATEC" ow.moe -o p --emit-plan=p
expect 2 "--emit-plan 'ow.moe' is the same file as the input" "$HECATEC" ow.moe -o p --emit-plan=ow.moe
test ! -e p || fail "p was written"
same tiny
same ow.moe

# A program's.
for output in --save --log --record-ids --record-loads --trace; do
    expect 2 "$output 'text' is the same file as --data 'text'" $run $output text
    expect 2 "$output 'm' is the same file as the program" $run $output m
    expect 2 "$output 'ids' is the same file as --route 'ids'" $run --route ids:ids $output ids
    expect 2 "$output './device' is the same file as --pretend 'device'" $run --pretend device $output ./device
done
expect 2 "--log 'a.st' is the same file as --load 'a.st'" $run --load a.st --log a.st
expect 2 "--log 'new' is the same file as --save 'new'" $run --save new --log new
expect 2 "--trace './new' is the same file as --log 'new'" $run --log new --trace ./new
expect 2 "--log 'out' is the same file as standard output" $run --log out
expect 2 "--log 'text' is the same file as --data 'text'" ./m train --data 'te*' --steps 2 --log text
for file in text a.st ids loads device m; do same $file; done
expect 0 "" $run --load a.st --save a.st
expect 2 "--csv 'loads' is the same file as the loads 'loads'" "$REPLAY" loads --policy=ep --csv=loads
expect 2 "--svg 'new' is the same file as --json 'new'" "$REPLAY" loads --policy=ep --json=new --svg=new
same loads

# Pipes without a name of this process, and paths that are no files.
mkfifo pipe
for input in "--load pipe" "--pretend pipe" "--route ids:pipe" "--route trace:pipe" "--data pipe"; do
    # shellcheck disable=SC2086
    expect 1 "regular file" $run $input
done
expect 1 "cannot write 'pipe': nobody reads this pipe" $run --log pipe
expect 1 "cannot write 'pipe': nobody reads this pipe" $run --trace pipe
for output in --save --record-ids --record-loads; do
    expect 1 "cannot write 'pipe': it is not a regular file" $run $output pipe
done
expect 2 "pipe: it is not a regular file" env HECATE_BLOCKING=pipe $run
expect 1 "cannot read pipe: it is not a regular file" "$HECATEC" -o x pipe
expect 1 "pipe: it is not a regular file" "$REPLAY" pipe --policy=ep
expect 1 "pipe: nobody reads this pipe" "$REPLAY" --synthesize=pipe
cat pipe > piped & reader=$!
# The pipe has a reader once cat has opened it.
for _ in 1 2 3 4 5 6 7 8 9 10; do
    timeout -k 1 10 $run --log pipe > out 2> err && break
    sleep 0.2
done
wait $reader
test "$(wc -l < piped)" = 2 || fail "the log did not come through the pipe"
expect 0 "" $run --log /dev/stdout
grep -q '^{"step":2,' out || fail "no log on standard output"
expect 0 "{\"step\":2," $run --log /dev/stderr

# A reader that takes nothing: the run goes on without it.
long="./m train --data text --steps 400 --set log.loads=1 --save b.st"
sleep 30 < pipe & reader=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    timeout -k 1 40 $long --log pipe > out 2> err && break
    sleep 0.2
done
kill $reader
grep -q "warning: cannot write 'pipe'" err || fail "no warning of a pipe that is full"

# Closed descriptors: output goes nowhere.
timeout 10 $run --log log >&- 2>&- <&- || fail "closed descriptors: status $?"
test "$(grep -vc '^{"step":' log)" = 0 || fail "what was printed is in the log"
"$HECATEC" -S -o closed.c ow.moe >&- 2>&- <&- || fail "closed descriptors, hecatec: status $?"
grep -q '^int main' closed.c || fail "closed.c is no program"
"$REPLAY" --synthesize=closed.loads >&- 2>&- <&- || fail "closed descriptors, replay: status $?"
head -c 7 closed.loads | grep -q HLOADS1 || fail "closed.loads holds something else"

# Records that cannot be written, and standard output that nobody reads, lose nothing.
for record in --trace --log --record-ids; do
    rm -f c.st r
    expect 0 "warning: cannot write 'r': File too large; the run goes on without it" \
        sh -c "ulimit -f 300; exec ./m train --data text --steps 3000 $record r --save c.st"
    test -s c.st || fail "$record: nothing was saved"
    test "$(grep -c warning err)" = 1 || fail "$record: more than one warning"
done
expect 1 "is unfinished" $run --route ids:r
rm -f d.st
expect 141 "" sh -c "{ ./m train --data text --steps 100000000 --save d.st; echo \$? > status; } | head -1; exit \$(cat status)"
test -s d.st || fail "closed standard output: nothing was saved"

# Weights of another model.
# shellcheck disable=SC2086
sed 's/^model [a-z]*/model other/' ow.moe > other.moe
"$HECATEC" $small -o other other.moe
expect 0 "warning: 'a.st' was saved by the model 'tiny', and this is 'other'" ./other train --data text --steps 1 --load a.st
expect 1 "error: 'a.st' was saved by the model 'tiny'" ./other train --data text --steps 1 --load a.st --strict
test "$failures" = 0
