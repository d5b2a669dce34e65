#!/bin/sh
# replay_test.sh REPLAY POLICIES.DEF: the program from drawn loads to report, and every way to misuse it.
set -eu
replay=$1 table=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "replay_test: $*" >&2
    exit 1
}

# refuses CODE WORDS ARGUMENTS...: exits with the code and names the culprit.
refuses() {
    wanted=$1 words=$2
    shift 2
    code=0
    "$replay" "$@" >"$work/out" 2>"$work/err" || code=$?
    [ "$code" -eq "$wanted" ] || fail "$*: exit code $code, not $wanted"
    grep -q -- "$words" "$work/err" || fail "$*: says '$(cat "$work/err")', not '$words'"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$*: more than one line of complaint"
}

draw="--experts=12 --layers=2 --iterations=3 --microbatches=3 --rows=500 --seed=4"
"$replay" --synthesize="$work/a.loads" --nodes=2 --devices=3 $draw
"$replay" --synthesize="$work/b.loads.zst" --nodes=2 --devices=3 $draw
[ "$(wc -c <"$work/b.loads.zst")" -lt "$(wc -c <"$work/a.loads")" ] || fail "not compressed"

# Unequal nodes, unequal speeds, more devices than experts.
"$replay" --synthesize="$work/c.loads" --devices=5,2,1 --experts=4 --layers=1 --iterations=2 --rows=90

all=$("$replay" --list-policies | cut -d' ' -f1 | paste -sd, -)
count=$("$replay" --list-policies | wc -l)
[ "$count" -eq "$(grep -c '^HPL_POLICY(' "$table")" ] || fail "--list-policies has not every row of the table"
"$replay" "$work/a.loads" --policy="$all" --nodes=2 --devices=3 --slots=2 --entries=3 --early=1 \
    >"$work/table"
[ "$(grep -c ' early ' "$work/table")" -eq "$count" ] || fail "not every policy has an early line"
[ "$(grep -c ' late ' "$work/table")" -eq "$count" ] || fail "not every policy has a late line"
"$replay" "$work/c.loads" --policy="$all" --devices=5,2,1 --speeds=1,1,1,1,2,3,1,1 --slots=2 \
    --early=0 >/dev/null

# Compressed loads say the same as plain ones, and so does a second run, times aside.
"$replay" "$work/a.loads" --policy=fssdp --devices=3 --csv="$work/a.csv" >/dev/null
"$replay" "$work/b.loads.zst" --policy=fssdp --devices=3 --csv="$work/b.csv" >/dev/null
cut -d, -f1-16 "$work/a.csv" >"$work/a.cut"
cut -d, -f1-16 "$work/b.csv" | cmp - "$work/a.cut" || fail "two runs differ"
[ "$(wc -l <"$work/a.csv")" -eq 13 ] || fail "3 iterations, 2 layers, 2 forecasts: 12 samples"

# ep is the worst and fssdp near the mean; fsdp moves nothing between devices.
awk '$1 == "fssdp" && $4 > 1.05 { exit 1 } $1 == "ep" && $4 < 1.2 { exit 1 }
     $1 == "fsdp" && $11 != "0.00%" { exit 1 }' "$work/table" || fail "implausible: $(cat "$work/table")"

for flags in --forecast-age=1 --calibrate=always --calibrate=worth --dispatch=quota --reshard=2 \
    "--window-bytes=1000 --chunk-bytes=400"; do
    "$replay" "$work/a.loads" --policy=hecate,fssdp --devices=3 $flags >/dev/null || fail "$flags"
done
"$replay" "$work/a.loads" --policy=ep,fssdp --devices=3 --json --svg="$work/p.svg" >"$work/json"
grep -q '"max_over_mean"' "$work/json" || fail "no figures in the JSON"
grep -q '</svg>' "$work/p.svg" || fail "no picture"

"$replay" "$work/a.loads" --policy=fssdp --devices=3 --print=1,1,2 >"$work/step"
for form in topology loads plan route schedule; do
    [ "$(grep -c "^$form " "$work/step")" -eq 1 ] || fail "no $form in --print"
done

# A printed step agrees with itself: rank 0's rows of each expert go to the plan's holders, and chunks reach them all.
awk '$1 ~ /^[a-z#]/ { form = $1 } $1 !~ /:$/ { next }
     form == "loads" && $1 == "0:" { for (i = 2; i <= NF; i++) rows[i - 2] = $i }
     form == "plan" { for (i = 2; i <= NF; i++) holds[$1 + 0, $i] = 1; experts++; copies += NF - 2 }
     form == "route" { for (i = 2; i <= NF; i++) { split($i, to, "="); bad += !(($1 + 0, to[1]) in holds)
                                                   rows[$1 + 0] -= to[2] } }
     form == "schedule" { split($2, chunk, "."); split($3, way, ">"); transfers++
                          bad += !((chunk[1], way[1]) in holds) || !((chunk[1], way[2]) in holds) || $4 < 1 }
     END { for (e in rows) bad += rows[e] != 0
           exit experts != 12 || copies < 1 || transfers != 8 * copies || bad }' "$work/step" ||
    fail "--print contradicts itself: $(cat "$work/step")"

# A table without a line says why.
"$replay" --synthesize="$work/d.loads" --devices=3 --microbatches=1 --iterations=2 --experts=12 --layers=1 --rows=500
"$replay" "$work/d.loads" --policy=ep --devices=3 | grep -q "^no lines: .*--forecast-age=1 takes" || fail "no reason for an empty table"
"$replay" "$work/d.loads" --policy=ep --devices=3 --forecast-age=2 | grep -q "^no lines: .* 2 stored .* 2 of" ||
    fail "no reason for an empty table of old forecasts"
"$replay" "$work/d.loads" --policy=ep --devices=3 --forecast-age=1 >"$work/out"
grep -q "^no lines" "$work/out" && fail "a reason for a table that is not empty"

refuses 1 "No such file" "$work/none" --policy=ep
head -c 100 "$work/a.loads" >"$work/short"
refuses 1 "claims" "$work/short" --policy=ep --devices=3
head -c 100 "$work/b.loads.zst" >"$work/short.zst"
refuses 1 "ends early" "$work/short.zst" --policy=ep --devices=3
echo nonsense >"$work/text"
refuses 1 "HLOADS1" "$work/text" --policy=ep
printf 'HLOADS1\n\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377' \
    >"$work/huge"
refuses 1 "claims too much" "$work/huge" --policy=ep
refuses 1 "No such file" "$work/a.loads" --policy=ep --devices=3 --json=/none/x
refuses 1 "No such file" "$work/a.loads" --policy=ep --devices=3 --svg=/none/x
refuses 2 "recorded on 6 devices" "$work/a.loads" --policy=ep
refuses 2 "no such policy" "$work/a.loads" --policy=epp
refuses 2 "whole number" "$work/a.loads" --policy=ep --slots=-1
refuses 2 "whole number" "$work/a.loads" --policy=ep --slots=1x
refuses 2 "no such flag" "$work/a.loads" --policy=ep --slot=1
refuses 2 "policy=NAME" "$work/a.loads"
refuses 2 "a file of loads" --policy=ep
refuses 2 "layer and microbatch" "$work/a.loads" --policy=ep --print=1
refuses 2 "one for each" "$work/a.loads" --policy=ep --devices=3 --speeds=1,2

# A table that cannot be written: on a full device, or beyond the limit of a file's size.
status=0
"$replay" "$work/a.loads" --policy=ep --devices=3 >/dev/full 2>"$work/err" || status=$?
[ "$status" -eq 1 ] || fail "a full standard output: status $status"
grep -q "cannot write to standard output: No space" "$work/err" || fail "a full standard output: no message"
status=0
(ulimit -f 0 && "$replay" "$work/a.loads" --policy=ep --devices=3 >"$work/table") 2>/dev/null || status=$?
[ "$status" -eq 1 ] || fail "a limit of file sizes: status $status"
echo "replay_test: passed"
