// A ring of copies, each behind its head.
#include "runtime/params/copies.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

struct head {
    _Alignas(64) size_t bytes; // With the head.
    bool given;                // Back.
};

struct hrt_copies {
    char *base;
    size_t room;
    size_t oldest, end; // Copies lie from here to there,
    size_t turn;        // or, if it is not 0: from `oldest` to here, and from 0 to `end`.
    size_t taken;       // How many.
};

struct hrt_copies *hrt_params_copies_create(size_t room) {
    struct hrt_copies *copies = calloc(1, sizeof *copies);
    if (!copies) return NULL;
    void *mapped = mmap(NULL, room ? room : 1, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        free(copies);
        return NULL;
    }
    madvise(mapped, room, MADV_HUGEPAGE); // Only speed; may be refused.
    copies->base = mapped;
    copies->room = room;
    return copies;
}

void hrt_params_copies_destroy(struct hrt_copies *copies) {
    if (!copies) return;
    munmap(copies->base, copies->room ? copies->room : 1);
    free(copies);
}

void *hrt_params_copies_take(struct hrt_copies *copies, size_t bytes) {
    const size_t whole =
        (bytes + 2 * sizeof(struct head) - 1) / sizeof(struct head) * sizeof(struct head);
    const size_t limit = copies->turn ? copies->oldest : copies->room;
    if (whole < bytes) return NULL;
    if (whole > limit - copies->end) {
        if (copies->turn || whole > copies->oldest) return NULL;
        copies->turn = copies->end;
        copies->end = 0;
    }
    struct head *head = (void *)(copies->base + copies->end);
    *head = (struct head){.bytes = whole};
    copies->end += whole;
    copies->taken++;
    return head + 1;
}

void hrt_params_copies_give(struct hrt_copies *copies, void *taken) {
    ((struct head *)taken - 1)->given = true;
    while (copies->taken > 0) {
        const struct head *head = (const void *)(copies->base + copies->oldest);
        if (!head->given) return;
        copies->oldest += head->bytes;
        copies->taken--;
        if (copies->oldest == copies->turn) copies->oldest = copies->turn = 0;
    }
    copies->oldest = copies->end = copies->turn = 0; // Pages that are there are used first.
}
