#!/bin/sh
# compile.sh LOG COMMAND...: runs nvcc and keeps ptxas's report of every kernel (registers, spills) in LOG. Other
# output is shown; a build without a warning is silent.
set -u
log=$1
shift
"$@" >"$log" 2>&1
status=$?
grep -vE "^ptxas info|bytes stack frame|^$" "$log" >&2
[ $status = 0 ] || rm -f "$log"
exit $status
