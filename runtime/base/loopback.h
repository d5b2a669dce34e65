// Answering requests of this machine over HTTP, each with a text that is made for it. One thread serves several clients
// at a time: none that is slow, or says nothing, keeps the others or the end waiting.
#ifndef HECATE_RUNTIME_BASE_LOOPBACK_H
#define HECATE_RUNTIME_BASE_LOOPBACK_H

#include <stdbool.h>
#include <stdio.h>

struct hrt_loopback;

// Listens on 127.0.0.1, so that other machines cannot ask. NULL: `*why` says in words why not. Closed on exec.
struct hrt_loopback *hrt_base_loopback_open(int port, const char **why);

// Writes the answer to a request; false: there is none, and the text written so far is dropped.
typedef bool hrt_loopback_fn(void *context, FILE *out);

// Answers each GET of "/", or of `path`, with a text of the MIME type `type`, until hrt_base_loopback_stop. A client
// that asks in the name of another host is turned away; so is one that has not asked within five seconds, or not taken
// the answer within as many. With more than 32 clients the oldest goes.
void hrt_base_loopback_serve(struct hrt_loopback *loopback, const char *path, const char *type,
                             hrt_loopback_fn *write, void *context);

// Makes hrt_base_loopback_serve return at once, in the middle of an answer, too. Any thread.
void hrt_base_loopback_stop(struct hrt_loopback *loopback);

// After hrt_base_loopback_serve has returned, or where it was never called.
void hrt_base_loopback_close(struct hrt_loopback *loopback);

#endif
