// Loops over the elements of a tensor, shared among threads.
#include "codegen/targets/cpu/loops.h"

#include <string.h>

#include "codegen/host/dims.h"
#include "codegen/host/function.h"

// Below this many elements, waking the threads costs more than they save: a few microseconds.
static const int64_t parallel_elements = 32768;

struct hec_loops hec_loops_of_nest(struct hec_nest nest) {
    int64_t elements = 1;
    for (int d = 0; d < nest.space.rank; d++) elements *= nest.space.size[d];
    return (struct hec_loops){.nest = nest, .parallel = elements >= parallel_elements};
}

struct hec_loops hec_loops_of(struct hec_tensor space, int types, const MlirType *type) {
    return hec_loops_of_nest(hec_nest_of(space, types, type));
}

struct hec_loops hec_loops_of_block(struct hec_tensor space, int rows) {
    return (struct hec_loops){.nest = {.space = space, .loops = 2, .first = {0, rows, space.rank}},
                              .block = true};
}

// In double, functions are those of libm, which cannot be vectorized.
static void write_pragma(struct hec_emitter *e, const struct hec_loops *loops, int loop) {
    const bool inner = loop == loops->nest.loops - 1 && strcmp(e->suffix, "f32") == 0;
    struct hec_writer *body = &e->function->body;
    if (loop == 0 && loops->parallel) {
        hec_write(body, "#pragma omp parallel for%s\n", inner ? " simd" : "");
    } else if (inner) {
        hec_write(body, "#pragma omp simd\n");
    }
}

// Where a loop begins and ends.
static const char *begin_of(const struct hec_loops *loops, int loop) {
    return !loops->block ? "0" : loop == 0 ? "block.row" : "block.column";
}

static const char *end_of(struct hec_emitter *e, const struct hec_loops *loops, int loop) {
    if (loops->block) return loop == 0 ? "block.row_end" : "block.column_end";
    return hec_nest_extent(e, &loops->nest, loop);
}

static void write_for(struct hec_emitter *e, const struct hec_loops *loops, int loop,
                      const char *after) {
    const char *v = hec_nest_variable(&loops->nest, loop);
    hec_statement(e, "for (int64_t %s = %s; %s < %s; %s++)%s", v, begin_of(loops, loop), v,
                  end_of(e, loops, loop), v, after);
}

static void write_head(struct hec_emitter *e, const struct hec_loops *loops, int loop,
                       const char *after) {
    write_pragma(e, loops, loop);
    write_for(e, loops, loop, after);
}

// Without `omp simd`: the caller's innermost loop may carry a sum.
void hec_loops_heads(struct hec_emitter *e, const struct hec_loops *loops, int from, int to) {
    for (int loop = from; loop < to; loop++) {
        if (loop == 0 && loops->parallel) {
            hec_write(&e->function->body, "#pragma omp parallel for\n");
        }
        write_for(e, loops, loop, " {");
        e->function->body.indent++;
    }
}

void hec_loops_open(struct hec_emitter *e, const struct hec_loops *loops) {
    for (int loop = 0; loop < loops->nest.loops; loop++) {
        write_head(e, loops, loop, " {");
        e->function->body.indent++;
    }
}

void hec_loops_close(struct hec_emitter *e, const struct hec_loops *loops) {
    for (int loop = 0; loop < loops->nest.loops; loop++) hec_close(&e->function->body, "}");
}

void hec_loops_statement(struct hec_emitter *e, const struct hec_loops *loops,
                         const char *statement) {
    struct hec_writer *body = &e->function->body;
    for (int loop = 0; loop < loops->nest.loops - 1; loop++) {
        write_head(e, loops, loop, " {");
        body->indent++;
    }
    if (loops->nest.loops) {
        // On the line of its loop where it fits.
        const char *v = hec_nest_variable(&loops->nest, loops->nest.loops - 1);
        const char *begin = begin_of(loops, loops->nest.loops - 1),
                   *end = end_of(e, loops, loops->nest.loops - 1);
        const size_t head =
            strlen("for (int64_t  = ;  < ; ++) ") + 3 * strlen(v) + strlen(begin) + strlen(end);
        if (4 * (size_t)body->indent + head + strlen(statement) <= HEC_COLUMNS) {
            write_head(e, loops, loops->nest.loops - 1, HEC_TEXT(e, " %s", statement));
        } else {
            write_head(e, loops, loops->nest.loops - 1, " {");
            body->indent++;
            hec_line(body, "%s", statement);
            hec_close(body, "}");
        }
    } else {
        hec_line(body, "%s", statement);
    }
    for (int loop = 0; loop < loops->nest.loops - 1; loop++) hec_close(body, "}");
}

void hec_loops_copy(struct hec_emitter *e, const char *to, const char *from, MlirType type,
                    bool adds) {
    const struct hec_loops loops = hec_loops_of(hec_tensor_of(type), 1, &type);
    const char *index = hec_nest_index(e, &loops.nest, type);
    const char *source = *from == '&' ? from + 1 : HEC_TEXT(e, "%s[%s]", from, index);
    hec_loops_statement(e, &loops,
                        HEC_TEXT(e, "%s[%s] %s %s;", to, index, adds ? "+=" : "=", source));
}
