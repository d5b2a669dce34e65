// Loops over the elements of a tensor, as few as the tensors involved allow.
#include "codegen/c/nest.h"

#include <string.h>

#include "codegen/host/dims.h"
#include "codegen/host/function.h"

// Below this many elements, waking the threads costs more than they save: a few microseconds.
static const int64_t parallel_elements = 32768;

static const char *const variables[][3] = {{"j"}, {"r", "j"}, {"n", "r", "j"}};
static const char *const deep_variables[] = {"n", "n1", "n2", "n3", "n4", "n5", "r", "j"};

static const char *variable(const struct hec_nest *nest, int loop) {
    if (nest->loops <= 3) return variables[nest->loops - 1][loop];
    return loop + 2 < nest->loops ? deep_variables[loop]
                                  : deep_variables[6 + loop - (nest->loops - 2)];
}

// Whether dimensions `d` and `d + 1` of the space stand side by side in `t`, or are both missing.
static bool joined(const struct hec_tensor *space, int d, const struct hec_tensor *t) {
    const int a = hec_tensor_find(t, space->dim[d]), b = hec_tensor_find(t, space->dim[d + 1]);
    return a < 0 ? b < 0 : b == a + 1;
}

struct hec_nest hec_nest_of(struct hec_tensor space, int types, const MlirType *type) {
    struct hec_nest nest = {.space = space};
    int64_t elements = 1;
    for (int d = 0; d < space.rank; d++) {
        elements *= space.size[d];
        bool together = d > 0;
        for (int i = 0; together && i < types; i++) {
            const struct hec_tensor t = hec_tensor_of(type[i]);
            together = joined(&space, d - 1, &t);
        }
        if (!together) nest.first[nest.loops++] = d;
    }
    nest.first[nest.loops] = space.rank;
    nest.parallel = elements >= parallel_elements;
    return nest;
}

struct hec_nest hec_nest_of_block(struct hec_tensor space, int rows) {
    return (struct hec_nest){
        .space = space, .loops = 2, .first = {0, rows, space.rank}, .block = true};
}

static int loop_of(const struct hec_nest *nest, MlirStringRef dim) {
    const int at = hec_tensor_find(&nest->space, dim);
    for (int loop = 0; at >= 0 && loop < nest->loops; loop++) {
        if (at < nest->first[loop + 1]) return loop;
    }
    return -1;
}

const char *hec_nest_index(struct hec_emitter *e, const struct hec_nest *nest, MlirType type) {
    const struct hec_tensor t = hec_tensor_of(type);
    const char *text = NULL;
    bool sum = false;
    for (int d = 0; d < t.rank; d++) {
        const int loop = loop_of(nest, t.dim[d]);
        if (loop < 0) continue; // Reported by the verifier: no dimension of the space.
        if (!mlirStringRefEqual(t.dim[d], nest->space.dim[nest->first[loop]])) continue;
        const char *v = variable(nest, loop);
        if (!text) {
            text = v;
            continue;
        }
        text = HEC_TEXT(e, sum ? "(%s) * %s + %s" : "%s * %s + %s", text,
                        hec_factor(e, &nest->space, nest->first[loop], nest->first[loop + 1]), v);
        sum = true;
    }
    return text ? text : "0";
}

// In double, functions are those of libm, which cannot be vectorized.
static void write_pragma(struct hec_emitter *e, const struct hec_nest *nest, int loop) {
    const bool inner = loop == nest->loops - 1 && strcmp(e->suffix, "f32") == 0;
    struct hec_writer *body = &e->function->body;
    if (loop == 0 && nest->parallel) {
        hec_write(body, "#pragma omp parallel for%s\n", inner ? " simd" : "");
    } else if (inner) {
        hec_write(body, "#pragma omp simd\n");
    }
}

// Where a loop begins and ends.
static const char *begin_of(const struct hec_nest *nest, int loop) {
    return !nest->block ? "0" : loop == 0 ? "block.row" : "block.column";
}

static const char *end_of(struct hec_emitter *e, const struct hec_nest *nest, int loop) {
    if (nest->block) return loop == 0 ? "block.row_end" : "block.column_end";
    return hec_product(e, &nest->space, nest->first[loop], nest->first[loop + 1]);
}

static void write_for(struct hec_emitter *e, const struct hec_nest *nest, int loop,
                      const char *after) {
    const char *v = variable(nest, loop);
    hec_statement(e, "for (int64_t %s = %s; %s < %s; %s++)%s", v, begin_of(nest, loop), v,
                  end_of(e, nest, loop), v, after);
}

static void write_head(struct hec_emitter *e, const struct hec_nest *nest, int loop,
                       const char *after) {
    write_pragma(e, nest, loop);
    write_for(e, nest, loop, after);
}

// Without `omp simd`: the caller's innermost loop may carry a sum.
void hec_nest_heads(struct hec_emitter *e, const struct hec_nest *nest, int from, int to) {
    for (int loop = from; loop < to; loop++) {
        if (loop == 0 && nest->parallel) {
            hec_write(&e->function->body, "#pragma omp parallel for\n");
        }
        write_for(e, nest, loop, " {");
        e->function->body.indent++;
    }
}

void hec_nest_open(struct hec_emitter *e, const struct hec_nest *nest) {
    for (int loop = 0; loop < nest->loops; loop++) {
        write_head(e, nest, loop, " {");
        e->function->body.indent++;
    }
}

void hec_nest_close(struct hec_emitter *e, const struct hec_nest *nest) {
    for (int loop = 0; loop < nest->loops; loop++) hec_close(&e->function->body, "}");
}

void hec_nest_statement(struct hec_emitter *e, const struct hec_nest *nest, const char *statement) {
    struct hec_writer *body = &e->function->body;
    for (int loop = 0; loop < nest->loops - 1; loop++) {
        write_head(e, nest, loop, " {");
        body->indent++;
    }
    if (nest->loops) {
        // On the line of its loop where it fits.
        const char *v = variable(nest, nest->loops - 1);
        const char *begin = begin_of(nest, nest->loops - 1),
                   *end = end_of(e, nest, nest->loops - 1);
        const size_t head =
            strlen("for (int64_t  = ;  < ; ++) ") + 3 * strlen(v) + strlen(begin) + strlen(end);
        if (4 * (size_t)body->indent + head + strlen(statement) <= HEC_COLUMNS) {
            write_head(e, nest, nest->loops - 1, HEC_TEXT(e, " %s", statement));
        } else {
            write_head(e, nest, nest->loops - 1, " {");
            body->indent++;
            hec_line(body, "%s", statement);
            hec_close(body, "}");
        }
    } else {
        hec_line(body, "%s", statement);
    }
    for (int loop = 0; loop < nest->loops - 1; loop++) hec_close(body, "}");
}

void hec_nest_copy(struct hec_emitter *e, const char *to, const char *from, MlirType type,
                   bool adds) {
    const struct hec_nest nest = hec_nest_of(hec_tensor_of(type), 1, &type);
    const char *index = hec_nest_index(e, &nest, type);
    const char *source = *from == '&' ? from + 1 : HEC_TEXT(e, "%s[%s]", from, index);
    hec_nest_statement(e, &nest,
                       HEC_TEXT(e, "%s[%s] %s %s;", to, index, adds ? "+=" : "=", source));
}
