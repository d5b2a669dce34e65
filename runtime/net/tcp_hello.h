// The words of ranks that meet. In the bytes of this processor: all ranks run one program.
#ifndef HECATE_RUNTIME_NET_TCP_HELLO_H
#define HECATE_RUNTIME_NET_TCP_HELLO_H

#include "runtime/net/tcp_meet.h"

#define HRT_TCP_MAGIC "hecate-3" // 8 bytes.

// Rank 0's first message on a connection. Its clock counts for all: it waits `left_ms` more.
struct hrt_tcp_challenge {
    char magic[8];
    unsigned char nonce[HRT_NONCE];
    int32_t left_ms;
};

// The answer. `proof` covers the challenge's nonce and the fields before it.
struct hrt_tcp_hello {
    char magic[8];
    unsigned char nonce[HRT_NONCE];
    int32_t rank, size, port, sound;
    struct hrt_net_peer peer;
    struct hrt_error error; // Where it is not sound.
    unsigned char proof[HRT_PROOF];
};

enum hrt_tcp_verdict_kind { HRT_TCP_GO, HRT_TCP_NO, HRT_TCP_REFUSED };

// Rank 0's verdict; behind GO come all seats, of which `seats` is the proof: made once, as they are the same for all.
// `proof` covers the hello's nonce and the fields before it. NO is an error of all, REFUSED one of this rank.
struct hrt_tcp_verdict {
    char magic[8];
    int32_t kind, nodes;
    int32_t left_ms; // Until the mesh must stand.
    uint64_t job;
    struct hrt_error error;
    unsigned char seats[HRT_PROOF];
    unsigned char proof[HRT_PROOF];
};

#endif
