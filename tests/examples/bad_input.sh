#!/bin/sh
# bad_input.sh TINY.moe: the compiler and the program that it makes refuse impossible input, with a
# message that names the fault and its place, the documented status, and nothing half-written.
# Environment: HECATEC.
set -eu
model=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir temps
export TMPDIR="$work/temps"
failures=0

# refuse STATUS TEXT COMMAND...: standard error holds TEXT, in one line of at most 300 bytes or, from the
# compiler, a report.
refuse() {
    status=$1 text=$2
    shift 2
    got=0
    "$@" > out 2> err || got=$?
    if [ "$got" != "$status" ] || ! grep -qF -- "$text" err; then
        printf '%s\n  status %s, want %s; want "%s" in:\n' "$*" "$got" "$status" "$text" >&2
        sed 's/^/  /' err >&2
        failures=$((failures + 1))
    fi
}

small="-D D=16 -D F=16 -D L=1 -D T=16 -D E=4 -D H=2 --set train.tokens=32 --set parallel.microbatch=2"
# shellcheck disable=SC2086 # A list of flags.
"$HECATEC" $small -o m "$model"
seq 1 2000 > text
head -c 5 text > short
printf 'model' > broken.moe
: > empty.moe
head -c 100 /bin/sh > binary.moe
{ printf '\210\330\064\001\001\000\000\000\036\000\000\000'; head -c 1012 /dev/zero; head -c 60 /dev/zero |
    tr '\000' '\377'; } > large.bin
before=$(ls)

refuse 1 "cannot read nofile.moe: No such file" "$HECATEC" -o x nofile.moe
refuse 1 "it is a directory" "$HECATEC" -o x .
refuse 1 "broken.moe:1:6: error: expected a name" "$HECATEC" -o x broken.moe
refuse 1 "empty.moe declares no model" "$HECATEC" -o x empty.moe
refuse 1 "it is not text" "$HECATEC" -o x binary.moe
refuse 1 "cannot write '/no/x'" "$HECATEC" -o /no/x "$model"
refuse 1 "cannot write '/dev/full': No space left" "$HECATEC" -S -o /dev/full "$model"
refuse 1 "cannot write 'standard output'" sh -c "'$HECATEC' -S -o - '$model' > /dev/full"
refuse 3 "cannot run the C compiler 'nocc'" "$HECATEC" --cc=nocc -o x "$model"
refuse 3 "cannot run the C compiler 'gcc'" env PATH=/nowhere "$HECATEC" -o x "$model"
refuse 1 "no multiple of 128" "$HECATEC" --set train.tokens=1000 -o x "$model"
refuse 1 "no multiple of 384 (128 positions x microbatch 3)" "$HECATEC" --set parallel.microbatch=3 -o x "$model"
refuse 1 "is 256, no multiple of 512 (128 positions x 4 devices)" "$HECATEC" --set cluster.devices=4 \
    --set parallel.experts=ep --set train.tokens=256 -o x "$model"
refuse 1 "dim \`T\` must be at least 1" "$HECATEC" -D T=0 -o x "$model"
refuse 1 "too large" "$HECATEC" -D V=1000000000000 -o x "$model"
refuse 2 "unknown option '--nope'" "$HECATEC" --nope -o x "$model"

refuse 2 "a command is missing" ./m
refuse 2 "did you mean 'train'?" ./m trian
refuse 2 "no data: give --data FILE" ./m train
refuse 1 "cannot open 'nofile'" ./m train --data nofile
refuse 1 "no file matches 'no*'" ./m train --data 'no*'
refuse 1 "'/dev/null' is not a regular file" ./m train --data /dev/null
refuse 1 "'short' is too short: 5 tokens" ./m train --data short
refuse 1 "'text' is not an llm.c data file" ./m train --data text --format llmc
refuse 1 "has token 65535 at position 0, outside the model's vocabulary of 256" \
    ./m train --data large.bin --format llmc --set data.order=sequential
refuse 2 "--steps needs an integer, not 'x'" ./m train --data text --steps x
refuse 2 "train.tokens is 33" ./m train --data text --set train.tokens=33
refuse 2 "'cluster.devices' is fixed at '1'" ./m train --data text --set cluster.devices=2
refuse 1 "cannot write '/no/x'" ./m train --data text --steps 2 --save /no/x
refuse 1 "cannot write '.': Is a directory" ./m train --data text --steps 2 --save .
refuse 1 "cannot write '/dev/full': it is not a regular file" ./m train --data text --steps 2 --save /dev/full
for flag in --record-ids --record-loads; do
    refuse 1 "cannot write '/dev/full': it is not a regular file" ./m train --data text --steps 2 $flag /dev/full
done
for flag in --log --record-ids --record-loads --trace; do
    refuse 1 "cannot write '/no/x'" ./m train --data text --steps 2 $flag /no/x
done
refuse 1 "cannot write to standard output" sh -c "./m info > /dev/full"
refuse 1 "cannot write 'saved': File too large" sh -c "ulimit -f 4; ./m train --data text --steps 2 --save saved"
refuse 1 "is no file of expert ids" ./m train --data text --route ids:text
refuse 1 "is no file of loads" ./m train --data text --route trace:text
refuse 1 "is not a valid safetensors file" ./m sample --load text
refuse 2 "sample needs trained parameters" ./m sample

# Devices are devices still, and nothing was left.
test -c /dev/full
rm out err
test "$(ls)" = "$before"
test -z "$(ls -A temps)"
test "$failures" = 0
