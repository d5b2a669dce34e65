# Recomputed values have the bits of kept ones: parameters after a training are the same files under
# every parallel.recompute, on one rank and on two, with rows that take several waves.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# check NAME RANKS FLAG...
check() {
    name=$1 ranks=$2
    shift 2
    for policy in none elementwise cheap all "none(sparse=all)" "all(attention=none)"; do
        "$HECATEC" -w -O1 "$@" --set train.tokens=256 --set "parallel.recompute=$policy" "$MPI_TESTS/small.moe" -o model
        sh "$RANKS" "$ranks" ./model train --data "$TEXT" --steps 5 --save "$name.$policy" > out 2>&1 ||
            { cat out && exit 1; }
        cmp $name.none "$name.$policy"
        ./model info | grep '  arena' >> $name.arenas
    done
    [ "$(sort $name.arenas | uniq | wc -l)" -ge 4 ] || { cat $name.arenas && exit 1; } # Something was recomputed.
}

check one 1
check bf16 1 --set train.precision=bf16
check waves 2 --set cluster.devices=2 --set parallel.experts=fssdp --set parallel.rows_max=24

# A program that keeps no keys says what that costs where it samples.
"$HECATEC" -w -O1 --set parallel.recompute=all "$MPI_TESTS/small.moe" -o again
./again sample --load one.all --tokens 2 2>&1 | grep -aq 'each token takes the whole window, as parallel.recompute = all'
