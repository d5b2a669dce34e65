#include "runtime/net/mpi_notes.h"

#include <pthread.h>
#include <stdlib.h>

struct note {
    MPI_Request request;
    int peer, kind;
    int32_t value;
};

struct hrt_mpi_notes {
    MPI_Comm comm;
    pthread_mutex_t lock; // Guards the fields below.
    int room;
    struct note note[]; // Under way, or free: MPI_REQUEST_NULL.
};

struct hrt_mpi_notes *hrt_net_mpi_notes_open(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    const int room = 2 * size + 8; // An alarm for everybody, and some notes more.
    struct hrt_mpi_notes *notes = calloc(1, sizeof *notes + (size_t)room * sizeof(struct note));
    if (!notes) return NULL;
    notes->room = room;
    for (int i = 0; i < room; i++) notes->note[i].request = MPI_REQUEST_NULL;
    pthread_mutex_init(&notes->lock, NULL);
    MPI_Comm_dup(comm, &notes->comm);
    return notes;
}

// Sets *place to a free one; -1: there is none, or the same is under way.
static int find_place(struct hrt_mpi_notes *notes, int peer, int kind, int *place) {
    *place = -1;
    for (int i = 0; i < notes->room; i++) {
        struct note *note = &notes->note[i];
        int gone = 1;
        if (note->request != MPI_REQUEST_NULL) {
            const int code = MPI_Test(&note->request, &gone, MPI_STATUS_IGNORE);
            if (code != MPI_SUCCESS) return code;
        }
        if (gone && *place < 0) *place = i;
        if (gone || note->peer != peer || note->kind != kind) continue;
        *place = -1;
        return MPI_SUCCESS;
    }
    return MPI_SUCCESS;
}

int hrt_net_mpi_notes_tell(struct hrt_mpi_notes *notes, int peer, int kind, int32_t value,
                           bool *told) {
    int place;
    pthread_mutex_lock(&notes->lock);
    int code = find_place(notes, peer, kind, &place);
    *told = code == MPI_SUCCESS && place >= 0;
    if (*told) {
        struct note *note = &notes->note[place];
        note->peer = peer, note->kind = kind, note->value = value;
        code = MPI_Isend(&note->value, 1, MPI_INT32_T, peer, kind, notes->comm, &note->request);
    }
    pthread_mutex_unlock(&notes->lock);
    return code;
}

int hrt_net_mpi_notes_told(struct hrt_mpi_notes *notes, int kind, int *peer, int32_t *value,
                           bool *came) {
    MPI_Status status;
    int there;
    const int source = *peer < 0 ? MPI_ANY_SOURCE : *peer;
    const int code = MPI_Iprobe(source, kind, notes->comm, &there, &status);
    *came = code == MPI_SUCCESS && there;
    if (!*came) return code;
    *peer = status.MPI_SOURCE;
    return MPI_Recv(value, 1, MPI_INT32_T, *peer, kind, notes->comm, MPI_STATUS_IGNORE);
}

bool hrt_net_mpi_notes_quiet(struct hrt_mpi_notes *notes) {
    int left = 0;
    pthread_mutex_lock(&notes->lock);
    for (int i = 0; i < notes->room && !left; i++) {
        int gone = 1;
        if (notes->note[i].request != MPI_REQUEST_NULL)
            MPI_Test(&notes->note[i].request, &gone, MPI_STATUS_IGNORE);
        left = !gone;
    }
    pthread_mutex_unlock(&notes->lock);
    return !left;
}

void hrt_net_mpi_notes_close(struct hrt_mpi_notes *notes) {
    if (!notes || !hrt_net_mpi_notes_quiet(notes)) return; // MPI still reads them.
    MPI_Comm_free(&notes->comm);
    pthread_mutex_destroy(&notes->lock);
    free(notes);
}
