// The secret that ranks need to join each other, and proofs that do not reveal it: HMAC-SHA256, by libgcrypt.
#ifndef HECATE_RUNTIME_NET_SECRET_H
#define HECATE_RUNTIME_NET_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"

enum { HRT_PROOF = 32, HRT_NONCE = 16, HRT_SECRET = 1024 };

struct hrt_secret {
    char text[HRT_SECRET]; // Empty: there is none.
};

// Reads HECATE_SECRET, or the first line of the file that HECATE_SECRET_FILE names, which nobody else may read.
bool hrt_net_secret_read(struct hrt_secret *secret, struct hrt_error *error);

// Bytes that nobody can guess.
void hrt_net_nonce(void *bytes, size_t count);

// Computes the proof of `parts`, in this order. False: libgcrypt cannot.
struct hrt_part {
    const void *data;
    size_t bytes;
};
bool hrt_net_prove(const struct hrt_secret *secret, const struct hrt_part *parts, int count,
                   unsigned char proof[HRT_PROOF]);

// Whether `proof` is that of `parts`, compared in constant time.
bool hrt_net_proves(const struct hrt_secret *secret, const struct hrt_part *parts, int count,
                    const unsigned char proof[HRT_PROOF]);

#endif
