// How long OpenMP's threads spin at a barrier before they sleep.
#ifndef HECATE_RUNTIME_CLI_SPIN_H
#define HECATE_RUNTIME_CLI_SPIN_H

// Limits it to some ten microseconds, which covers the barriers between kernels, unless the
// user's environment says something about it. libgomp spins for milliseconds by default: on a
// machine where anything else runs, a thread then burns the core that the thread it waits for
// needs, and a step takes up to 10 times as long.
//
// OpenMP reads its environment when it is loaded, before any code of ours: so this starts the
// program anew, once, with the limit set. Call it first in main; when it cannot, it returns and
// nothing is lost.
void hrt_limit_spinning(char **argv);

#endif
