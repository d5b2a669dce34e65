#!/bin/sh
# mpi_containers.sh PROGRAM: ranks of one machine that have a PID namespace each, and so the same process number,
# as in containers of their own. They run, and a lost one is named. Exit code 77: no namespaces to be had.
program=$1
here=$(dirname "$0")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

fail() {
    echo "mpi_containers.sh: $*; the job said:"
    cat "$out/said"
    exit 1
}

apart='unshare --pid --fork --kill-child'
$apart true 2>"$out/said" || { apart="unshare --user --map-root-user ${apart#unshare }" && $apart true; } ||
    exit 77

for proc in --mount-proc ''; do
    timeout 60 "$here/ranks.sh" 3 $apart $proc "$program" 0 9 end >"$out/said" 2>&1 || fail "ended with $?"
    grep -q 'talking, 1 nodes' "$out/said" || fail "they did not talk"
done

# All in one container see each other: shared memory serves.
timeout 60 $apart --mount-proc "$here/ranks.sh" 3 "$program" 0 9 end >"$out/said" 2>&1 ||
    fail "ended with $?"

# Nobody can look at the process of another; its heartbeats are missed. The first process of a namespace cannot
# be stopped.
export HECATE_COMM_TIMEOUT=3
timeout 30 "$here/ranks.sh" 3 $apart sh -c '"$0" "$@"; exit $?' "$program" 2 19 100 \
    >"$out/said" 2>&1
code=$?
[ $code -ne 124 ] && [ $code -ne 0 ] || fail "ended with $code"
[ "$(grep -c 'mpi_loop: error: lost rank 2 (process [0-9]* on .*): no heartbeat for 3 s' "$out/said")" = 1 ] ||
    fail "expected the lost rank once"
