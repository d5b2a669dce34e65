#!/bin/sh
# layering.sh ROOT: the architecture, as a test. Each line says which folders one folder may include
# from; anything else is printed as file:line and fails.
set -eu
cd "$1"
failed=0

may_include() { # FOLDER[@FOLDER] ALLOWED-PREFIX...: all files of the first but those below it in the second.
    folder=${1%@*}
    except=.
    case $1 in *@*) except=${1#*@} ;; esac
    shift
    allowed=$(echo "$@" | tr ' ' '|')
    found=$(grep -rnE '^#include "[^"]*/' "$folder" \
        --include='*.[chly]' --include='*.cu' --include='*.cpp' --include='*.def' --exclude-dir="$except" |
        grep -vE "#include \"($allowed)" || true)
    if [ -n "$found" ]; then
        printf '%s may include only %s:\n%s\n' "$folder" "$*" "$found"
        failed=1
    fi
}

may_include files        files/
may_include lang         lang/ codegen/targets/targets.def files/ runtime/plan/policies.def runtime/store/hf_families.def kernels/router/scores.def
may_include ir           ir/ lang/ codegen/targets/targets.def
may_include passes       passes/ ir/ lang/base/ runtime/plan/ files/
may_include codegen/text codegen/text/ lang/base/
may_include codegen/host codegen/base/ codegen/text/ codegen/host/ ir/ lang/base/
for target in codegen/targets/*/; do
    may_include "${target%/}" "$target" codegen/base/ codegen/text/ codegen/host/ ir/ lang/base/
    may_include "${target}facts.c" ir/target/
done
may_include codegen/targets codegen/targets/ codegen/base/ codegen/text/ codegen/host/ ir/ lang/base/
may_include codegen/base codegen/base/ lang/base/ files/
may_include codegen/import codegen/import/ codegen/base/ codegen/text/ lang/base/ lang/program.h passes/base/json_location.h runtime/store/ files/
may_include codegen/stages codegen/stages/ codegen/base/ codegen/import/ passes/ ir/ lang/
may_include codegen/tune codegen/tune/ codegen/targets/targets.h codegen/stages/ codegen/base/ passes/ runtime/plan/ ir/ lang/base/ files/
may_include codegen      codegen/ passes/ runtime/plan/ runtime/store/ ir/ lang/ files/
may_include kernels      kernels/ files/
may_include runtime/plan@loads runtime/plan/
may_include runtime/plan/loads runtime/plan/loads/ runtime/plan/types.h files/
may_include tools/report tools/report/ runtime/base/ files/
may_include tools/restart tools/restart/
may_include runtime/tokenizer runtime/tokenizer/ runtime/base/ files/
may_include tools/prepare tools/prepare/ runtime/tokenizer/tokenizer.h runtime/data/file.h runtime/data/teacher.h runtime/data/weights.h runtime/route/ids_file.h runtime/base/ files/
may_include tools/replay tools/replay/ runtime/plan/ files/
may_include tools/upcycle tools/upcycle/ runtime/base/ runtime/params/ runtime/store/ files/
may_include runtime      runtime/ kernels/ files/ lang/settings.def
exit $failed
