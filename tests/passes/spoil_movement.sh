#!/bin/sh
# spoil_movement.sh FILE KEPT STEP: spoils the movement of FILE's experts, one way after the other; each time
# verify-movement must refuse it and give the reason. FILE re-materializes, KEPT does not, and the
# replicas of STEP live for a step.
set -u
file=$1
failed=0

expect() { # REASON SED-SCRIPT
    sed "$2" "$file" > "$file.spoilt"
    if cmp -s "$file" "$file.spoilt"; then
        echo "nothing to spoil: $2" >&2
        failed=1
    elif hecate-opt --passes=verify-movement "$file.spoilt" > "$file.answer" 2>&1; then
        echo "not found: $2" >&2
        failed=1
    elif ! grep -q "$1" "$file.answer"; then
        echo "another reason than '$1': $2" >&2
        cat "$file.answer" >&2
        failed=1
    fi
}

first='0,/fssdp.await.(/' # In @forward.
back='/fssdp.materialize.*rematerialize = true/'

expect 'reads experts before their await' "$first{/fssdp.await.(/d}"
expect 'reads experts before their await' '/fssdp.collect_grad/,${/fssdp.await.(/d};/func @backward/,${/fssdp.await.(/d}'
expect 'reads experts before their await, or when released' '0,/what = "parameters"/{/what = "parameters"/d;s/^ *"fssdp.await"(\(%[a-z0-9]*\)).*$/&\n"fssdp.release"(\1) {set = @sparse, what = "parameters"} : (index) -> ()/}'
expect 'starts while every slot is taken' "0,/what = \"parameters\"/{/what = \"parameters\"/d}"
expect 'starts what was not planned' '/fssdp.plan/d'
expect 'plans twice in one iteration' 's/"fssdp.plan"(%[a-z0-9]*)/"fssdp.plan"(%c0)/'
expect 'awaits what was not started' '/fssdp.materialize.*rematerialize = false/d;/fssdp.calibrate/d'
expect 'awaits what was not started' "$back{/ahead/!d}"
expect 'awaits what was not started' '/ahead = 1/d'
expect 'starts while every slot is taken' 's/slot_layers = 1/slot_layers = 0/'
expect 'is marked .rematerialize' '/fssdp.materialize/s/rematerialize = false/rematerialize = true/'
expect 'is not marked .rematerialize' '/fssdp.materialize.*ahead/s/rematerialize = true/rematerialize = false/'
expect 'releases gradients that are not being reduced' '/fssdp.reduce/d'
expect 'reduces gradients that nobody computed, or twice' 's/^\( *\)"fssdp.reduce".*$/&\n&/'
expect 'gradients while other layers' '/what = "gradients"/d'
expect 'gradients while other layers' 's/grad_layers = 2/grad_layers = 1/'
expect 'releases gradients that are not being reduced' 's/ahead = -1/ahead = 0/'
expect 'releases parameters that are not here' 's/^.*what = "parameters".*$/&\n&/'
expect 'is not between the exchange of counts and the await' '/fssdp.await_counts/,$b;s/^.*fssdp.materialize.*$/&\n"fssdp.calibrate"(%arg4) {set = @sparse} : (index) -> ()/'
expect 'awaits counts before their exchange' '/fssdp.exchange/d'
expect 'sends rows before their counts are known' '/fssdp.await_counts/d;/fssdp.calibrate/d'
expect 'ends with parameters that were not released' '/func @backward/,$s/^ *return/"fssdp.materialize"(%c2) {rematerialize = true, set = @sparse} : (index) -> ()\n&/'
expect 'ends with gradients that did not reach their owners' '/moe.accumulate.*@sparse.w/d;/fssdp.reduce/d;/what = "gradients"/d'

rm -f "$file.spoilt" "$file.answer"
file=$2
expect 'prefetches what was planned' 's/"fssdp.prefetch"(%[a-z0-9]*)/"fssdp.prefetch"(%c0)/'
expect 'starts while every slot is taken' 's/slot_layers = 3/slot_layers = 1/'
expect 'awaits what was not started' '/fssdp.prefetch/d;/fssdp.materialize.*rematerialize = false/d;/fssdp.calibrate/d'
expect 'plans twice in one iteration' 's/"fssdp.plan"(%[a-z0-9]*)/"fssdp.plan"(%c0)/'

rm -f "$file.spoilt" "$file.answer"
file=$3
expect 'adds to gradients behind their reduce' '/fssdp.reduce/s/scope = "step", //'
expect 'releases gradients that are not being reduced' '/what = "gradients"/s/scope = "step", //'
expect 'is not between the exchange of counts and the await' '/what = "parameters"/s/scope = "step", //'
expect 'awaits what was not started' '/what = "parameters"/s/scope = "step", //;/fssdp.calibrate/d'
expect 'ends with parameters that were not released' '/what = "parameters"/d'
expect 'starts what was started and not released' '/fssdp.materialize/s/scope = "step", //'
expect 'plans while replicas of the plan before are here' '/fssdp.plan/s/scope = "step", //;/fssdp.prefetch/d'
expect 'gradients while other layers' 's/grad_layers = 3/grad_layers = 2/'
expect 'ends with gradients that did not reach their owners' '/fssdp.reduce/d;/what = "gradients"/d'
expect 'reads experts before their await' '/fssdp.await.(/d'

rm -f "$file.spoilt" "$file.answer"
exit $failed
