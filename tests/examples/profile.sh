#!/bin/sh
# profile.sh EXAMPLE.moe: where a step's time goes. The same parameters with and without; the table
# knows the program's kernels; the trace is valid, nested, and its GEMMs and attention are the
# FLOPs that the compiler announced.
# Environment: HECATEC; PYTHON; TEXT.
set -eu
example=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$HECATEC" -o program "$example"
./program train --data "$TEXT" --steps 3 --save plain.safetensors
./program train --data "$TEXT" --steps 3 --save profiled.safetensors --profile --trace trace.json > table
cmp plain.safetensors profiled.safetensors
for line in '^GEMMs ' '^  matmul_nn ' '^  grouped_tn ' '^attention ' '^  sdpa_grad ' '^other kernels ' \
    '^epilogues of GEMMs ' '^between kernels ' '^  backward ' '^optimizer ' '^  adamw ' '^data ' '^step ' '^not in GEMMs'; do
    grep -q "$line" table || { echo "no line '$line' in the table" >&2; cat table >&2; exit 1; }
done
./program info > info
"$PYTHON" "$here/check_trace.py" trace.json info table
