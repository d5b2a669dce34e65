#!/bin/sh
# exits.sh STATUS COMMAND...: runs the command and succeeds when it ends with that status.
expected=$1
shift
"$@"
status=$?
[ "$status" -eq "$expected" ] && exit 0
echo "exit status $status instead of $expected" >&2
exit 1
