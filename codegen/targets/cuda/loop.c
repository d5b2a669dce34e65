// Kernels that the emitter writes: loops whose iterations are threads.
#include "codegen/targets/cuda/loop.h"

#include <assert.h>
#include <string.h>

#include "codegen/host/dims.h"
#include "codegen/host/function.h"
#include "codegen/host/literal.h"

// Words with another meaning in C++ and CUDA; no name is a word of C anyway.
static const char *const reserved[] = {
    "and",       "and_eq",      "bitand",
    "bitor",     "blockDim",    "blockIdx",
    "catch",     "char8_t",     "class",
    "compl",     "concept",     "consteval",
    "constinit", "co_await",    "co_return",
    "co_yield",  "const_cast",  "count",
    "decltype",  "delete",      "dynamic_cast",
    "explicit",  "export",      "friend",
    "gridDim",   "lane",        "mutable",
    "namespace", "new",         "noexcept",
    "not",       "not_eq",      "operator",
    "or",        "or_eq",       "private",
    "protected", "public",      "reinterpret_cast",
    "requires",  "static_cast", "template",
    "this",      "thread",      "threadIdx",
    "throw",     "try",         "typeid",
    "typename",  "using",       "virtual",
    "warpSize",  "wchar_t",     "xor",
    "xor_eq",    "element",     "width",
    "vector",    "left",        "fits",
};

int hec_device_point(struct hec_device_loop *loop, MlirType type, const char *host,
                     const char *name, enum hec_device_use use) {
    assert(loop->pointers < HEC_DEVICE_POINTERS);
    loop->pointer[loop->pointers] =
        (struct hec_device_pointer){.type = type, .host = host, .name = name, .use = use};
    return loop->pointers++;
}

// How often the loops that are threads run, together.
static const char *count_text(struct hec_emitter *e, const struct hec_device_loop *loop) {
    return hec_product(e, &loop->nest.space, 0, loop->nest.first[loop->threads]);
}

// "element / F % T": the variable of one of several loops.
static const char *variable_text(struct hec_emitter *e, const struct hec_device_loop *loop,
                                 int at) {
    const struct hec_nest *nest = &loop->nest;
    const char *text = "element";
    if (at + 1 < loop->threads)
        text =
            HEC_TEXT(e, "%s / %s", text,
                     hec_factor(e, &nest->space, nest->first[at + 1], nest->first[loop->threads]));
    if (at > 0)
        text = HEC_TEXT(e, "%s %% %s", text,
                        hec_factor(e, &nest->space, nest->first[at], nest->first[at + 1]));
    return text;
}

// The number of the thread's element, or of the first of its neighbours.
static const char *element_variable(const struct hec_device_loop *loop) {
    return loop->threads == 1 ? hec_nest_variable(&loop->nest, 0) : "element";
}

static const char *index_text(struct hec_emitter *e, const struct hec_device_loop *loop,
                              const struct hec_device_pointer *p) {
    return p->parts ? hec_part_index(e, &loop->nest, p->parts, p->part)
                    : hec_nest_index(e, &loop->nest, p->type);
}

enum along { ALONG, ALONG_LACKS, ALONG_NOT };

// How a tensor lies along the innermost loop: with its neighbours side by side, the same for all, or otherwise.
static enum along along_innermost(const struct hec_device_loop *loop, int pointer) {
    const struct hec_device_pointer *p = &loop->pointer[pointer];
    if (p->parts) return ALONG;
    const struct hec_tensor *space = &loop->nest.space, t = hec_tensor_of(p->type);
    const int at = hec_tensor_find(&t, space->dim[space->rank - 1]);
    return at < 0 ? ALONG_LACKS : at == t.rank - 1 ? ALONG : ALONG_NOT;
}

// How many neighbours a thread may have, where rows and pointers allow them.
static int width_of(const struct hec_device_loop *loop) {
    if (loop->threads == 0 || loop->threads < loop->nest.loops) return 1;
    int width = 4;
    for (int i = 0; i < loop->pointers; i++) {
        const enum along along = along_innermost(loop, i);
        if (along == ALONG_NOT) return 1;
        if (along == ALONG && hec_device_rounds(loop, i)) width = 8;
    }
    return width;
}

// "hkc_aligned(x, w) && D % 8 == 0": all begin at multiples of 16 bytes, and so does each of their rows.
static const char *fits_text(struct hec_emitter *e, const struct hec_device_loop *loop) {
    const struct hec_nest *nest = &loop->nest;
    const char *aligned = "", *rows = "";
    for (int i = 0; i < loop->pointers; i++) {
        const struct hec_device_pointer *p = &loop->pointer[i];
        if (!p->vector) continue;
        aligned = HEC_TEXT(e, "%s%s%s", aligned, *aligned ? ", " : "", p->name);
        const char *steps = p->parts ? hec_part_steps(e, nest, p->parts, p->part, loop->width) : "";
        rows = HEC_TEXT(e, "%s%s", rows, steps);
    }
    if (loop->threads > 1)
        rows = HEC_TEXT(
            e, " && %s %% %d == 0%s",
            hec_factor(e, &nest->space, nest->first[loop->threads - 1], nest->first[loop->threads]),
            loop->width, rows);
    return HEC_TEXT(e, "hkc_aligned(%s)%s", aligned, rows);
}

// The variables that the element's number stands for, where there are several loops.
static void write_variables(struct hec_emitter *e, const struct hec_device_loop *loop) {
    for (int i = 0; i < loop->threads && loop->threads > 1; i++)
        hec_statement(e, "const int64_t %s = %s;", hec_nest_variable(&loop->nest, i),
                      variable_text(e, loop, i));
}

// The head of the loop over threads.
static void write_threads(struct hec_emitter *e, const struct hec_device_loop *loop) {
    hec_statement(e, "HKC_FOR(%s, count) {", element_variable(loop));
    e->function->body.indent++;
    write_variables(e, loop);
}

// Reads the thread's neighbours, and begins the loop over them.
static void write_neighbours(struct hec_emitter *e, struct hec_device_loop *loop) {
    write_variables(e, loop);
    for (int i = 0; i < loop->pointers; i++) {
        struct hec_device_pointer *p = &loop->pointer[i];
        if (along_innermost(loop, i) != ALONG) continue;
        p->vector = hec_ident(&e->function->names, HEC_STR(HEC_TEXT(e, "%s_n", p->name)), "n");
        if (p->use == HEC_DEVICE_WRITTEN) {
            hec_statement(e, "hkc_vector<%s, width> %s;", hec_element_name(e, p->type), p->vector);
        } else {
            hec_statement(e, "auto %s = hkc_read<width>(&%s[%s]);", p->vector, p->name,
                          index_text(e, loop, p));
        }
    }
    loop->fits = fits_text(e, loop);
    hec_statement(e, "for (int i = 0; i < width; i++) {");
    e->function->body.indent++;
}

void hec_device_loop_begin(struct hec_emitter *e, struct hec_device_loop *loop, const char *base) {
    const char *group = e->function->group->name;
    loop->name =
        hec_ident(&e->function->names,
                  HEC_STR(HEC_TEXT(e, "%s%s%s_loop", group, *base ? "_" : "", base)), "loop");
    hec_ident_reserve(&e->globals, loop->name);
    struct hec_function *f = hec_function_begin_device(e);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        hec_ident_reserve(&f->names, reserved[i]);
    for (int i = 0; i < loop->pointers; i++) {
        struct hec_device_pointer *p = &loop->pointer[i];
        p->name = hec_ident(&f->names, HEC_STR(p->name), p->use == HEC_DEVICE_READ ? "from" : "to");
    }
    loop->width = width_of(loop);
    if (loop->width > 1) {
        write_neighbours(e, loop);
    } else {
        write_threads(e, loop);
    }
}

const char *hec_device_element(struct hec_emitter *e, const struct hec_device_loop *loop,
                               int pointer) {
    const struct hec_device_pointer *p = &loop->pointer[pointer];
    if (p->vector) return HEC_TEXT(e, "%s.at[i]", p->vector);
    return HEC_TEXT(e, "%s[%s]", p->name, index_text(e, loop, p));
}

const char *hec_device_number(struct hec_emitter *e, const struct hec_device_loop *loop,
                              int pointer) {
    const char *element = hec_device_element(e, loop, pointer);
    return hec_device_rounds(loop, pointer) ? HEC_TEXT(e, "hkc_float(%s)", element) : element;
}

const char *hec_device_rounds(const struct hec_device_loop *loop, int pointer) {
    return hec_type_is_rounded(loop->pointer[pointer].type) ? "hkc_bf16" : NULL;
}

// "float *x, const float *w, "
static const char *parameters_text(struct hec_emitter *e, const struct hec_device_loop *loop,
                                   bool batch) {
    const char *text = "";
    for (int i = 0; i < loop->pointers; i++) {
        const struct hec_device_pointer *p = &loop->pointer[i];
        text = HEC_TEXT(e, "%s%s%s *%s, ", text, p->use == HEC_DEVICE_READ ? "const " : "",
                        hec_element_name(e, p->type), p->name);
    }
    return batch ? HEC_TEXT(e, "%sint64_t batch, ", text) : text;
}

// "x, w, "; as the kernel or as the host calls them.
static const char *arguments_text(struct hec_emitter *e, const struct hec_device_loop *loop,
                                  bool host, bool batch) {
    const char *text = "";
    for (int i = 0; i < loop->pointers; i++)
        text = HEC_TEXT(e, "%s%s, ", text, host ? loop->pointer[i].host : loop->pointer[i].name);
    return batch ? HEC_TEXT(e, "%sbatch, ", text) : text;
}

// The function of a thread's neighbours, `body`, and the kernel that calls it.
static void write_kernel_of_neighbours(struct hec_emitter *e, const struct hec_device_loop *loop,
                                       const struct hec_writer *body, bool batch) {
    struct hec_writer *out = &e->device;
    const char *parameters = parameters_text(e, loop, batch);
    const char *arguments = arguments_text(e, loop, false, batch);
    hec_open(out, "template <int width> HKC_DEVICE void %s_at(%sint64_t %s) {", loop->name,
             parameters, element_variable(loop));
    hec_append(out, body);
    hec_close(out, "}");
    hec_blank(out);
    hec_open(out, "template <int width> static __global__ void %s_kernel(%sint64_t count) {",
             loop->name, parameters);
    hec_line(out, "HKC_FOR(vector, count / width) %s_at<width>(%svector * width);", loop->name,
             arguments);
    hec_line(out, "HKC_REST(left, count %% width) %s_at<1>(%scount - 1 - left);", loop->name,
             arguments);
    hec_close(out, "}");
}

static void write_kernel(struct hec_emitter *e, const struct hec_device_loop *loop,
                         const struct hec_writer *body, bool batch) {
    struct hec_writer *out = &e->device;
    hec_open(out, "static __global__ void %s_kernel(%sint64_t count) {", loop->name,
             parameters_text(e, loop, batch));
    hec_append(out, body);
    hec_close(out, "}");
}

static void write_launcher(struct hec_emitter *e, const struct hec_device_loop *loop, bool batch) {
    const char *parameters = parameters_text(e, loop, batch);
    const char *arguments = arguments_text(e, loop, false, batch);
    struct hec_writer *out = &e->device;
    hec_open(out, "void %s(struct hkc_lane *lane, %sint64_t count) {", loop->name, parameters);
    if (loop->width > 1) {
        hec_line(out, "const bool fits = %s;", loop->fits);
        hec_line(out, "hkc_launch_vectors(lane, %s_kernel, %d, fits, count, %scount);", loop->name,
                 loop->width, arguments);
    } else {
        hec_line(out, "hkc_launch_loop(lane, %s_kernel, count, %scount);", loop->name, arguments);
    }
    hec_close(out, "}");
    hec_line(&e->launchers, "void %s(struct hkc_lane *lane, %sint64_t count);", loop->name,
             parameters);
}

void hec_device_loop_end(struct hec_emitter *e, const struct hec_device_loop *loop) {
    hec_close(&e->function->body, "}");
    for (int i = 0; i < loop->pointers; i++) {
        const struct hec_device_pointer *p = &loop->pointer[i];
        if (p->vector && p->use != HEC_DEVICE_READ)
            hec_statement(e, "hkc_write(&%s[%s], %s);", p->name, index_text(e, loop, p), p->vector);
    }
    bool batch;
    const struct hec_writer *body = hec_function_leave(e, &batch);
    hec_blank(&e->device);
    if (loop->width > 1) {
        write_kernel_of_neighbours(e, loop, body, batch);
    } else {
        write_kernel(e, loop, body, batch);
    }
    hec_blank(&e->device);
    write_launcher(e, loop, batch);
    hec_statement(e, "%s(m->lane, %s%s);", loop->name, arguments_text(e, loop, true, batch),
                  count_text(e, loop));
}
