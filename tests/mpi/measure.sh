# --autotune --measure: candidates train on two ranks of this machine, on assumed loads and on recorded ones; it keeps
# the program of the chosen settings, and nothing else stays.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
model="$MPI_TESTS/../codegen/inputs/small.moe"
sets="--set cluster.devices=2 --set train.tokens=1024"

measure() { # OUTPUT MORE...
    output=$1
    shift
    $HECATEC -w --autotune=1 --measure=1,120 --launch="sh $RANKS 2" $sets -o "$output" --emit-plan="$output.plan" "$@" \
        "$model" 2> err || { cat err && exit 1; }
    ls -A > there
    if grep "hecatec-" there; then echo "that was left behind" && exit 1; fi
    if grep "failed" err; then cat err && exit 1; fi
}

# Tokens are made for the vocabulary, here in two bytes each.
measure tuned -D V=300
grep -q "^Measuring 2 candidates: sh .* 2 PROGRAM train --route zipf:1.2 --steps 15$" err
python3 -c '
import json
plan = json.load(open("tuned.plan"))
measured = plan["measured"]
others = measured["others"]
assert len(others) == 1 and 1 < measured["step_us"] < 1e8 and 1 < others[0]["step_us"] < 1e8, measured
assert [plan["settings"], others[0]["settings"]].count({}) == 1, plan'

# The kept program is that of the settings.
flags=$(sed -n 's/^The same without the search: //p' err)
$HECATEC -w -D V=300 $sets $flags -S -o again.c "$model"
$HECATEC -w -D V=300 $sets --plan=tuned.plan -S -o planned.c "$model"
cmp again.c planned.c
sh "$RANKS" 2 ./tuned train --data "$TEXT" --steps 2 --record-loads run.loads > /dev/null
zstd -q run.loads

# Programs get the last iterations of recorded loads, which may be compressed.
measure trained --profile=run.loads.zst
grep -q "^Measuring 2 candidates: .* PROGRAM train --route trace:run.loads.zst --steps 15$" err
grep -q '"route": "trace:run.loads.zst"' trained.plan

# Another number of ranks than the program's.
status=0
$HECATEC -w --autotune=1 --measure=1,120 --launch="sh $RANKS 1" $sets -o other "$model" 2> err || status=$?
test $status = 3 || { cat err && exit 1; }
grep -q "^    small: error: .*2 ranks" err || { cat err && exit 1; }
test ! -e other
