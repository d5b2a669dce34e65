#!/bin/sh
# recorded_test.sh REPLAY LOADS: the figures of docs/planner.md on recorded loads, which are not part
# of the repository. Skipped (77) where they are absent.
set -eu
replay=$1 loads=$2
if [ ! -r "$loads" ]; then
    echo "recorded_test: no recorded loads at $loads, skipped"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# at_most WHAT VALUE LIMIT
at_most() {
    if awk "BEGIN { exit !($2 <= $3) }"; then
        printf '%-62s %s, at most %s\n' "$1" "$2" "$3"
    else
        printf '%-62s %s, MORE THAN %s\n' "$1" "$2" "$3"
        failed=1
    fi
}

# column PART NUMBER: of the table in $work/table.
column() {
    awk -v part="$1" -v number="$2" '$2 == part { sub("%", "", $number); print $number }' "$work/table"
}

run() {
    "$replay" "$loads" --policy=fssdp "$@" >"$work/table"
}

run --slots=2 --entries=4
at_most "2 slots, 4 entries, late: max/mean" "$(column late 4)" 1.0105
at_most "  rows across nodes, %" "$(column late 9)" 8.2
at_most "  early: max/mean" "$(column early 4)" 1.0105
run --slots=4 --entries=8
at_most "4 slots, 8 entries, late: max/mean" "$(column late 4)" 1.0101
at_most "  rows across nodes, %" "$(column late 9)" 1.1
at_most "  early: max/mean" "$(column early 4)" 1.0101
for budget in "--slots=2 --entries=4" "--slots=4 --entries=8"; do
    run $budget --forecast-age=1
    at_most "$budget, one iteration old, late: max/mean" "$(column late 4)" 1.015
    run $budget --forecast-age=1 --calibrate=always
    at_most "  early, calibrated: max/mean" "$(column early 4)" 1.035
    at_most "  early, calibrated: beyond the bound, %" "$(column early 8)" 1.2
done

# rival KNOWN FLAGS...: the mean over the last 16 stored iterations and every fourth layer must lie
# within 5 % of what earlier ports reached.
rival() {
    known=$1
    shift
    "$replay" "$loads" "$@" --csv="$work/csv" >/dev/null
    mean=$(awk -F, 'NR > 1 && $2 >= 68 && $3 % 4 == 0 { sum += $5; n++ } END { print sum / n }' \
        "$work/csv")
    off=$(awk "BEGIN { off = 100 * ($mean / $known - 1); print off < 0 ? -off : off }")
    at_most "$* ($mean, known $known): off, %" "$off" 5
}

rival 6.15 --policy=ep
rival 5.81 --policy=smartmoe
rival 1.22 --policy=laer --slots=3 --dispatch=all
rival 2.92 --policy=laer --slots=4
rival 1.23 --policy=eplb --slots=1
rival 1.12 --policy=eplb --slots=2
rival 1.25 --policy=hecate --entries=16 --slots=4
rival 1.29 --policy=hecate --entries=8 --slots=8
rival 1.10 --policy=llep
rival 1.01 --policy=ultraep --slots=2 --nodes=1 --devices=16 # Inside a node alone.
exit $failed
