#!/bin/sh
# selftest.sh: whether cluster.sh keeps its word. Exits with 77 where this machine cannot do it.
set -u
cd "$(dirname "$0")" || exit 1
own=t$(($$ % 10000)) other=u$(($$ % 10000))
export CLUSTER=$own CLUSTER_TIMEOUT=60
out=$(mktemp -d)
trap './cluster.sh down; rm -rf "$out"' EXIT

fail() {
    echo "selftest.sh: $*"
    cat "$out/said"
    exit 1
}

# says CODE PATTERN COMMAND...: a command of cluster.sh, its exit code and what it says.
says() {
    expected=$1 pattern=$2
    shift 2
    ./cluster.sh "$@" >"$out/said" 2>&1
    code=$?
    [ $code = "$expected" ] || fail "cluster.sh $*: exit code $code, expected $expected"
    [ -z "$pattern" ] || grep -qE "$pattern" "$out/said" || fail "cluster.sh $*: expected: $pattern"
}

./cluster.sh up 2 1 500mbit >"$out/said" 2>&1
code=$?
[ $code != 77 ] || { cat "$out/said" && exit 77; }
[ $code = 0 ] || fail "up: exit code $code"

says 0 '^up: 2 nodes of 2 ranks, 500mbit, delay 0' up 2 2 500mbit # The old one goes first.
says 0 '^2 nodes of 2 ranks' status
for try in 1 2 3; do # Beside other work a rate may not be reached.
    ./cluster.sh check >"$out/said" 2>&1 && break
    [ $try != 3 ] || fail "the links are not as set"
done
says 0 "^$own-1\$" on 1 hostname
says 0 '' run -- sh -c 'hostname >>"$1/hosts.$OMPI_COMM_WORLD_RANK"' sh "$out"
[ "$(cat "$out/hosts.0" "$out/hosts.1" "$out/hosts.2" "$out/hosts.3" | tr '\n' ' ')" = \
    "$own-0 $own-0 $own-1 $own-1 " ] || fail "ranks are not node by node: $(cat "$out"/hosts.*)"
says 3 '' run -- sh -c 'exit 3'

# A command that runs too long is ended, and nothing stays.
CLUSTER_TIMEOUT=3 says 124 '' run -- sleep 100
./cluster.sh left >"$out/said"
[ ! -s "$out/said" ] || fail "processes are left"

# A cable that is out carries nothing.
says 0 '' cut 1
says 0 'state DOWN' on 1 ip link show eth0
says 0 '' mend 1
says 0 'state UP' on 1 ip link show eth0
says 0 '' run -- true

# Another cluster beside it.
CLUSTER=$other says 0 '^up' up 2 1 0
CLUSTER=$other says 0 '' run -- true
CLUSTER=$other says 0 '' down
says 0 '^2 nodes' status

# A wire with a length.
says 0 '^up: 2 nodes of 1 ranks, 200mbit, delay 2ms' up 2 1 200mbit 2ms
./cluster.sh check >"$out/said" 2>&1 # Its rate depends on how fast this machine is; its length does not.
awk '/empty message to another node/ { us = $(NF - 1) } END { exit !(us > 1900 && us < 6000) }' \
    "$out/said" || fail "an empty message does not take 2 ms"

says 2 "rate '1zbit' is neither" up 2 1 1zbit
says 2 "delay '5' is neither" up 2 1 1gbit 5
says 2 "'x' is not a number" up x 1 1gbit
says 2 "'dance' is not a command" dance
says 0 '' down
says 0 '' down
says 2 "cluster '$own' is not up" status
ip netns list | grep -qE "^($own|$other)-" && fail "namespaces are left"
[ ! -e /run/hecate-cluster-$own ] || fail "its folder is left"
ls /dev/shm | grep -qE "^vader_segment\.($own|$other)-" && fail "shared memory is left"
exit 0
