#!/bin/sh
# grid_lost.sh PROGRAM: of 36 ranks of tcp_loop on 18 nodes, few of which are connected to each other, one is killed or
# hangs before they talk, or while they do. The job ends in bounded time, with one message that names it.
program=$1
here=$(dirname "$0")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
node=0
while [ $node -lt 36 ]; do
    echo "$node-$((node + 1))"
    node=$((node + 2))
done >"$out/nodes"
export HECATE_TOPOLOGY="$out/nodes" HECATE_COMM_TIMEOUT=6 HECATE_COMM_JOIN=60

# lost ARGUMENTS SAID
lost() {
    # shellcheck disable=SC2086 # Words.
    timeout 80 "$here/by_hand.sh" 36 "$program" $1 >"$out/said" 2>&1
    code=$?
    [ $code -ne 124 ] && [ $code -ne 0 ] || { echo "grid_lost.sh: $1: ended with $code"; cat "$out/said"; exit 1; }
    [ "$(grep -c 'error: ' "$out/said")" = 1 ] && grep -qE "error: lost rank 17 \(process [0-9]+ on .*\): $2" "$out/said" ||
        { echo "grid_lost.sh: $1: expected once: $2"; cat "$out/said"; exit 1; }
}

lost '17 9 0' 'its process ended|.* its connection has ended|.* Connection refused|.* Connection reset by peer'
lost '17 9 2000' 'its process ended|.* its connection has ended|.* Connection refused|.* Connection reset by peer'
lost '17 19 0' 'no heartbeat for 6 s on rank 18'
