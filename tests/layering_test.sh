#!/bin/sh
# layering_test.sh ROOT: layering.sh accepts the project, and catches a planted fault in a copy.
set -eu
root=$1
"$root/tests/layering.sh" "$root"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$root/files" "$root/lang" "$root/ir" "$root/passes" "$root/codegen" "$root/kernels" "$root/runtime" "$copy"
echo '#include "passes/pipeline.h"' > "$copy/ir/planted.c"
if "$root/tests/layering.sh" "$copy" >/dev/null; then
    echo "a planted #include of passes/ in ir/ was not caught" >&2
    exit 1
fi
