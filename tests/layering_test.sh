#!/bin/sh
# layering_test.sh ROOT: layering.sh and rules.py accept the project, and catch planted faults in a copy.
set -eu
root=$1
"$root/tests/layering.sh" "$root"

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
for folder in $(python3 "$root/tests/folders.py"); do cp -r "$root/$folder" "$copy"; done

planted() { # FILE HEADER: FILE may not include HEADER.
    echo "#include \"$2\"" > "$copy/$1"
    if "$root/tests/layering.sh" "$copy" >/dev/null; then
        echo "a planted #include of $2 in $1 was not caught" >&2
        exit 1
    fi
    rm "$copy/$1"
}
planted ir/planted.c passes/pipeline.h
planted codegen/host/planted.c codegen/targets/cpu/loops.h
planted codegen/text/planted.c codegen/host/dims.h
planted codegen/targets/cpu/planted.c codegen/driver/compile.h
planted codegen/targets/null/planted.c codegen/targets/cpu/loops.h
planted codegen/import/planted.c codegen/stages/read.h
planted codegen/stages/planted.c codegen/tune/autotune.h
planted codegen/tune/planted.c codegen/driver/compile.h
"$root/tests/layering.sh" "$copy"

# Folders (circles.py): a header of a folder above is included below, in each part of the project.
circle() { # FILE HEADER: the folder of HEADER needs that of FILE.
    echo "#include \"$2\"" >"$copy/$1"
    if python3 "$root/tests/circles.py" "$copy" --folders -- >"$copy/log"; then
        echo "a circle of folders by $1 was not caught" >&2
        exit 1
    fi
    grep -q "$1 needs $2" "$copy/log" || { cat "$copy/log" >&2; exit 1; }
    rm "$copy/$1"
}
python3 "$root/tests/circles.py" "$copy" --folders --
circle codegen/base/planted.c codegen/stages/read.h
circle ir/core/planted.c ir/context.h
circle kernels/cuda/planted.h kernels/matmul/matmul.h
circle lang/base/planted.c lang/program.h
circle passes/base/planted.c passes/pipeline.h
circle runtime/base/planted.c runtime/cli/options.h

# Rules of the house (rules.py).
breach() { # FAULT TEXT: the planted fault is seen.
    if python3 "$root/tests/rules.py" "$copy" >"$copy/log"; then
        echo "$1 was not caught" >&2
        exit 1
    fi
    if ! grep -qF "$2" "$copy/log"; then
        echo "$1: the report lacks \"$2\":" >&2
        cat "$copy/log" >&2
        exit 1
    fi
}
cp -r "$root/tests" "$root/bench" "$copy"
python3 "$root/tests/rules.py" "$copy"
seq 1 600 | sed 's/.*/\/\/ &/' >"$copy/ir/planted.c"
breach 'a long file' 'ir/planted.c: 600 lines'
{ echo 'void hec_planted(void) {'; seq 1 69 | sed 's/.*/    f(&);/'; echo '}'; } >"$copy/ir/planted.c"
breach 'a long function' 'ir/planted.c:1: a function of 71 lines'
echo 'void hec_planted(void) {}' >"$copy/ir/planted.c"
echo 'void hec_planted(void);' >"$copy/ir/planted.h"
breach 'a function that nobody uses' 'ir/planted.h: hec_planted() is used by no other file'
