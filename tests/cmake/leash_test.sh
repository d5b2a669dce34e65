#!/bin/sh
# leash_test.sh LEASH: nothing that a test starts outlives it.
set -u
leash=$1
mark=31557600.$$ # Seconds of a sleep that is ours.
failed=0

expect() { # NAME RUNNING
    running=$(pgrep -fc "^sleep $mark" || true)
    [ "$running" = "$2" ] && return
    echo "$1: $running processes run, want $2" >&2
    failed=1
}

"$leash" sh -c "setsid sleep $mark & exit 3"
[ $? = 3 ] || failed=1
expect "a daemon of a test that has ended" 0

own=$("$leash" sh -c 'mkdir -p "$TMPDIR/a/b" && touch "$TMPDIR/a/b/c" && echo "$TMPDIR"')
other=$("$leash" sh -c 'echo "$TMPDIR"')
if [ -z "$own" ] || [ -e "$own" ] || [ "$own" = "$other" ]; then
    echo "a test's TMPDIR, $own, is not its own, or has stayed" >&2
    failed=1
fi

"$leash" sh -c "setsid sleep $mark & sleep $mark" &
for _ in 1 2 3 4 5 6 7 8 9 10; do [ "$(pgrep -fc "^sleep $mark" || true)" = 2 ] || sleep 0.5; done
expect "a test that runs" 2
kill -TERM $!
wait $!
[ $? = 143 ] || failed=1
expect "a test that was told to end" 0

sh -c "'$leash' sh -c 'sleep $mark & sleep $mark'; true" &
for _ in 1 2 3 4 5 6 7 8 9 10; do [ "$(pgrep -fc "^sleep $mark" || true)" = 2 ] || sleep 0.5; done
expect "a test that runs" 2
kill -KILL $!
for _ in 1 2 3 4 5 6 7 8 9 10; do [ "$(pgrep -fc "^sleep $mark" || true)" = 0 ] || sleep 0.5; done
expect "a test whose CTest was killed" 0
exit $failed
