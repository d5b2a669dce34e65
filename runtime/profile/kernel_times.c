// A hash table of rows, open addressing.
#include "runtime/profile/kernel_times.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void hrt_profile_tally_init(struct hrt_tally *tally) {
    *tally = (struct hrt_tally){.rows = 1};
    tally->row[0] = (struct hrt_tally_row){.section = HRT_SECTION_PASSES, .name = "(more)"};
}

// The sizes that tell rows apart begin here.
static int first_size(const char *sizes) {
    return sizes && sizes[0] == '~' ? 1 : 0;
}

static uint64_t hash_of(enum hrt_section section, const char *name, const struct hk_work *work) {
    uint64_t hash = 14695981039346656037u + (uint64_t)section;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (uint64_t)(unsigned char)*at) * 1099511628211u;
    for (int i = first_size(work->sizes); i < HK_DIMS_MAX; i++)
        hash = (hash ^ (uint64_t)work->size[i]) * 1099511628211u;
    return hash ^ hash >> 29;
}

static bool is_row(const struct hrt_tally_row *row, enum hrt_section section, const char *name,
                   const struct hk_work *work) {
    const int first = first_size(work->sizes);
    return row->section == section && strcmp(row->name, name) == 0 &&
           memcmp(row->size + first, work->size + first,
                  (size_t)(HK_DIMS_MAX - first) * sizeof *row->size) == 0;
}

int hrt_profile_tally_row_of(struct hrt_tally *tally, enum hrt_section section, const char *name,
                             const struct hk_work *work) {
    // Ends: there are more slots than rows.
    uint64_t slot = hash_of(section, name, work) % HRT_TALLY_SLOTS;
    for (; tally->slot[slot]; slot = (slot + 1) % HRT_TALLY_SLOTS) {
        if (is_row(&tally->row[tally->slot[slot]], section, name, work)) return tally->slot[slot];
    }
    if (tally->rows == HRT_TALLY_ROWS) return 0;
    struct hrt_tally_row *row = &tally->row[tally->rows];
    *row = (struct hrt_tally_row){.section = section, .name = name, .sizes = work->sizes};
    memcpy(row->size, work->size, sizeof row->size);
    tally->slot[slot] = (int16_t)tally->rows;
    return tally->rows++;
}

int hrt_profile_tally_family(const struct hrt_tally *tally, int row) {
    int first = 0;
    while (strcmp(tally->row[first].name, tally->row[row].name) != 0) first++;
    return first;
}

void hrt_profile_tally_add(struct hrt_tally *tally, int row, const struct hk_work *work,
                           int64_t ns) {
    struct hrt_tally_row *to = &tally->row[row];
    to->calls++;
    to->ns += ns;
    to->varying += (double)work->size[0];
    to->flops += work->flops;
    to->bytes += work->bytes;
}

void hrt_profile_tally_clear(struct hrt_tally *tally) {
    for (int i = 0; i < tally->rows; i++) {
        struct hrt_tally_row *row = &tally->row[i];
        row->calls = row->ns = 0;
        row->varying = row->flops = row->bytes = 0;
    }
}

// How many sizes a row has.
static int dims_of(const struct hrt_tally_row *row) {
    if (!row->sizes) return 0;
    int dims = 1;
    for (const char *at = row->sizes; *at; at++) dims += *at == ' ';
    return dims;
}

void hrt_profile_tally_shape(char out[HRT_SHAPE_MAX], const struct hrt_tally_row *row,
                             int64_t varying) {
    const bool varies = hrt_tally_varies(row);
    const int dims = dims_of(row);
    int used = 0;
    out[0] = '\0';
    for (int i = 0; i < dims; i++) {
        const size_t left = HRT_SHAPE_MAX - (size_t)used;
        const char *times = i ? " x " : "";
        if (i > 0 || !varies)
            used += snprintf(out + used, left, "%s%" PRId64, times, row->size[i]);
        else if (varying >= 0)
            used += snprintf(out, left, "%" PRId64, varying);
        else
            used +=
                snprintf(out, left, "~%.6g", row->calls ? row->varying / (double)row->calls : 0);
    }
}
