#!/bin/sh
# masked.sh EXAMPLE.moe [hecatec option...]: a model that fills in masked tokens learns to; the same
# seed gives the same bits, with another number of threads, too.
# Environment: HECATEC; PYTHON; TEXT.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$HECATEC" -o "$work/program" "$@"
for threads in 1 2; do
    "$work/program" train --data "$TEXT" --val "$TEXT" --steps 20 --seed 7 --threads $threads \
        --log "$work/$threads.jsonl" --save "$work/$threads.safetensors"
done
cmp "$work/1.safetensors" "$work/2.safetensors"
"$PYTHON" "$here/check_log.py" "$work/1.jsonl" "$work/2.jsonl"
