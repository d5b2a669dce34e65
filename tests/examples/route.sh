#!/bin/sh
# route.sh EXAMPLE.moe: forced routing as a user meets it. Recorded ids, forced, give the bits of the
# run that recorded them; balanced loads are balanced, steep ones are not; loads are followed again.
# Environment: HECATEC; HECATE_DATA; PYTHON; TEXT.
set -eu
example=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$HECATEC" -o program -D T=64 "$example"
train() { ./program train --data "$TEXT" --steps 3 --seed 7 --threads 2 "$@"; }

train --save free.safetensors --record-ids free.ids --record-loads free.loads
train --save forced.safetensors --route ids:free.ids --record-ids forced.ids
cmp free.safetensors forced.safetensors
cmp free.ids forced.ids

# The same ids, as an engine of rollouts gives them.
"$HECATE_DATA" routes $("$PYTHON" "$here/engine_routes.py" free.ids engine.jsonl) --out=engine.ids engine.jsonl
cmp free.ids engine.ids

train --route balanced --record-loads balanced.loads --save balanced.safetensors
train --route zipf:1.5 --record-loads zipf.loads
train --route trace:zipf.loads --record-loads trace.loads
if cmp -s free.safetensors balanced.safetensors; then
    echo "--route balanced changes nothing" >&2
    exit 1
fi
"$PYTHON" "$here/check_loads.py" free.loads balanced.loads zipf.loads trace.loads

status=0
train --route ids:balanced.loads 2> message || status=$?
test "$status" -eq 1
grep -q "'balanced.loads' is no file of expert ids" message
