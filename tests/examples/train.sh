#!/bin/sh
# train.sh EXAMPLE.moe: as a user does. Trains 20 steps: the loss falls; the same seed gives the same
# bits, with another number of threads, too; the saved parameters give text, the same for one seed.
# Environment: HECATEC; PYTHON; TEXT.
set -eu
example=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$HECATEC" -o program "$example"
for threads in 1 2; do
    ./program train --data "$TEXT" --steps 20 --seed 7 --threads $threads --log $threads.jsonl \
        --save $threads.safetensors
done
cmp 1.safetensors 2.safetensors
"$PYTHON" "$here/check_log.py" 1.jsonl 2.jsonl

./program train --data "$TEXT" --steps 1 --seed 8 --log other.jsonl --save other.safetensors
if cmp -s 1.safetensors other.safetensors; then
    echo "another seed gives the same parameters" >&2
    exit 1
fi

for threads in 1 2; do
    ./program sample --load 1.safetensors --seed 3 --tokens 40 --prompt "The " --threads $threads \
        > $threads.text
done
cmp 1.text 2.text
test "$(wc -c < 1.text)" -ge 44
head -c 4 1.text | grep -q "The "
