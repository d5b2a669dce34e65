# links: ranks measure each other and write a file that simulations read.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
$HECATEC -w -O1 --set cluster.nodes=2 --set cluster.devices=2 --set parallel.experts=ep \
    --set parallel.microbatch=4 "$MPI_TESTS/small.moe" -o model4
printf '0-1\n2-3\n' > topology
export HECATE_TOPOLOGY="$work/topology"
sh "$RANKS" 4 ./model4 links --save links > out
grep -q "^inside a node: latency .* us, one pair .*B/s, all pairs .*B/s, all both ways .*B/s a rank" out
grep -q "^between nodes: .*B/s a node" out
test "$(wc -l < out)" = 2 # Said by one rank.
python3 -c '
import json
links = json.load(open("links"))
assert links["nodes"] == 2 and links["ranks"] == 4, links
for where in "intra", "inter":
    assert 1e-8 < links[where]["latency"] < 1, links
    for rate in "pair", "all", "bandwidth":
        assert 1e6 < links[where][rate] < 1e12, links'
$HECATEC --simulate=1 --set cluster.nodes=2 --set cluster.devices=2 --set train.tokens=auto \
    --set cluster.link.measured=links "$MPI_TESTS/small.moe" > report
grep -q "links .* a device, .* us (measured); .* a node, .* us (measured)$" report

# One node has no links to others.
unset HECATE_TOPOLOGY
sh "$RANKS" 4 ./model4 links --save links > out
grep -q "^inside a node" out
if grep -q "between\|inter" out links; then cat out links && exit 1; fi

refuses() { # CODE TEXT COMMAND...: ends with CODE, and says TEXT once.
    code=$1 text=$2 status=0
    shift 2
    "$@" > out 2> err || status=$?
    if [ $status != "$code" ] || [ "$(grep -c "error: $text" err)" != 1 ]; then
        echo "expected $code and '$text' once, got $status:" && cat err
        exit 1
    fi
}
refuses 1 "cannot write 'no/links'" sh "$RANKS" 4 ./model4 links --save no/links
printf '0-2\n3\n' > topology
HECATE_TOPOLOGY="$work/topology" refuses 1 "links: machines have different numbers of ranks" \
    sh "$RANKS" 4 ./model4 links
