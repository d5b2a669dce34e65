#!/bin/sh
# add_policy.sh ROOT CC: a policy is one file and one row. Adds one to a copy of the planner; the table, the
# planner and the language then know it. Every row has its file, and every file its row.
set -eu
root=$1 cc=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "add_policy: $*" >&2
    exit 1
}

rows=$(sed -n 's/^HPL_POLICY(\([^, ]*\),.*/\1/p' "$root/runtime/plan/policies.def" | sort)
[ "$(echo "$rows" | wc -l)" -ge 11 ] || fail "the table has lost rows: $rows"
# policy_fssdp.c has company (quota_*.c), policy.c is the table.
files=$(ls "$root"/runtime/plan/policy_*.c | sed 's/.*policy_\(.*\)\.c/\1/' | sort)
[ "$rows" = "$files" ] || fail "rows $rows, files $files"

mkdir -p "$work/runtime"
cp -r "$root/runtime/plan" "$work/runtime/"
cp -r "$root/lang" "$work/"
mkdir "$work/runtime/store"
: >"$work/runtime/store/hf_families.def" # Which the language reads, too.
for family in "$root"/runtime/store/families/*.def; do
    echo "#include \"$family\"" >>"$work/runtime/store/hf_families.def"
done
mkdir -p "$work/kernels/router"
cp "$root/kernels/router/scores.def" "$work/kernels/router/"
cat >"$work/runtime/plan/policy_first.c" <<'C'
// first: the first device has everything.
#include "runtime/plan/policies.h"

enum hpl_status hpl_place_first(const struct hpl_problem *problem, struct hpl_plan *plan,
                                int64_t *share, struct hpl_work *work) {
    (void)share, (void)work;
    for (int32_t e = 0; e <= problem->experts; e++) plan->first[e] = e;
    for (int32_t e = 0; e < problem->experts; e++) plan->holder[e] = 0;
    return HPL_OK;
}
C
sed -i 's/^#undef HPL_POLICY/HPL_POLICY(first, PERIODIC, NEAREST, EVERY, EXCHANGE, KEPT, "", "All on one device")\n&/' \
    "$work/runtime/plan/policies.def"
cat >"$work/main.c" <<'C'
#include <stdio.h>
#include <string.h>

#include "lang/settings.h"
#include "runtime/plan/policy.h"

int main(void) {
    const struct hpl_policy *policy = hpl_policy_find("first");
    int32_t owner[2] = {1, 1}, first[3], holder[2] = {7, 7};
    struct hpl_plan plan = {.experts = 2, .capacity = 2, .first = first, .holder = holder};
    struct hpl_work work = {0};
    if (!policy || policy->when != HPL_WHEN_PERIODIC || policy->calibrates) return 1;
    if (hpl_place(policy, &(struct hpl_problem){.experts = 2, .owner = owner}, &plan, NULL, &work))
        return 2;
    if (holder[0] != 0 || holder[1] != 0) return 3;
    for (int i = 0; i < HEC_KEYS; i++) {
        if (strcmp(hec_setting_rows[i].key, "parallel.experts") == 0)
            puts(hec_setting_rows[i].values);
    }
    return 0;
}
C
"$cc" -std=gnu17 -O0 -I"$work" -o "$work/main" "$work/main.c" "$work/lang/settings.c" \
    "$work"/runtime/plan/*.c || fail "the planner with one more policy does not compile"
said=$("$work/main") || fail "the planner does not use its new policy: $?"
case "|$said|" in *'|first|'*) ;; *) fail "the language does not take the new policy: $said" ;; esac
