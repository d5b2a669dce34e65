#!/bin/sh
# run_text_test.sh FILE: runs the RUN lines of a text test, as lit does: %s is the file, %S its
# folder, %t a private path for temporary files. All lines run in one shell with `pipefail`; any
# that fails fails the test. lit itself is a Python package that Debian's LLVM 22 does not ship.
set -eu
file=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
PATH=$HECATE_BIN:$LLVM_BIN:$PATH
export PATH

script=$tmp/script
grep -E '(//|#) RUN:' "$file" | sed -E 's,^.*(//|#) RUN: ?,,' |
    sed -e "s,%s,$file,g" -e "s,%S,$(dirname "$file"),g" -e "s,%t,$tmp/t,g" > "$script"
if [ ! -s "$script" ]; then
    echo "$file has no RUN line" >&2
    exit 1
fi
exec_status=0
bash -o pipefail -eux "$script" || exec_status=$?
exit $exec_status
