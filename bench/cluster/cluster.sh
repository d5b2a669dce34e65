#!/bin/sh
# cluster.sh: a cluster on one machine. Nodes are network and UTS namespaces; real bytes cross links of
# a set rate between them, and memory inside of them. README.md says what it can and cannot stand for.
#
#   cluster.sh up NODES RANKS RATE [DELAY]    up 4 2 1gbit, up 2 1 500mbit 100us; RATE 0: as fast as it goes
#   cluster.sh run [MPIRUN-OPTION...] -- PROGRAM ARGUMENT...    all ranks, node by node
#   cluster.sh on NODE COMMAND...             runs a command on a node
#   cluster.sh cut NODE | mend NODE           takes a node's cable out, and puts it back
#   cluster.sh left                           lists the processes that run on nodes
#   cluster.sh check                          measures the links; fails when they are not as set
#   cluster.sh status | down
#
# CLUSTER names one of several clusters (default hec); CLUSTER_TIMEOUT ends a run (300 s).
# Exit codes: 77 this machine cannot do it (no root, no iproute2, no kernel support), 2 bad arguments,
# 124 the run took too long; else that of the command.
set -eu

name=${CLUSTER:-hec}
state=/run/hecate-cluster-$name
net=$name-net # The namespace of the switch and of mpirun.
mtu=9000
here=$(cd "$(dirname "$0")" && pwd)

fail() { # CODE MESSAGE
    code=$1
    shift
    echo "cluster.sh: $*" >&2
    exit "$code"
}

usage() {
    fail 2 "$*; see the head of $0"
}

address() { # NODE
    echo "10.77.0.$(($1 + 1))"
}

in_node() { # NODE COMMAND...
    node=$1
    shift
    nsenter --net="/run/netns/$name-$node" --uts="$state/uts.$node" -- "$@"
}

namespaces() {
    ip netns list | cut -d' ' -f1 | grep -E "^$name-(net|[0-9]+)$" || true
}

require_tools() {
    [ "$(id -u)" = 0 ] || fail 77 "needs root: it makes namespaces and shapes links"
    for tool in ip:iproute2 tc:iproute2 nsenter:util-linux unshare:util-linux mpirun:openmpi-bin; do
        command -v "${tool%:*}" >/dev/null || fail 77 "needs ${tool%:*}: apt-get install ${tool#*:}"
    done
}

# Fails if the kernel lacks a feature; each is tried, not guessed.
require_kernel() {
    probe=$name-net
    why=$(ip netns add "$probe" 2>&1) || fail 77 "the kernel makes no network namespaces: $why"
    trap 'ip netns del "$probe" 2>/dev/null || true' EXIT
    why=$(ip -n "$probe" link add end0 type veth peer name end1 2>&1) || fail 77 "no veth links: $why"
    why=$(ip -n "$probe" link add bridge type bridge 2>&1) || fail 77 "no bridge: $why"
    why=$(tc -n "$probe" qdisc add dev end0 root handle 1: htb default 1 2>&1) ||
        fail 77 "the kernel shapes no links (sch_htb): $why"
    tc -n "$probe" class add dev end0 parent 1: classid 1:1 htb rate 1gbit quantum 60000
    why=$(tc -n "$probe" filter add dev end0 parent 1: protocol ip u32 match ip dst 10.0.0.1/32 \
        flowid 1:1 2>&1) || fail 77 "the kernel sorts no packets (cls_u32): $why"
    ip netns del "$probe"
    trap - EXIT
}

# 1.5gbit -> 1500000000
bits_of() { # RATE
    case $1 in
    0) echo 0 ;;
    *[0-9]gbit) awk -v x="${1%gbit}" 'BEGIN { printf "%.0f\n", x * 1e9 }' ;;
    *[0-9]mbit) awk -v x="${1%mbit}" 'BEGIN { printf "%.0f\n", x * 1e6 }' ;;
    *) usage "rate '$1' is neither Xgbit nor Xmbit nor 0" ;;
    esac
}

nanoseconds_of() { # DELAY
    case $1 in
    0) echo 0 ;;
    *[0-9]us) awk -v x="${1%us}" 'BEGIN { printf "%.0f\n", x * 1e3 }' ;;
    *[0-9]ms) awk -v x="${1%ms}" 'BEGIN { printf "%.0f\n", x * 1e6 }' ;;
    *) usage "delay '$1' is neither Xus nor Xms nor 0" ;;
    esac
}

# Ends what runs in our own namespaces, and nothing else.
end_processes() {
    for signal in TERM KILL; do
        found=
        for space in $(namespaces); do
            for process in $(ip netns pids "$space" 2>/dev/null); do
                kill -s $signal "$process" 2>/dev/null && found=yes
            done
        done
        [ -n "$found" ] || return 0
        sleep 0.3
    done
}

down() {
    if [ -f "$state/switch.pid" ]; then
        switch=$(cat "$state/switch.pid") # It may be gone and its number somebody else's.
        [ "$(readlink "/proc/$switch/exe" || true)" != "$state/switch" ] || kill "$switch"
    fi
    end_processes
    for space in $(namespaces); do ip netns del "$space"; done
    for space in "$state"/uts.*; do
        [ ! -e "$space" ] || umount "$space" 2>/dev/null || true
    done
    rm -rf "$state" /dev/shm/vader_segment."$name"-[0-9]* /tmp/ompi."$name"-[0-9]* \
        /tmp/ompi."$name"-net.*
}

make_node() { # NAME
    ip netns add "$1"
    ip -n "$1" link set lo up
    touch "$state/uts.${1#"$name-"}"
    unshare --uts="$state/uts.${1#"$name-"}" hostname "$1"
}

# One end of a link: `bits` per second in all; packets for (from) each node wait in a queue of
# its own, so that a short message never stands behind what others send in bulk.
shape() { # NAMESPACE DEVICE dst|src NODES
    [ "$bits" != 0 ] || return 0
    burst=$((bits / 8 / 4000)) # 250 us of it.
    [ $burst -ge 16000 ] || burst=16000
    class="class add dev $2 parent 1: classid"
    tc -n "$1" qdisc add dev "$2" root handle 1: htb default 2
    tc -n "$1" $class 1:2 htb rate 10gbit quantum 60000 # mpirun's own: not of the cluster's network.
    tc -n "$1" $class 1:1 htb rate "$bits" burst $burst cburst $burst quantum 60000
    node=0
    while [ $node -lt "$4" ]; do
        queue=$((100 + node))
        tc -n "$1" class add dev "$2" parent 1:1 classid 1:$queue htb rate $((bits / $4)) \
            ceil "$bits" burst 16000 cburst $burst quantum $mtu
        tc -n "$1" qdisc add dev "$2" parent 1:$queue bfifo limit 16mb
        tc -n "$1" filter add dev "$2" parent 1: protocol ip u32 \
            match ip "$3" "$(address $node)/32" flowid 1:$queue
        node=$((node + 1))
    done
}

# A bridge of the kernel; both ends of each link are shaped.
join_by_bridge() { # NODES
    ip -n "$net" link add bridge type bridge forward_delay 0
    ip -n "$net" link set bridge mtu $mtu up
    ip -n "$net" addr add 10.77.0.254/24 dev bridge
    for node in $(seq 0 $(($1 - 1))); do
        ip link add eth0 netns "$name-$node" mtu $mtu type veth peer name "port$node" netns "$net" \
            mtu $mtu
        # Segments of 64 KiB would make coarse bursts.
        ip -n "$name-$node" link set eth0 gso_max_size 16384
        ip -n "$net" link set "port$node" master bridge up
        (shape "$name-$node" eth0 dst "$1")
        (shape "$net" "port$node" src "$1")
    done
}

# The switch of switch.c, which also delays; many kernels lack netem.
join_by_switch() { # NODES
    command -v cc >/dev/null || fail 77 "a DELAY needs a C compiler: apt-get install gcc"
    [ -c /dev/net/tun ] || fail 77 "a DELAY needs /dev/net/tun"
    cc -D_GNU_SOURCE -O2 -o "$state/switch" "$here/switch.c"
    ports="port /run/netns/$net"
    for node in $(seq 0 $(($1 - 1))); do ports="$ports eth0 /run/netns/$name-$node"; done
    # It has to run before ranks that spin; it sleeps while nothing is due.
    first="chrt -f 10"
    $first true 2>/dev/null || first="nice -n -15"
    setsid $first "$state/switch" "$bits" "$delay" $ports >"$state/switch.log" 2>&1 </dev/null &
    echo $! >"$state/switch.pid"
    for try in $(seq 50); do
        ! grep -q ready "$state/switch.log" || break
        sleep 0.1
    done
    grep -q ready "$state/switch.log" || fail 77 "the switch does not start: $(cat "$state/switch.log")"
    ip -n "$net" link set port mtu $mtu up
    ip -n "$net" addr add 10.77.0.254/24 dev port
}

# How mpirun starts its daemon on a node: AGENT ADDRESS COMMAND...
write_agent() {
    cat >"$state/agent" <<END
#!/bin/sh
node=\$((\${1##*.} - 1))
shift
exec nsenter --net=/run/netns/$name-\$node --uts=$state/uts.\$node -- /bin/sh -c "\$*"
END
    chmod +x "$state/agent"
}

up() {
    [ $# -ge 3 ] && [ $# -le 4 ] || usage "up NODES RANKS RATE [DELAY]"
    for number in "$1" "$2"; do
        case $number in
        '' | *[!0-9]* | 0) usage "'$number' is not a number of nodes or ranks" ;;
        esac
    done
    [ "$1" -le 64 ] || usage "no more than 64 nodes"
    bits=$(bits_of "$3")
    delay=$(nanoseconds_of "${4:-0}")
    require_tools
    down
    require_kernel
    trap 'down' EXIT
    trap 'exit 130' INT TERM
    mkdir -p "$state"
    make_node "$net"
    for node in $(seq 0 $(($1 - 1))); do make_node "$name-$node"; done
    if [ "$delay" = 0 ]; then join_by_bridge "$1"; else join_by_switch "$1"; fi
    for node in $(seq 0 $(($1 - 1))); do
        ip -n "$name-$node" addr add "$(address "$node")/24" dev eth0
        ip -n "$name-$node" link set eth0 mtu $mtu up
        # Links lose nothing, so Reno fills them. BBR, where it is the kernel's default, finds its rate anew after each pause: training
        # that sends in bursts then gets a tenth less of a link, and another share in each step.
        in_node "$node" sysctl -qw net.ipv4.tcp_slow_start_after_idle=0 net.ipv4.tcp_congestion_control=reno
        echo "$(address "$node") slots=$2"
    done >"$state/hosts"
    write_agent
    printf '%s nodes of %s ranks, %s, delay %s\n' "$1" "$2" "$3" "${4:-0}" >"$state/is"
    echo "$bits $2" >"$state/set"
    trap - EXIT INT TERM
    echo "up: $(cat "$state/is")"
}

is_up() {
    [ -f "$state/is" ] || fail 2 "cluster '$name' is not up"
}

# mpirun runs beside the switch. Its daemons say every 2 s that they live: it notices a node that is
# gone. Its settings are variables, so that options given to `run` win.
run() {
    is_up
    options=
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    [ $# -ge 2 ] || usage "run [MPIRUN-OPTION...] -- PROGRAM ARGUMENT..."
    shift
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=/tmp
    export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$state/agent" OMPI_MCA_routed=direct
    export OMPI_MCA_oob_tcp_if_include=10.77.0.0/24 OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
    export OMPI_MCA_oob_tcp_keepalive_time=4 OMPI_MCA_oob_tcp_keepalive_intvl=2
    export OMPI_MCA_oob_tcp_keepalive_probes=3
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_mpi_yield_when_idle=1
    code=0
    timeout -k 5 "${CLUSTER_TIMEOUT:-300}" nsenter --net="/run/netns/$net" --uts="$state/uts.net" -- \
        mpirun --hostfile "$state/hosts" --map-by slot --bind-to none --oversubscribe $options "$@" \
        </dev/null || code=$?
    [ $code -ne 124 ] || end_processes
    return $code
}

cable() { # NODE up|down
    is_up
    [ -e "$state/uts.${1:-none}" ] || usage "no node '${1:-}'"
    ip -n "$name-$1" link set eth0 "$2"
}

left() {
    is_up
    for space in $(namespaces); do
        for process in $(ip netns pids "$space"); do
            [ "$(readlink "/proc/$process/exe" || true)" = "$state/switch" ] ||
                echo "$space $process $(tr '\0' ' ' <"/proc/$process/cmdline" || true)"
        done
    done
}

# The measured rates against the set one.
check() {
    is_up
    command -v mpicc >/dev/null || fail 77 "needs mpicc: apt-get install libopenmpi-dev"
    read -r bits ranks <"$state/set"
    mpicc -O2 -o "$state/link_speed" "$here/link_speed.c"
    run -- "$state/link_speed" "$ranks" "$bits"
}

command=${1:-}
[ $# -eq 0 ] || shift
case $name in
*[!a-z0-9]* | '' | ???????*) usage "CLUSTER is '$name'; it takes up to six small letters and digits" ;;
esac
case $command in
up) up "$@" ;;
run) run "$@" ;;
on)
    is_up
    [ $# -ge 2 ] && [ -e "$state/uts.$1" ] || usage "on NODE COMMAND..."
    in_node "$@"
    ;;
cut) cable "${1:-}" down ;;
mend) cable "${1:-}" up ;;
left) left ;;
check) check ;;
status) is_up && cat "$state/is" ;;
down) [ "$(id -u)" != 0 ] || down ;;
*) usage "'$command' is not a command" ;;
esac
