#!/bin/sh
# compile.sh LOG COMMAND...: runs nvcc and keeps what ptxas says of every kernel (registers, spills) in LOG. What it
# prints otherwise is shown; a build without a warning is silent.
set -u
log=$1
shift
"$@" >"$log" 2>&1
status=$?
grep -vE "^ptxas info|bytes stack frame|^$" "$log" >&2
[ $status = 0 ] || rm -f "$log"
exit $status
