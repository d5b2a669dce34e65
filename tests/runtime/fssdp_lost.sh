#!/bin/sh
# fssdp_lost.sh PROGRAM: a rank of fssdp_loop is killed while experts are on their way. The job ends in
# bounded time, with one message that names the rank, and leaves no process behind. So does one whose
# ranks disagree.
program=$1
here=$(dirname "$0")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

fail() {
    echo "fssdp_lost.sh: $*; the job said:"
    cat "$out/said"
    exit 1
}

ranks() {
    pgrep -f "^$program"
}

# killed SIGNAL SECONDS: sends it to one of 3 ranks so long after they began to move.
killed() {
    : >"$out/said" # Output of the job before is no sign of this one.
    timeout 40 "$here/ranks.sh" 3 "$program" >"$out/said" 2>&1 &
    job=$!
    until grep -q moving "$out/said"; do sleep 0.05; done
    sleep "$2"
    kill -s "$1" "$(ranks | sed -n 2p)"
    wait $job
    code=$?
    [ $code -ne 124 ] || fail "no end within 40 s"
    [ $code -ne 0 ] || [ -n "$OMPI_MCA_orte_enable_recovery" ] || fail "ended as if all were well"
    sleep 0.3
    [ -z "$(ranks)" ] || fail "processes are left"
}

said_once() {
    [ "$(grep -cE "$1" "$out/said")" = 1 ] || fail "expected once: $1"
}

for moment in 0 0.013 0.041 0.13 0.37 0.7; do
    killed KILL $moment
    said_once 'rank [0-9] .*signal 9'
    ! grep -q 'error: lost rank' "$out/said" || fail "two messages"
done

export HECATE_COMM_TIMEOUT=3
killed STOP 0.2
said_once 'error: lost rank [0-9] \(process [0-9]+ on .*\)'

# Ranks that plan or divide rows differently say so and stop, before anything moves by it.
differ() { # WHAT LAYER LAYERS SAID
    timeout 40 "$here/ranks.sh" 3 "$program" differ "$1" "$2" "$3" >"$out/said" 2>&1
    code=$?
    [ $code -eq 1 ] || fail "differ $*: ended with $code"
    said_once "error: ranks 0 and 1 have $4"
    ! grep -q moves "$out/said" || fail "differ $*: it moved"
}

differ plan 0 2 "planned differently for layer 0 of set 'sparse', iteration 4"
differ plan 1 2 "planned differently for layer 1 of set 'sparse', iteration 4"
differ plan 0 1 "planned differently for layer 0 of set 'sparse', iteration 4"
differ owners 1 2 "chosen other owners for layer [01] of set 'sparse', iteration 4"
differ rows 0 2 "divided rows differently for layer 0 of set 'sparse', iteration 3"
differ rows 1 2 "divided rows differently for layer 1 of set 'sparse', iteration 3"
differ calibrated 0 1 "planned differently for layer 0 of set 'sparse', iteration 3"
differ calibrated 1 2 "planned differently for layer 1 of set 'sparse', iteration 3"

# A launcher that lets the others run on.
export OMPI_MCA_orte_enable_recovery=1
killed KILL 0.2
said_once 'error: lost rank [0-9] \(process [0-9]+ on .*\): its process ended'
