#!/bin/sh
# layering_test.sh ROOT: layering.sh accepts the project, and catches a planted fault in a copy.
set -eu
root=$1
"$root/tests/layering.sh" "$root"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$root/files" "$root/lang" "$root/ir" "$root/passes" "$root/codegen" "$root/kernels" "$root/runtime" "$copy"

planted() { # FILE HEADER: FILE may not include HEADER.
    echo "#include \"$2\"" > "$copy/$1"
    if "$root/tests/layering.sh" "$copy" >/dev/null; then
        echo "a planted #include of $2 in $1 was not caught" >&2
        exit 1
    fi
    rm "$copy/$1"
}
planted ir/planted.c passes/pipeline.h
planted codegen/host/planted.c codegen/c/nest.h
planted codegen/text/planted.c codegen/host/dims.h
planted codegen/c/planted.c codegen/driver/options.h
"$root/tests/layering.sh" "$copy"
