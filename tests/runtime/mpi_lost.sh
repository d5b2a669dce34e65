#!/bin/sh
# mpi_lost.sh PROGRAM: jobs of mpi_loop that cannot go on end in bounded time, with one message that
# names the lost rank, and leave no process behind.
program=$1
here=$(dirname "$0")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

fail() {
    echo "mpi_lost.sh: $*; the job said:"
    cat "$out/said"
    exit 1
}

# Processes of this very program that still run.
left() {
    ps -eo stat=,args= | grep -F "$program" | grep -vE '^Z|mpi_lost.sh|grep' | grep -c . || true
}

# ended SECONDS ARGUMENT...: runs 3 ranks, or $ranks, which must end within so long and not well.
ended() {
    limit=$1
    shift
    timeout "$limit" "$here/ranks.sh" "${ranks:-3}" "$program" "$@" >"$out/said" 2>&1
    code=$?
    [ $code -ne 124 ] || fail "no end within $limit s"
    [ $code -ne 0 ] || fail "ended as if all were well"
    sleep 0.2
    [ "$(left)" = 0 ] || fail "$(left) processes are left"
}

said_once() {
    [ "$(grep -cE "$1" "$out/said")" = 1 ] || fail "expected once: $1"
}

# mpirun sees a rank die, ends the others and names it; we do not say it again.
for moment in 0 30 170 400; do
    ended 30 1 9 "$moment"
    said_once 'rank 1 .*signal 9'
    ! grep -q 'lost rank' "$out/said" || fail "two messages"
done

# Its neighbour misses one that hangs; here the launcher, and the ranks that wait, see nothing.
for progress in thread poll; do
    export HECATE_COMM_TIMEOUT=3 HECATE_COMM_PROGRESS=$progress
    ended 15 2 19 100
    said_once 'mpi_loop: error: lost rank 2 \(process [0-9]+ on .*\): no heartbeat for 3 s'
done
unset HECATE_COMM_PROGRESS

# One that computes for longer than that, and talks to nobody, lives.
timeout 30 "$here/ranks.sh" 3 "$program" 1 busy 5000 >"$out/said" 2>&1 || fail "ended with $?"
# For ever is too long.
export HECATE_COMM_PATIENCE=2
ended 15 1 busy 50000
said_once 'mpi_loop: error: lost rank 1 \(process [0-9]+ on .*\): nothing came from it for 2 s while'
# The one to blame is the one that hangs, not who waits for it: whether or not the others' programs wait themselves.
for ways in joins computes; do
    ended 20 1 chain $ways
    said_once 'mpi_loop: error: lost rank 2 \(process'
    ! grep -q 'lost rank [01]' "$out/said" || fail "the wrong rank is named"
done
# Nor one that waits for it in a round.
ranks=4
ended 20 2 gather 0
said_once 'mpi_loop: error: lost rank 2 \(process.*: others wait for it, and rank 3 for them, in rounds'
! grep -q 'lost rank [013]' "$out/said" || fail "the wrong rank is named"
unset ranks HECATE_COMM_TIMEOUT HECATE_COMM_PATIENCE

# One that sends less or more than the other side expects.
ended 15 1 less 0
said_once 'mpi_loop: error: rank 1 sent 37855 bytes of experts where rank 2 expected 37856'
ended 15 1 more 0
said_once 'mpi_loop: error: rank 1 sent more than the 37856 bytes of experts that rank 2 expected'

# One whose transfer schedule is another one.
ended 15 0 differ 0
said_once 'mpi_loop: error: ranks 1 and 0 have planned differently which experts move where'

# The settings that docs/ranks.md recommends for mpirun's daemons: they bear as much as ranks, and notice a loss before
# ranks have ended (networks.py tries it).
: >"$out/said"
# shellcheck disable=SC2046 # Three numbers.
set -- $(sed -n 's/.*keepalive_time \([0-9]*\).*intvl \([0-9]*\).*probes \([0-9]*\).*/\1 \2 \3/p' "$here/../../docs/ranks.md")
silence=$(sed -n 's/.*own->timeout = \([0-9]*\);.*/\1/p' "$here/../../runtime/net/net.c")
[ $# = 3 ] && [ $(($2 * $3)) -ge "$silence" ] && [ $(($1 + $2 * $3)) -le $((silence + 1)) ] ||
    fail "mpirun ends a job $2 * $3 to $1 + $2 * $3 s after an outage began, its ranks $silence"

# An MPI that allows few tags.
TAG_BOUND=13 timeout 30 "$here/ranks.sh" 3 "$program" 0 9 end >"$out/said" 2>&1 || fail "ended with $?"
! grep -q 'too large' "$out/said" || fail "tags are too large"
TAG_BOUND=12 timeout 30 "$here/ranks.sh" 3 "$program" 0 9 end >"$out/said" 2>&1 && fail "ended well"
grep -q 'this MPI allows tags up to 12 only; 13 are needed' "$out/said" || fail "no such error"

# One that hangs before MPI has started: the first of those that wait for it says so.
export HECATE_COMM_PATIENCE=3
timeout 30 "$here/ranks.sh" 3 sh -c '[ "$OMPI_COMM_WORLD_RANK" != 1 ] || kill -s STOP $$; exec "$0" "$@"' \
    "$program" 0 9 end >"$out/said" 2>&1
[ $? -ne 124 ] || fail "no end within 30 s"
said_once 'mpi_loop: error: rank 0 has waited 3 s for MPI to start: another rank hangs, was stopped or'
sleep 0.2
[ "$(left)" = 0 ] || fail "$(left) processes are left"
unset HECATE_COMM_PATIENCE

# A job that was stopped as a whole goes on.
HECATE_COMM_TIMEOUT=2 "$here/ranks.sh" 3 "$program" 1 busy 3000 >"$out/said" 2>&1 &
job=$!
sleep 1.5
kill -s STOP $(pgrep -f "^$program")
sleep 5
kill -s CONT $(pgrep -f "^$program")
wait $job || fail "ended with $?"

# A launcher that lets the others run on: they find out by themselves.
# mpirun then ends with 0, for any status of theirs, so that each tells its own (docs/ranks.md).
for ranks in 2 3; do
    rm -f "$out/failed"
    OMPI_MCA_orte_enable_recovery=1 timeout 30 "$here/ranks.sh" $ranks sh -c \
        'failed=$1; shift; "$@" || echo "$?" >>"$failed"' sh "$out/failed" "$program" 0 9 100 >"$out/said" 2>&1
    [ $? -ne 124 ] || fail "no end within 30 s"
    said_once 'mpi_loop: error: lost rank 0 \(process [0-9]+ on .*\): its process ended'
    [ "$(left)" = 0 ] || fail "$(left) processes are left"
    [ "$(grep -cx 1 "$out/failed")" = $((ranks - 1)) ] || fail "ended with $(cat "$out/failed")"
    grep -qx 137 "$out/failed" || fail "ended with $(cat "$out/failed")"
done

# Nodes from a topology file; ranks are numbered by node.
printf '# two nodes\n1\n0 2\n' >"$out/topology"
export HECATE_TOPOLOGY="$out/topology"
timeout 60 "$here/ranks.sh" 3 "$program" 0 9 end >"$out/said" 2>&1 || fail "ended with $?"
said_once 'talking, 2 nodes'
printf '1\n0 3\n' >"$out/topology"
ended 30 0 9 end
grep -qE 'topology:2: .3. is neither a rank below 3 nor a range' "$out/said" || fail "no such error"
unset HECATE_TOPOLOGY

# Started by a launcher that MPI does not know.
RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 MASTER_ADDR=here "$program" 0 9 end >"$out/said" 2>&1
[ $? -eq 2 ] || fail "expected exit code 2"
said_once 'torchrun started 4 ranks, but MPI sees 1: start with mpirun -n 4'
