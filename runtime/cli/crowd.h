// Other programs on our cores.
#ifndef HECATE_RUNTIME_CLI_CROWD_H
#define HECATE_RUNTIME_CLI_CROWD_H

// Starts a thread that watches, until the process ends, whether threads of this process wait for a core, and lets
// OpenMP's threads sleep almost at once, in place of spinning, while they do. Call it once, when the number of threads
// is set. Does nothing with one thread or where the kernel does not tell how long threads wait.
//
// OpenMP reads how long to spin once, when it is loaded. But its threads spin shortly while there are more of them than
// cores (libgomp: 100 rounds), which is looked up at every wait. So while cores are shared another thread has a team of
// its own, which sleeps, and makes them too many. No result depends on any of it.
void hrt_cli_watch_cores(void);

#endif
