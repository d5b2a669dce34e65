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
    rm -f "$work"/build/part/CMakeFiles/all.dir/*.o
    for file in part/*.c part/deep/*.c; do
        "$cc" -I. -c "$file" -o "$work/build/part/CMakeFiles/all.dir/${file#part/}.o"
    done
    python3 "$root/tests/circles.py" . part ${of_folders:-} -- "$work"/build/part/CMakeFiles/all.dir/*.o \
        "$work"/build/part/CMakeFiles/all.dir/deep/*.o >"$work/log"
}

caught() { # FAULT TEXT: the planted fault is seen.
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

# Folders, whose files need each other in no circle: by functions, and by headers alone.
echo 'int top(void), middle(void), bottom(void), more(void);' >part/all.h
rm part/other.h
caught_between() { # WHAT TEXT
    wanted=$2
    of_folders='--folders part'
    caught "$1" "$wanted"
}
printf '#include "part/all.h"\nint middle(void) { return more(); }\n' >part/deep/middle.c
printf 'int more(void);\nint more(void) { return 0; }\n' >part/more.c
printf '#include "part/all.h"\nint bottom(void) { return 0; }\n' >part/bottom.c
check || { cat "$work/log" >&2; exit 1; }
caught_between 'a circle of folders' 'part/ needs part/deep/: part/top.c needs part/deep/middle.c: middle()'
printf 'int middle(void) { return 0; }\n' >part/deep/middle.c
printf 'int more(void) { return 0; }\n' >part/top.c
mkdir part/low
rm part/more.c part/bottom.c
echo '#include "part/low/low.h"' >part/deep/deep.h
echo '#include "part/deep/other.h"' >part/low/low.h
echo '#pragma once' >part/deep/other.h
caught_between 'a circle of folders of headers' 'part/low/ needs part/deep/: part/low/low.h needs part/deep/other.h: #include'
echo '#include "part/deep/list.def"' >part/low/low.h # A list needs nobody.
: >part/deep/list.def
check || { cat "$work/log" >&2; exit 1; }
