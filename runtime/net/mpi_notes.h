// Notes over MPI (struct hrt_wire, net.h). Codes are MPI's.
#ifndef HECATE_RUNTIME_NET_MPI_NOTES_H
#define HECATE_RUNTIME_NET_MPI_NOTES_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct hrt_mpi_notes;

// Opens notes over `comm`; the caller closes them. Collective. NULL: no memory.
struct hrt_mpi_notes *hrt_net_mpi_notes_open(MPI_Comm comm);

// Sends a note. *told false: the last one of its kind to `peer` is still under way.
int hrt_net_mpi_notes_tell(struct hrt_mpi_notes *notes, int peer, int kind, int32_t value,
                           bool *told);

// Takes the next note of `kind` of *peer, or of anybody (-1).
int hrt_net_mpi_notes_told(struct hrt_mpi_notes *notes, int kind, int *peer, int32_t *value,
                           bool *came);

// Whether all notes have left.
bool hrt_net_mpi_notes_quiet(struct hrt_mpi_notes *notes);

// Frees the notes. Messages that a lost rank has not taken are left to MPI.
void hrt_net_mpi_notes_close(struct hrt_mpi_notes *notes);

#endif
