// The file by which ranks find rank 0 where no address is known ahead: rank 0 writes it, and removes it when all have
// come. It is told from other files by its first word, and nothing else is ever replaced or removed.
#ifndef HECATE_RUNTIME_NET_RENDEZVOUS_H
#define HECATE_RUNTIME_NET_RENDEZVOUS_H

#include <limits.h>
#include <sys/types.h>

#include "runtime/net/secret.h"

// Its contents.
struct hrt_rendezvous {
    char host[256];          // Rank 0's address,
    int port;                // and where it listens there.
    unsigned long long boot; // Names the boot of rank 0's machine (struct hrt_net_peer).
    char key[2 * HRT_PROOF + 1];
};

// One that this process has written.
struct hrt_rendezvous_file {
    char path[PATH_MAX]; // Behind symbolic links; empty: none has been written.
    dev_t device;
    ino_t inode;
};

// Writes `what` to `path`, readable by this user alone. It may replace a rendezvous file of this user's, which a
// run before has left; anything else stays as it is, and is a usage error.
bool hrt_net_rendezvous_write(struct hrt_rendezvous_file *file, const char *path,
                              const struct hrt_rendezvous *what, struct hrt_error *error);

// Removes it, unless another run has put its own there since. Also of a zeroed one.
void hrt_net_rendezvous_remove(const struct hrt_rendezvous_file *file);

// Reads one. False, and why: with HRT_EXIT_USAGE there is something that rank 0 will not replace, so waiting is in
// vain: a file that is none, or that is another user's, who could send ranks anywhere.
bool hrt_net_rendezvous_read(const char *path, struct hrt_rendezvous *what,
                             struct hrt_error *error);

#endif
