// The K largest of a row of logits, by a heap whose root is the smallest that is kept.
#include "runtime/train/entries.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/params/element.h"
#include "runtime/params/tensor.h"

void hrt_train_entries_form(struct hrt_teacher_file *file, const struct hrt_program *program,
                            int64_t entries, bool of_targets) {
    file->vocabulary = program->vocabulary;
    file->entries = of_targets ? 1 : entries < program->vocabulary ? entries : program->vocabulary;
    file->id_bytes = program->vocabulary <= UINT16_MAX + 1 ? 2 : 4;
    file->log_bytes = of_targets ? 4 : 2;
}

int64_t hrt_train_entries_bytes(const struct hrt_teacher_file *file) {
    return file->entries * (file->id_bytes + file->log_bytes);
}

// Whether `a` is less likely; of equals the later one is.
static bool is_less(struct hrt_entry a, struct hrt_entry b) {
    return a.logit < b.logit || (a.logit == b.logit && a.id > b.id);
}

// Puts `entry` where the root was, and the heap in order.
static void sift(struct hrt_entry *heap, int64_t count, struct hrt_entry entry) {
    int64_t at = 0;
    for (int64_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_less(heap[child + 1], heap[child])) child++;
        if (!is_less(heap[child], entry)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = entry;
}

static int by_likelihood(const void *a, const void *b) {
    const struct hrt_entry *x = a, *y = b;
    return is_less(*x, *y) ? 1 : is_less(*y, *x) ? -1 : 0;
}

// Finds them, and returns the logarithm of the sum of the exponentials of all.
static double find(struct hrt_entry *entry, int64_t count, const void *logits,
                   enum hrt_precision precision, int64_t row, int64_t vocabulary) {
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < count; k++) entry[k] = (struct hrt_entry){-INFINITY, INT32_MAX};
    for (int64_t v = 0; v < vocabulary; v++) {
        const double logit = hrt_params_element(logits, precision, row * vocabulary + v);
        const struct hrt_entry own = {logit, (int32_t)v};
        most = fmax(most, logit);
        if (is_less(entry[0], own)) sift(entry, count, own);
    }
    for (int64_t v = 0; v < vocabulary; v++)
        sum += exp(hrt_params_element(logits, precision, row * vocabulary + v) - most);
    qsort(entry, (size_t)count, sizeof *entry, by_likelihood);
    return most + log(sum);
}

// The logit of `target`, and the same logarithm. A negative target has no entry.
static double find_target(struct hrt_entry *entry, const void *logits, enum hrt_precision precision,
                          int64_t row, int64_t vocabulary, int32_t target) {
    struct hrt_entry most;
    const double sum = find(&most, 1, logits, precision, row, vocabulary);
    *entry = (struct hrt_entry){-INFINITY, target};
    if (target >= 0)
        entry->logit = hrt_params_element(logits, precision, row * vocabulary + target);
    return sum;
}

// NaN and infinite logits are stored as no entry.
static void store(const struct hrt_teacher_file *file, const struct hrt_entry *entry, double sum,
                  char *out) {
    for (int64_t k = 0; k < file->entries; k++) {
        const bool there = isfinite(entry[k].logit) && isfinite(sum);
        const double log_prob = there ? entry[k].logit - sum : -INFINITY;
        const uint32_t id = there ? (uint32_t)entry[k].id : 0;
        memcpy(out + k * file->id_bytes, &id, (size_t)file->id_bytes);
        hrt_params_hf_encode(file->log_bytes == 4 ? HRT_HF_F32 : HRT_HF_F16, &log_prob, 1,
                             out + file->entries * file->id_bytes + file->log_bytes * k);
    }
}

void hrt_train_entries_of(const struct hrt_teacher_file *file, const void *logits,
                          enum hrt_precision precision, int64_t rows, const int32_t *targets,
                          struct hrt_entry *scratch, void *out) {
    const int64_t bytes = hrt_train_entries_bytes(file);
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        struct hrt_entry *own = scratch + row * file->entries;
        const double sum =
            targets ? find_target(own, logits, precision, row, file->vocabulary, targets[row])
                    : find(own, file->entries, logits, precision, row, file->vocabulary);
        store(file, own, sum, (char *)out + row * bytes);
    }
}
