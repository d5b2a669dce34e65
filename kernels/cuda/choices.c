#include "kernels/cuda/choices.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "files/files.h"

enum { LINE_MAX_BYTES = 256 };
static const double FARTHEST = 3; // Doublings.

static const char *const forms[HKC_FORMS] = {"nn", "nt", "tn"};

static double doublings(int64_t a, int64_t b) {
    return fabs(log2((double)a / (double)b));
}

bool hkc_choose(const struct hkc_choices *choices, const struct hkc_shape *shape) {
    const struct hk_matmul_dims *d = &shape->dims;
    const struct hkc_choice *nearest = NULL;
    double least = FARTHEST;
    if (d->m < 1 || d->n < 1 || d->k < 1) return false;
    for (int i = 0; i < choices->count; i++) {
        const struct hkc_choice *c = &choices->choice[i];
        const struct hk_matmul_dims *of = &c->shape.dims;
        if (c->shape.form != shape->form || c->shape.bf16 != shape->bf16) continue;
        const double far = doublings(d->m, of->m) + doublings(d->n, of->n) + doublings(d->k, of->k);
        if (far > least || (far == least && nearest)) continue;
        nearest = c;
        least = far;
    }
    return nearest && nearest->by_library;
}

static bool read_line(const char *line, struct hkc_choice *c) {
    char type[8], form[8], word[16];
    int end = 0;
    struct hk_matmul_dims *d = &c->shape.dims;
    if (sscanf(line,
               "%7s %7s m=%" SCNd64 " n=%" SCNd64 " k=%" SCNd64 " own=%lf cublaslt=%lf %15s%n",
               type, form, &d->m, &d->n, &d->k, &c->own, &c->library, word, &end) != 8 ||
        strcmp(line + end, "\n") != 0 || d->m < 1 || d->n < 1 || d->k < 1)
        return false;
    c->shape.bf16 = strcmp(type, "bf16") == 0;
    c->by_library = strcmp(word, "cublaslt") == 0;
    for (int i = 0; i < HKC_FORMS; i++) {
        if (strcmp(form, forms[i]) == 0) c->shape.form = (enum hkc_form)i;
    }
    return (c->shape.bf16 || strcmp(type, "f32") == 0) &&
           (c->by_library || strcmp(word, "own") == 0) && strcmp(form, forms[c->shape.form]) == 0;
}

static bool read_all(struct hkc_choices *choices, FILE *file, const char *path, int capability,
                     char *why, size_t why_bytes) {
    char line[LINE_MAX_BYTES];
    int measured = 0, end = 0;
    choices->count = 0;
    if (!fgets(line, sizeof line, file) ||
        sscanf(line, "hecate-products 1 sm_%d%n", &measured, &end) != 1 ||
        strcmp(line + end, "\n") != 0) {
        snprintf(why, why_bytes, "%s:1: not a table of GEMMs", path);
        return false;
    }
    if (measured != capability) {
        snprintf(why, why_bytes, "%s:1: measured on sm_%d, but this GPU is sm_%d", path, measured,
                 capability);
        return false;
    }
    while (fgets(line, sizeof line, file)) {
        struct hkc_choice choice = {0};
        if (choices->count == HKC_CHOICES_MAX || !read_line(line, &choice)) {
            snprintf(why, why_bytes, "%s:%d: not a choice for a GEMM", path, choices->count + 2);
            return false;
        }
        choices->choice[choices->count++] = choice;
    }
    return true;
}

bool hkc_choices_read(struct hkc_choices *choices, const char *path, int capability, char *why,
                      size_t why_bytes) {
    const char *fault;
    FILE *file = hf_input(path, false, &fault);
    if (!file) {
        snprintf(why, why_bytes, "%s: %s", path, fault);
        return false;
    }
    const bool read = read_all(choices, file, path, capability, why, why_bytes);
    fclose(file);
    return read;
}

void hkc_choices_write(FILE *out, const struct hkc_choices *choices, int capability) {
    fprintf(out, "hecate-products 1 sm_%d\n", capability);
    for (int i = 0; i < choices->count; i++) {
        const struct hkc_choice *c = &choices->choice[i];
        const struct hk_matmul_dims *d = &c->shape.dims;
        fprintf(out, "%s %s m=%" PRId64 " n=%" PRId64 " k=%" PRId64 " own=%.1f cublaslt=%.1f %s\n",
                c->shape.bf16 ? "bf16" : "f32", forms[c->shape.form], d->m, d->n, d->k, c->own,
                c->library, c->by_library ? "cublaslt" : "own");
    }
}
