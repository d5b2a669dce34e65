# Ranks that are asked to stop: all end after the same step, and save, also when the launcher is asked and saving
# takes long; a signal that comes late, to one rank, makes nobody wait for ever.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
$HECATEC -O1 --set cluster.devices=2 --set parallel.experts=fssdp --set parallel.microbatch=4 \
    "$MPI_TESTS/small.moe" -o model
$CC -shared -fPIC -Wall -Wextra -Werror -o slow.so "$MPI_TESTS/slow.c"

# Its process number is in rank.N.
cat > rank <<'END'
echo $$ > rank.$OMPI_COMM_WORLD_RANK
exec "$@"
END

fail() {
    echo "$*; it said:"
    cat out err
    exit 1
}

# Waits until the job has said TEXT.
await() {
    for i in $(seq 300); do
        ! grep -q "$1" out || return 0
        sleep 0.1
    done
    fail "no '$1'"
}

# Asks WHOM ("launcher" or a rank) to stop when the job says TEXT, of STEPS steps; it ends with CODE.
stopped() {
    code=$1 whom=$2 text=$3 steps=$4 status=0
    rm -f saved* rank.* out
    : > out
    timeout 60 sh "$RANKS" 2 sh rank ./model train --data "$TEXT" --steps "$steps" --save saved --sample 10 \
        > out 2> err &
    job=$!
    await "$text"
    case $whom in
    launcher) kill -s TERM "$(ps -o ppid= -p "$(cat rank.0)")" ;;
    *) kill -s TERM "$(cat "rank.$whom")" ;;
    esac
    wait $job || status=$?
    [ $status = "$code" ] || fail "expected $code, got $status"
    grep -q 'saved: saved' out && [ -s saved ] || fail "nothing saved"
    grep -q 'stopped by SIGTERM after step' out || fail "not stopped"
    [ "$(ls saved*)" = saved ] || fail "more than it saved: $(ls saved*)"
}

stopped 143 1 'step *10' 1000000

# Saving takes two seconds, which mpirun would not wait for by itself. It waits five, asks, and waits five.
export LD_PRELOAD="$work/slow.so" SLOW_SECONDS=1 OMPI_MCA_odls_base_sigkill_timeout=5
stopped 1 launcher 'step *10' 1000000

# Training has ended, and rank 0 saves.
stopped 143 1 'done: 20 steps' 20
