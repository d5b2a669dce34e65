#!/bin/sh
# mutants.sh ROOT [FILE]: breaks one line of the planner at a time and runs its tests, which must fail.
# Prints every mutant that survives; exits 1 if one does. Takes a few minutes. A
# mutant that the compiler refuses counts as a mistake in this list.
set -eu
root=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}
only=${2:-} # Just the mutants of this file.
files=$(ls "$root"/files/*.c | grep -v interface.c) # Paths without blanks.
tried=0 survived=0

# mutant FILE TESTS SED-EXPRESSION: FILE lies in runtime/plan or has a path; TESTS are names in tests/plan, one of
# which must fail.
mutant() {
    file=$1 tests=$2 change=$3
    [ -z "$only" ] || [ "$only" = "$file" ] || return 0
    rm -rf "$work/src"
    mkdir -p "$work/src/runtime" "$work/src/tests"
    cp -r "$root/runtime/plan" "$work/src/runtime/plan"
    cp -r "$root/tests/plan" "$work/src/tests/plan"
    case $file in */*) path=$file ;; *) path=runtime/plan/$file ;; esac
    sed -i "$change" "$work/src/$path"
    tried=$((tried + 1))
    if cmp -s "$work/src/$path" "$root/$path"; then
        echo "no such line: $file: $change"
        survived=$((survived + 1))
        return
    fi
    for test in $tests; do
        more=
        for source in print run summary; do
            more="$more $root/tools/replay/$source.c"
        done
        [ "$test" = quality_test ] || more="$work/src/tests/plan/check.c"
        "$cc" -std=gnu17 -D_GNU_SOURCE -O1 -w -I"$work/src" -I"$root" "$work/src/tests/plan/$test.c" \
            "$work"/src/runtime/plan/*.c "$work"/src/runtime/plan/loads/*.c $files $more -lcmocka -lzstd -ljansson -lm -o "$work/test" || {
            echo "does not compile: $file: $change"
            survived=$((survived + 1))
            return
        }
        argument=
        [ "$test" != schedule_test ] || argument=3000
        timeout 60 "$work/test" $argument >/dev/null 2>&1 || return 0
    done
    echo "survived: $file: $change"
    survived=$((survived + 1))
}

# The scheduler.
mutant schedule.c schedule_test 's/if (k == entry || sends != (pass == 0)) continue;/if (k == entry || pass == 0) continue;/'
mutant schedule.c schedule_test 's/emit(t, expert, segment, t->placed\[sender\], k);/emit(t, expert, segment, entry, k);/'
mutant schedule.c schedule_test 's/t->ready\[ready++\] = entry;/t->ready[ready] = entry;/'
mutant rounds.c schedule_test 's/gather->transfer\[gather->count - 1 - i\]/gather->transfer[i]/'
mutant rounds.c schedule_test 's/t.expert, t.segment, t.to, t.from/t.expert, t.segment, t.from, t.to/'
mutant rounds.c schedule_test 's/received\[t->to\]++ \/ HPL_STAGED/received[t->to]++ \/ (8 * HPL_STAGED)/'
mutant rounds.c schedule_test 's/begin\[schedule->transfer\[i\].round + 1\]++/begin[1]++/'
mutant schedule.c schedule_test 's/hpl_rounds_sort(schedule, work) : status/status : status/'
mutant schedule.c schedule_test 's/at += sends\[root\];/at += 0;/'
mutant schedule.c schedule_test 's/if (end - first > 1 \&\& t->inside\[k - base\] == 0) continue;//'
mutant schedule.c schedule_test 's/for (int32_t s = 0; s < t->schedule->segments; s++)/for (int32_t s = 1; s < t->schedule->segments; s++)/'
mutant tests/plan/check.c schedule_test 's/receives\[d\] += HPL_BOUND_PARTS/receives[d] += HPL_BOUND_PARTS \/ 2/'
mutant senders.c schedule_test 's/(nodes - 2) \* segments/(nodes - 1) * segments/'
mutant senders.c schedule_test 's/(home_to - home_from - 2) \* segments/(home_to - home_from - 1) * segments/'
mutant senders.c schedule_test 's/demand(d, plan, segments, true, home_from, home_to)/demand(d, plan, segments, true, begin, end)/'
mutant senders.c schedule_test 's/demand(d, plan, segments, false, own, own + 1)/demand(d, plan, segments, false, home_from, home_to)/'
# The checker.
mutant tests/plan/check.c schedule_test 's/if (\*from == 0) return HPL_FAULT_UNREADY;//'
mutant tests/plan/check.c schedule_test 's/if (\*to != 0) return HPL_FAULT_REWRITTEN;//'
mutant tests/plan/check.c schedule_test 's/if (p->parts\[i\] == 0) return HPL_FAULT_MISSING;//'
mutant tests/plan/check.c schedule_test 's/if (\*from == 0 || t->from == owner\[t->expert\]) return HPL_FAULT_UNREADY;//'
mutant tests/plan/check.c schedule_test 's/\*to += \*from;/*to += 1;/'
# Shares, routes, bounds.
mutant flow.c share_test 's/#define NEAR ((int32_t)1)/#define NEAR ((int32_t)0)/'
mutant flow.c share_test 's/t->share\[k\] > t->holder_near\[k\] ? -near : 0/0/'
mutant flow.c share_test 's/return now > near ? now - near : now;/return now;/'
mutant flow.c share_test 's/t->group_share\[g\] > t->group_near\[g\] ? -far : 0/0/'
mutant flow.c share_test 's/higher.den += speed\[d\]/higher.den += 1/'
mutant rank_quotas.c share_test 's/if (open == 0) continue;//; s/const int64_t shift = at - (beyond - open);/const int64_t shift = at;/'
mutant rank_quotas.c share_test 's/begin += away;//'
mutant rank_quotas.c share_test 's/const int32_t d = first + (s->expert + i) % size;/const int32_t d = first + i % (size > 1 ? size - 1 : 1);/'
mutant bound.c 'bound_test exhaustive_test' 's/slots -= !held;//'
mutant bound.c 'bound_test exhaustive_test' 's/entries -= !present;/entries -= 2;/'
mutant bound.c 'bound_test exhaustive_test' 's/\*load = low;/*load = high + 2000;/'
# Policies.
mutant draft.c policy_test 's/draft->slots_left\[device\]--;//'
mutant draft.c policy_test 's/== 0) draft->entries_left\[node\]--;/== 0) {}/'
mutant quota_pack.c quality_test 's/waste < best_waste ||/waste > best_waste ||/'
mutant policy_fssdp.c quality_test 's/keep_rows(&q);//'
mutant quota_imports.c quality_test 's/q->rest\[e\] = rows\[e\];/q->rest[e] = -(int64_t)rows[e];/'
mutant live_flow.c live_flow_test 's/hpl_live_put(f, place, -f->share\[place\]);//'
mutant live_flow.c live_flow_test 's/>= 0 ? f->speed\[d\] : 0/>= 0 ? 1 : 0/'
mutant live_flow.c live_flow_test 's/if (f->share\[k\] == 0 || f->open/if (f->open/'
mutant quota_mend.c families_test 's/if (f->all_left < before) return true;//'
mutant quota_mend.c families_test 's/m.limit = STEPS_MORE/m.limit = 1000 * STEPS_MORE/'
mutant quota_mend.c policy_test 's/ || (k < end \&\& present->holder\[k\] == d)//'
mutant quota_mend.c policy_test 's/ || draft->entries_left\[n\] > 0) return true;/ || n >= 0) return true;/'
mutant calibrate.c policy_test 's/result->taken = saved > 0/result->taken = true/'
mutant reshard.c reshard_test 's/r->free\[device\]--;//'

echo "$tried mutants, $survived survived"
[ "$survived" -eq 0 ]
