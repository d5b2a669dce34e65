// The table: sections, their kernels, their shapes, each by falling time; then the other phases, and
// the time outside of GEMMs and attention.
#include "runtime/profile/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const headings[] = {
    [HRT_SECTION_PRODUCTS] = "GEMMs",          [HRT_SECTION_ATTENTION] = "attention",
    [HRT_SECTION_PASSES] = "other kernels",    [HRT_SECTION_EPILOGUES] = "epilogues of GEMMs",
    [HRT_SECTION_BETWEEN] = "between kernels", [HRT_SECTION_OPTIMIZER] = "optimizer",
};

struct sum {
    int64_t calls, ns;
    double flops, bytes;
    double least_ns; // At the peaks of its kernels.
};

// The peak of a kernel, known by the end of its name.
static double peak_of(const struct hrt_profile *p, const char *name) {
    static const char bf16[] = "_bf16";
    const size_t length = strlen(name), end = sizeof bf16 - 1;
    const bool is_bf16 = length > end && strcmp(name + length - end, bf16) == 0;
    return is_bf16 && p->peak_bf16 > 0 ? p->peak_bf16 : p->peak;
}

static void sum_add(struct sum *sum, const struct hrt_profile *p, const struct hrt_tally_row *row) {
    const double peak = peak_of(p, row->name);
    sum->calls += row->calls;
    sum->ns += row->ns;
    sum->flops += row->flops;
    sum->bytes += row->bytes;
    sum->least_ns += peak > 0 ? row->flops / peak : 0;
}

// A row of the tally in the order of printing.
struct entry {
    const struct hrt_tally_row *row;
    int64_t kernel_ns; // Sum of all rows with its section and name.
};

static int by_section_and_time(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    if (a->row->section != b->row->section) return a->row->section < b->row->section ? -1 : 1;
    if (a->kernel_ns != b->kernel_ns) return a->kernel_ns > b->kernel_ns ? -1 : 1;
    const int name = strcmp(a->row->name, b->row->name);
    if (name) return name;
    if (a->row->ns != b->row->ns) return a->row->ns > b->row->ns ? -1 : 1;
    return a->row < b->row ? -1 : 1;
}

static bool same_kernel(const struct hrt_tally_row *a, const struct hrt_tally_row *b) {
    return a->section == b->section && strcmp(a->name, b->name) == 0;
}

// Fills `entry` with the rows that were called, in the order of printing; returns how many.
static int collect(struct entry entry[HRT_TALLY_ROWS], const struct hrt_tally *tally) {
    int count = 0;
    for (int i = 0; i < tally->rows; i++) {
        if (tally->row[i].calls == 0) continue;
        entry[count] = (struct entry){.row = &tally->row[i]};
        for (int j = 0; j < tally->rows; j++) {
            if (same_kernel(&tally->row[i], &tally->row[j]))
                entry[count].kernel_ns += tally->row[j].ns;
        }
        count++;
    }
    qsort(entry, (size_t)count, sizeof *entry, by_section_and_time);
    return count;
}

// A number, or as many blanks when it is 0.
static int format_number(char *out, int width, int decimals, double number, const char *unit) {
    if (number > 0) return sprintf(out, " %*.*f%s", width, decimals, number, unit);
    return sprintf(out, " %*s", width + (int)strlen(unit), "");
}

// One line: calls and ms of one step, and rates.
static void print_line(FILE *out, const struct hrt_profile *p, const char *name,
                       const struct sum *sum) {
    const double steps = (double)p->steps, ns = (double)sum->ns;
    char line[1024]; // The longest shape, and more than any number of these takes.
    int used = sprintf(line, "%-46s", name);
    used += format_number(line + used, 7, sum->calls % p->steps ? 1 : 0, (double)sum->calls / steps,
                          "");
    used +=
        sprintf(line + used, " %9.3f %5.1f %%", 1e-6 * ns / steps, 100 * ns / (double)p->step_ns);
    if (ns > 0) {
        used += format_number(line + used, 8, 1, sum->flops / ns, "");
        used += format_number(line + used, 4, 0, 100 * sum->least_ns / ns, " %");
        used += format_number(line + used, 7, 1, sum->bytes / ns, "");
    }
    while (line[used - 1] == ' ') used--;
    fprintf(out, "%.*s\n", used, line);
}

static void shape_of(char out[HRT_SHAPE_MAX], const struct hrt_tally *tally,
                     const struct hrt_tally_row *row) {
    if (row->section != HRT_SECTION_BETWEEN) {
        hrt_profile_tally_shape(out, row, -1);
        return;
    }
    const char *before = row->size[0] < 0 ? "begin" : tally->row[row->size[0]].name;
    const char *after = row->size[1] < 0 ? "end" : tally->row[row->size[1]].name;
    snprintf(out, HRT_SHAPE_MAX, "%s .. %s", before, after);
}

// The lines of one kernel: entries [0, count). Shapes below a thousandth of a step share a line.
static void print_kernel(FILE *out, const struct hrt_profile *p, const struct entry *entry,
                         int count) {
    char shape[HRT_SHAPE_MAX], line[2 * HRT_SHAPE_MAX];
    const struct hrt_tally_row *first = entry[0].row;
    struct sum all = {0}, small = {0};
    int smalls = 0;
    for (int i = 0; i < count; i++) sum_add(&all, p, entry[i].row);
    const char *sizes = first->sizes ? first->sizes + hrt_tally_varies(first) : "";
    const bool alone = count == 1 && first->section != HRT_SECTION_BETWEEN;
    shape_of(shape, &p->tally, first);
    snprintf(line, sizeof line, alone ? "  %s  %s" : "  %s", first->name, shape);
    if (!alone && *sizes) snprintf(line, sizeof line, "  %s  (%s)", first->name, sizes);
    print_line(out, p, line, &all);
    for (int i = 0; !alone && i < count; i++) {
        struct sum sum = {0};
        sum_add(&sum, p, entry[i].row);
        if (1000 * sum.ns < p->step_ns) {
            sum_add(&small, p, entry[i].row);
            smalls++;
            continue;
        }
        shape_of(shape, &p->tally, entry[i].row);
        snprintf(line, sizeof line, "    %s", shape);
        print_line(out, p, line, &sum);
    }
    snprintf(line, sizeof line, "    %d more", smalls);
    if (smalls) print_line(out, p, line, &small);
}

// One section, from entry `at` on; returns behind it. `sum` gets its total.
static int print_section(FILE *out, const struct hrt_profile *p, enum hrt_section section,
                         const struct entry *entry, int count, int at, struct sum *sum) {
    int end = at;
    for (; end < count && entry[end].row->section == section; end++)
        sum_add(sum, p, entry[end].row);
    if (section == HRT_SECTION_OPTIMIZER) sum->ns = p->phase_ns[HRT_PHASE_OPTIMIZER];
    if (sum->ns == 0) return end;
    print_line(out, p, headings[section], sum);
    while (at < end) {
        int next = at;
        while (next < end && same_kernel(entry[at].row, entry[next].row)) next++;
        print_kernel(out, p, entry + at, next - at);
        at = next;
    }
    return end;
}

static void print_heading(FILE *out, const struct hrt_profile *p) {
    fprintf(out, "\nprofile of step");
    if (p->steps == 1)
        fprintf(out, " %" PRId64, p->first_step);
    else
        fprintf(out, "s %" PRId64 " to %" PRId64, p->first_step, p->last_step);
    fprintf(out, "%s: %" PRId64 " tokens each; %d threads, %s, peak %.1f GFLOP/s",
            p->warm ? " (the first is left out)" : "", p->tokens, p->threads, p->isa, p->peak);
    if (p->peak_bf16 > 0) fprintf(out, ", bf16 %.1f", p->peak_bf16);
    fputc('\n', out);
    fprintf(out, "%-46s %7s %9s %7s %8s %6s %7s\n", "", "calls", "ms", "share", "GFLOP/s", "peak",
            "GB/s");
}

static void print_outside(FILE *out, const struct hrt_profile *p, const struct sum *section) {
    const double step = (double)p->step_ns;
    const double optimizer = (double)p->phase_ns[HRT_PHASE_OPTIMIZER];
    const double outside =
        step - (double)(section[HRT_SECTION_PRODUCTS].ns + section[HRT_SECTION_ATTENTION].ns);
    fprintf(out, "not in GEMMs and attention: %.1f %% of a step; without the optimizer, %.1f %%\n",
            100 * outside / step,
            step > optimizer ? 100 * (outside - optimizer) / (step - optimizer) : 0);
}

// They are part of what stands above: of what is between kernels, mostly.
static void print_waits(FILE *out, const struct hrt_profile *p, enum hrt_awaited awaited,
                        const char *title) {
    const struct hrt_waits_of *waits = &p->waits[awaited];
    struct sum all = {0};
    for (int i = 0; i < waits->room; i++) {
        all.calls += waits->sum[i].calls;
        all.ns += waits->sum[i].ns;
    }
    if (all.calls == 0) return;
    print_line(out, p, title, &all);
    for (int i = 0; i < waits->room; i++) {
        char line[HRT_SHAPE_MAX];
        const struct sum sum = {.calls = waits->sum[i].calls, .ns = waits->sum[i].ns};
        snprintf(line, sizeof line, "  %s", waits->sum[i].why);
        if (sum.calls) print_line(out, p, line, &sum);
    }
}

void hrt_profile_print(FILE *out, const struct hrt_profile *p) {
    if (p->steps == 0 || p->step_ns == 0) {
        fprintf(out, "profile: no step was taken\n");
        return;
    }
    struct entry entry[HRT_TALLY_ROWS];
    struct sum section[HRT_SECTIONS] = {0}, rest = {.ns = p->step_ns};
    const int count = collect(entry, &p->tally);
    print_heading(out, p);
    for (int i = 0, at = 0; i < HRT_SECTIONS; i++) {
        at = print_section(out, p, (enum hrt_section)i, entry, count, at, &section[i]);
        rest.ns -= section[i].ns;
    }
    static const enum hrt_phase phases[] = {HRT_PHASE_DATA, HRT_PHASE_RANKS};
    for (int i = 0; i < (p->ranks > 1 ? 2 : 1); i++) {
        const struct sum sum = {.ns = p->phase_ns[phases[i]]};
        print_line(out, p, hrt_profile_phase_name(phases[i]), &sum);
        rest.ns -= sum.ns;
    }
    print_line(out, p, hrt_profile_phase_name(HRT_PHASE_OTHER), &rest);
    print_line(out, p, "step", &(struct sum){.ns = p->step_ns});
    if (p->ranks > 1) print_waits(out, p, HRT_AWAITED_RANKS, "part of it: waits for ranks");
    print_waits(out, p, HRT_AWAITED_DEVICE, "part of it: waits for device");
    print_outside(out, p, section);
}
