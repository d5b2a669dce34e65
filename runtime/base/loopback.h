// Answering requests of this machine over HTTP: one at a time, each with a text that is made for it.
#ifndef HECATE_RUNTIME_BASE_LOOPBACK_H
#define HECATE_RUNTIME_BASE_LOOPBACK_H

#include <stdbool.h>
#include <stdio.h>

// Listens on 127.0.0.1, so that other machines cannot ask. -1: `*why` says in words why not.
// Closed on exec.
int hrt_loopback_open(int port, const char **why);

// Writes what is asked for; false: there is nothing, and what was written is dropped.
typedef bool hrt_loopback_fn(void *context, FILE *out);

// Waits for the next request, and answers a GET of "/", or of `path`, with a text of the MIME type `type`. One who asks in the name of
// another host, or says nothing for two seconds, is turned away. False: nobody can ask any more.
bool hrt_loopback_answer(int listening, const char *path, const char *type, hrt_loopback_fn *write,
                         void *context);

#endif
