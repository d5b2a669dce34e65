#!/bin/sh
# circles_test.sh ROOT CC: circles.py catches circles that are planted in a small project, however they
# are made, and nothing else.
set -eu
root=$1
cc=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/source/part/deep" "$work/build/part/CMakeFiles/all.dir/deep"
cd "$work/source"

check() { # Compiles the project and looks for circles.
    for file in part/*.c part/deep/*.c; do
        "$cc" -I. -c "$file" -o "$work/build/part/CMakeFiles/all.dir/${file#part/}.o"
    done
    python3 "$root/tests/circles.py" . part -- "$work"/build/part/CMakeFiles/all.dir/*.o \
        "$work"/build/part/CMakeFiles/all.dir/deep/*.o >"$work/log"
}

caught() { # WHAT TEXT: what was just planted is seen.
    if check; then
        echo "$1 was not caught" >&2
        exit 1
    fi
    if ! grep -qF "$2" "$work/log"; then
        echo "$1: the report lacks \"$2\":" >&2
        cat "$work/log" >&2
        exit 1
    fi
}

# One header declares for all files: it says nothing of who needs whom.
echo 'int top(void), middle(void), bottom(void), more(void);' >part/all.h
printf '#include "part/all.h"\nint top(void) { return middle(); }\n' >part/top.c
printf '#include "part/all.h"\nint middle(void) { return bottom(); }\n' >part/deep/middle.c
printf '#include "part/all.h"\nint bottom(void) { return 0; }\n' >part/bottom.c
check || { cat "$work/log" >&2; exit 1; }

printf '#include "part/all.h"\nint bottom(void) { return 0; }\nint more(void) { return top(); }\n' >part/bottom.c
caught 'a circle of three files' 'part/bottom.c needs part/top.c: top()'

printf '#include "part/all.h"\nint bottom(void) { return 0; }\n' >part/bottom.c
echo '#include "part/other.h"' >>part/all.h
echo '#pragma once
#include "part/all.h"' >part/other.h
caught 'a circle of headers' 'part/all.h needs part/other.h: #include'
