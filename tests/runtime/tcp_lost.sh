#!/bin/sh
# tcp_lost.sh PROGRAM: ranks without MPI meet as every launcher says; jobs that cannot begin or go on end in bounded time,
# with one message that names the culprit. They run beside each other, with a port each.
program=$1
here=$(dirname "$0")
out=$(mktemp -d)
trap 'rm -rf "$out"; kill $(jobs -p) 2>/dev/null' EXIT
export HECATE_COMM_JOIN=20 HECATE_LOCAL_RANK=0

fail() {
    echo "tcp_lost.sh: $*; the job said:"
    cat "$out/$job"
    exit 1
}

# expect NAME SECONDS CODE TEXT COMMAND...: it ends within so long, with CODE, and says TEXT once.
expect() {
    job=$1 limit=$2 code=$3 text=$4
    shift 4
    status=0
    timeout "$limit" "$@" >"$out/$job" 2>&1 || status=$?
    [ $status = "$code" ] || fail "$job: expected $code, ended with $status"
    [ "$(grep -cE "$text" "$out/$job")" = 1 ] || fail "$job: expected once: $text"
    [ "$(grep -c . "$out/$job")" -le "${lines:-1}" ] || fail "$job: more than one message"
}

# rank RANK RANKS VARIABLE=VALUE...: one rank of a job at $place.
rank() {
    number=$1 ranks=$2
    shift 2
    env HECATE_RANK="$number" HECATE_RANKS="$ranks" "$@" "$program" 0 9 end
}

# Faults that one rank finds alone: wrong variables.
for wrong in \
    "HECATE_ADDRESS=nowhere|HECATE_ADDRESS is 'nowhere'; it takes HOST:PORT of rank 0" \
    "HECATE_ADDRESS=localhost:0|HECATE_ADDRESS is 'localhost:0'" \
    "HECATE_SUBNET=ten|HECATE_SUBNET is 'ten'; it takes one like 10.0.0.0/8" \
    "HECATE_COMM_JOIN=soon|HECATE_COMM_JOIN is 'soon'" \
    "HECATE_SECRET=|HECATE_SECRET takes 1 to" \
    "HECATE_SECRET_FILE=/nonexistent|cannot read /nonexistent, the secret: No such file" \
    "HECATE_RANKS=|HECATE_RANKS is '', which is not a number of ranks" \
    "HECATE_RANK=2|HECATE_RANK is 2, but HECATE_RANKS is 2" \
    "HECATE_RENDEZVOUS=here|HECATE_ADDRESS and HECATE_RENDEZVOUS are both set"; do
    expect wrong 10 2 "${wrong#*|}" env HECATE_RANK=0 HECATE_RANKS=2 HECATE_ADDRESS=localhost:29611 \
        "${wrong%%|*}" "$program" 0 9 end
done
expect nowhere 10 2 "HECATE_RANK is set, but not where rank 0 is" env HECATE_RANK=0 HECATE_RANKS=2 "$program" 0 9 end
echo secret >"$out/secret" && chmod 644 "$out/secret"
expect open 10 2 'the secret, is open to others: chmod 600' env HECATE_RANK=0 HECATE_RANKS=2 HECATE_ADDRESS=localhost:29611 \
    HECATE_SECRET_FILE="$out/secret" "$program" 0 9 end

# ranks RANKS PORT COMMON=VALUE... -- RANK[,VARIABLE=VALUE]...: those of a job that are there. Ends with the code of the
# first that fails, in this order.
ranks() {
    size=$1 common="HECATE_ADDRESS=localhost:$2"
    shift 2
    while [ "$1" != -- ]; do common="$common $1" && shift; done
    shift
    pids=
    for each in "$@"; do
        own=
        [ "${each#*,}" = "$each" ] || own=${each#*,}
        # shellcheck disable=SC2086 # Words.
        rank "${each%%,*}" "$size" $common $own &
        pids="$pids $!"
    done
    status=0
    for pid in $pids; do
        wait "$pid" || { ended=$?; [ $status -ne 0 ] || status=$ended; }
    done
    return $status
}

# job NAME SECONDS CODE TEXT ...: as expect, of ranks or another function of this script, beside others.
jobs=
job() {
    name=$1 seconds=$2
    shift 2
    (
        job=$name code=$1 text=$2
        shift 2
        begun=$(date +%s) status=0
        "$@" >"$out/$job" 2>&1 || status=$?
        [ $status = "$code" ] || fail "$job: expected $code, ended with $status"
        [ "$(grep -cE "$text" "$out/$job")" = 1 ] || fail "$job: expected once: $text"
        most=${lines:-1}
        [ "${text#talking}" = "$text" ] || most=0
        [ "$(grep -vc 'talking, ' "$out/$job")" -le "$most" ] || fail "$job: more than one message"
        [ $(($(date +%s) - begun)) -le "$seconds" ] || fail "$job: took longer than $seconds s"
    ) &
    jobs="$jobs $!"
}

# Rank 0 comes late, and somebody who is no rank comes first.
strange() {
    (sleep 0.3 && ranks 2 29620 -- 0) &
    ranks 2 29620 -- 1 &
    python3 -c '
import socket, time
for _ in range(100):
    try:
        with socket.create_connection(("127.0.0.1", 29620)) as one:
            one.sendall(b"GET / HTTP/1.1" * 200)
            one.recv(10)
            break
    except OSError:
        time.sleep(0.01)'
    wait
}
# Where rank 0 is to listen there is somebody else.
taken() {
    python3 -c '
import socket, subprocess, sys
one = socket.create_server(("127.0.0.1", 29621))
sys.exit(subprocess.call(sys.argv[1:]))' \
        env HECATE_RANK=0 HECATE_RANKS=2 HECATE_ADDRESS=localhost:29621 "$program" 0 9 end
}
# strike SIGNAL PORT VARIABLE=VALUE...: one of three gets a signal while they talk.
strike() {
    signal=$1 port=$2
    shift 2
    for number in 0 1 2; do
        env HECATE_RANK=$number HECATE_RANKS=3 "HECATE_ADDRESS=localhost:$port" "$@" "$program" 1 "$signal" 200 &
        [ $number = 1 ] && struck=$!
    done
    sleep 8 && kill -s KILL "$struck" 2>/dev/null
    wait
}

# disagree PORT ARGUMENT...: three that send each other what is not expected.
disagree() {
    port=$1
    shift
    pids=
    for number in 0 1 2; do
        env HECATE_RANK=$number HECATE_RANKS=3 "HECATE_ADDRESS=localhost:$port" "$program" "$@" &
        pids="$pids $!"
    done
    for pid in $pids; do
        ended=0
        wait "$pid" || ended=$?
        [ $ended = 1 ] || echo "a rank ended with $ended"
    done
}

# The variables of torchrun, whose own store has the port; and of Slurm.
torchrun() {
    python3 -c '
import socket, subprocess, sys
one = socket.create_server(("127.0.0.1", 29634))
all = [subprocess.Popen(["env", f"RANK={rank}", f"LOCAL_RANK={rank}", *sys.argv[1:]]) for rank in range(2)]
sys.exit(max(one.wait() for one in all))' \
        WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29634 TORCHELASTIC_USE_AGENT_STORE=True "$program" 0 9 end
}
slurm() {
    for number in 0 1; do
        env SLURM_PROCID=$number SLURM_LOCALID=$number SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_ID=$$ \
            SLURM_STEP_NODELIST="$(hostname)" "$program" 0 9 end &
    done
    wait
}
# A file of a run before lies there; rank 0 comes late.
old_file() {
    key=0123456789abcdef
    echo "hecate-rendezvous localhost 0 29635 $key$key$key$key" >"$out/meet"
    for number in 1 0; do
        env HECATE_RANK=$number HECATE_RANKS=2 HECATE_RENDEZVOUS="$out/meet" "$program" 0 9 end &
        sleep 0.5
    done
    wait
    [ ! -e "$out/meet" ] || echo "the file is left"
}

job torchrun 20 0 'talking, 1 nodes' torchrun
job slurm 20 0 'talking, 1 nodes' slurm
job old_file 20 0 'talking, 1 nodes' old_file
job strange 20 0 'talking, 1 nodes' strange
job taken 20 1 'rank 0 cannot listen at 127.0.0.1:29621: Address already in use' taken
job missing 20 1 'rank 1 has not come within 3 s .HECATE_COMM_JOIN=SECONDS allows more.' ranks 3 29622 HECATE_COMM_JOIN=3 -- 0 2
lines=2 job secret 20 1 'rank 1 has not come within 3 s .*; refused: .*: it has another secret' \
    ranks 2 29623 HECATE_SECRET=a HECATE_COMM_JOIN=3 -- 0 1,HECATE_SECRET=b
lines=2 job refused 20 1 '^rank 0 refuses the process at 127.0.0.1:[0-9]+: it has another secret' \
    ranks 2 29624 HECATE_SECRET=a HECATE_COMM_JOIN=3 -- 0 1,HECATE_SECRET=b
job none 20 1 'rank 1 has tried for 3 s to reach rank 0: 127.0.0.1:29625: Connection refused' ranks 2 29625 HECATE_COMM_JOIN=3 -- 1
job twice 20 2 'rank 1 is there twice: process [0-9]+ on .*, and process [0-9]+ on' ranks 3 29626 -- 0 1 1
job sizes 20 2 'rank 1 .process .* is one of 3 ranks, rank 0 one of 2' ranks 2 29627 -- 0 1,HECATE_RANKS=3
job setting 20 2 "HECATE_COMM_TIMEOUT is '0'" ranks 2 29628 -- 0 1,HECATE_COMM_TIMEOUT=0
job topology 20 2 'cannot read /nonexistent: No such file' ranks 2 29629 HECATE_TOPOLOGY=/nonexistent -- 0 1
job killed 20 0 'tcp_loop: error: lost rank 1 .process [0-9]+ on .*' strike 9 29630
job hangs 20 0 'tcp_loop: error: lost rank 1 .process [0-9]+ on .*: no heartbeat for 2 s' \
    strike 19 29631 HECATE_COMM_TIMEOUT=2
job less 20 0 'rank 1 sent 37855 bytes of experts where rank 2 expected 37856' disagree 29632 1 less 0
job more 20 0 'rank 1 sent more than the 37856 bytes of experts that rank 2 expected' disagree 29633 1 more 0
failed=0
for each in $jobs; do wait "$each" || failed=1; done
exit $failed
