// The life of a profile: steps, phases, kernels, and the time between them.
#include "runtime/profile/profile.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/peak.h"
#include "runtime/profile/record.h"

static bool open_trace(struct hrt_profile *profile, const char *path, struct hrt_comm *comm,
                       struct hrt_error *error) {
    char own[4096];
    snprintf(own, sizeof own, "%s", path);
    if (comm->rank > 0) snprintf(own, sizeof own, "%s.%d", path, comm->rank);
    return hrt_profile_trace_open(&profile->trace, own, error);
}

bool hrt_profile_open(struct hrt_profile **profile, const struct hrt_profile_request *request,
                      const struct hrt_program *program, struct hrt_comm *comm,
                      const struct hrt_device *device, struct hrt_error *error) {
    *profile = NULL;
    if (!request->table && !request->trace) return true;
    struct hrt_profile *p = calloc(1, sizeof *p);
    if (!p) return hrt_fail(error, "out of memory");
    p->observer = (struct hk_observer){hrt_profile_called, p};
    p->process = (struct hrt_trace_process){program->name, comm->rank};
    p->table = request->table;
    p->tokens = request->tokens;
    p->ranks = comm->size;
    p->waits[HRT_AWAITED_RANKS] = (struct hrt_waits_of){.now = comm->wait, .room = HRT_WAITS};
    if (hrt_device_is_apart(device))
        p->waits[HRT_AWAITED_DEVICE] = (struct hrt_waits_of){.now = device->wait, .room = HRT_WHYS};
    p->threads = omp_get_max_threads();
    p->isa = hk_isa_name(hk_isa());
    hrt_profile_tally_init(&p->tally);
    if (request->trace && !open_trace(p, request->trace, comm, error)) {
        free(p);
        return false;
    }
    if (request->table) p->peak = program->precision == HRT_FP64 ? hk_peak_f64() : hk_peak_f32();
    if (request->table && program->bind_rounded) p->peak_bf16 = hk_peak_bf16();
    hrt_net_comm_barrier(comm); // Ranks count the times of their traces from one moment.
    p->trace.zero = hk_clock();
    if (request->trace && comm->size > 1 && !hrt_profile_lanes_trace_start(&p->trace.lanes, comm)) {
        hrt_profile_close(p);
        return hrt_fail(error, "out of memory");
    }
    *profile = p;
    return true;
}

// In forward and backward, time outside kernels is a row of its own, named by its neighbours.
static void count_between(struct hrt_profile *p, int next, int64_t now) {
    if (p->phase != HRT_PHASE_FORWARD && p->phase != HRT_PHASE_BACKWARD) return;
    const int64_t ns = now - p->kernel_end;
    const struct hk_work work = {
        .size = {p->kernel < 0 ? -1 : hrt_profile_tally_family(&p->tally, p->kernel),
                 next < 0 ? -1 : hrt_profile_tally_family(&p->tally, next)},
    };
    const int row = hrt_profile_tally_row_of(&p->tally, HRT_SECTION_BETWEEN,
                                             hrt_profile_phase_name(p->phase), &work);
    hrt_profile_tally_add(&p->tally, row, &work, ns);
    const struct hrt_trace_event event = {
        .start = p->kernel_end, .ns = ns, .index = (int16_t)row, .kind = HRT_TRACE_KERNEL};
    if (ns >= HRT_TRACE_BETWEEN_NS) hrt_profile_trace_add(&p->trace, &event);
}

static enum hrt_section section_of(enum hrt_phase phase, enum hk_kind kind) {
    if (phase == HRT_PHASE_OPTIMIZER) return HRT_SECTION_OPTIMIZER;
    if (kind == HK_KIND_PRODUCT) return HRT_SECTION_PRODUCTS;
    return kind == HK_KIND_ATTENTION ? HRT_SECTION_ATTENTION : HRT_SECTION_PASSES;
}

// The epilogue of a GEMM is a row of its own, named as the GEMM is.
static void count_epilogue(struct hrt_profile *p, const struct hk_call *call) {
    struct hk_work work = call->work;
    if (call->epilogue_ns == 0) return;
    work.flops = work.bytes = 0;
    const int row = hrt_profile_tally_row_of(&p->tally, HRT_SECTION_EPILOGUES, call->name, &work);
    hrt_profile_tally_add(&p->tally, row, &work, call->epilogue_ns);
}

void hrt_profile_called(void *context, const struct hk_call *call) {
    struct hrt_profile *p = context;
    const int64_t ns = call->end - call->start;
    const enum hrt_section section = section_of(p->phase, call->work.kind);
    const int row = hrt_profile_tally_row_of(&p->tally, section, call->name, &call->work);
    hrt_profile_tally_add(&p->tally, row, &call->work, ns - call->epilogue_ns);
    count_epilogue(p, call);
    count_between(p, row, call->start);
    p->kernel = row;
    p->kernel_end = call->end;
    const struct hrt_trace_event event = {
        .start = call->start,
        .ns = ns,
        .number = call->work.size[0],
        .line = call->line,
        .flops = (float)call->work.flops,
        .bytes = (float)call->work.bytes,
        .epilogue_ns = (float)call->epilogue_ns,
        .index = (int16_t)row,
        .kind = HRT_TRACE_KERNEL,
    };
    hrt_profile_trace_add(&p->trace, &event);
}

static void begin_phase(struct hrt_profile *p, enum hrt_phase phase, int64_t now) {
    p->phase = phase;
    p->phase_start = p->kernel_end = now;
    p->kernel = -1;
}

static void end_phase(struct hrt_profile *p, int64_t now) {
    const int64_t ns = now - p->phase_start;
    count_between(p, -1, now);
    p->phase_ns[p->phase] += ns;
    const struct hrt_trace_event event = {
        .start = p->phase_start, .ns = ns, .index = (int16_t)p->phase, .kind = HRT_TRACE_PHASE};
    if (p->phase != HRT_PHASE_OTHER) hrt_profile_trace_add(&p->trace, &event);
}

// The first step touches all memory for the first time: with a second one it is no longer counted.
static void forget_first(struct hrt_profile *p) {
    hrt_profile_tally_clear(&p->tally);
    for (int i = 0; i < HRT_PHASES; i++) p->phase_ns[i] = 0;
    for (int i = 0; i < HRT_AWAITED; i++) memset(p->waits[i].sum, 0, sizeof p->waits[i].sum);
    p->step_ns = p->steps = 0;
    p->warm = true;
}

static void begin_waits(struct hrt_waits_of *waits) {
    for (int i = 0; i < waits->room; i++) waits->before[i] = waits->now[i];
}

static void end_waits(struct hrt_waits_of *waits) {
    for (int i = 0; i < waits->room; i++) {
        const struct hrt_wait *now = &waits->now[i], *before = &waits->before[i];
        waits->sum[i].why = now->why;
        waits->sum[i].calls += now->calls - before->calls;
        waits->sum[i].ns += now->ns - before->ns;
    }
}

void hrt_profile_begin_step_at(struct hrt_profile *p, int64_t number, int64_t now) {
    if (p->steps == 1 && !p->warm) forget_first(p);
    p->number = number;
    p->step_start = now;
    for (int i = 0; i < HRT_AWAITED; i++) begin_waits(&p->waits[i]);
    begin_phase(p, HRT_PHASE_OTHER, now);
}

void hrt_profile_enter_at(struct hrt_profile *p, enum hrt_phase phase, int64_t now) {
    end_phase(p, now);
    begin_phase(p, phase, now);
}

void hrt_profile_end_step_at(struct hrt_profile *p, int64_t now) {
    end_phase(p, now);
    if (p->steps++ == 0) p->first_step = p->number;
    p->last_step = p->number;
    p->step_ns += now - p->step_start;
    for (int i = 0; i < HRT_AWAITED; i++) end_waits(&p->waits[i]);
    const struct hrt_trace_event event = {.start = p->step_start,
                                          .ns = now - p->step_start,
                                          .number = p->number,
                                          .kind = HRT_TRACE_STEP};
    hrt_profile_trace_add(&p->trace, &event);
}

void hrt_profile_saved(struct hrt_profile *profile, int64_t step, int64_t begun) {
    if (!profile) return;
    const struct hrt_trace_save save = {.start = begun, .ns = hk_clock() - begun, .step = step};
    hrt_profile_trace_add_save(&profile->trace, &save);
}

void hrt_profile_begin_step(struct hrt_profile *profile, int64_t number) {
    if (!profile) return;
    hk_observe(&profile->observer);
    hrt_profile_begin_step_at(profile, number, hk_clock());
}

void hrt_profile_enter(struct hrt_profile *profile, enum hrt_phase phase) {
    if (profile) hrt_profile_enter_at(profile, phase, hk_clock());
}

void hrt_profile_end_step(struct hrt_profile *profile) {
    if (!profile) return;
    hrt_profile_end_step_at(profile, hk_clock());
    hk_observe(NULL);
}

bool hrt_profile_finish(struct hrt_profile *profile, FILE *out, struct hrt_error *error) {
    if (!profile) return true;
    const bool first = profile->process.rank == 0;
    if (profile->table && first) hrt_profile_print(out, profile);
    if (!profile->trace.file) return true;
    struct hrt_trace_written written;
    if (!hrt_profile_trace_write(&profile->trace, &profile->tally, &profile->process, &written,
                                 error))
        return false;
    if (first)
        fprintf(out,
                "trace: steps %" PRId64 " to %" PRId64 "%s, %" PRId64
                " events in '%s'; open it at https://ui.perfetto.dev\n",
                written.first_step, written.last_step,
                written.left_out ? " (older ones found no place)" : "", written.events,
                profile->trace.path);
    return true;
}

void hrt_profile_close(struct hrt_profile *profile) {
    if (!profile) return;
    hk_observe(NULL); // A step may have failed.
    struct hrt_trace_written written;
    struct hrt_error ignored; // Something else failed before, and that is what is reported.
    if (profile->trace.file)
        hrt_profile_trace_write(&profile->trace, &profile->tally, &profile->process, &written,
                                &ignored);
    hrt_profile_trace_close(&profile->trace);
    free(profile);
}
