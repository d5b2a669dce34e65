// Tensors in memory of a device: the runtime writes and reads it, and numbers of a call lie behind the arena.
#include "codegen/host/memory.h"

#include <inttypes.h>

#include "codegen/host/function.h"
#include "codegen/host/rows.h"
#include "codegen/targets/cuda/ops.h"
#include "ir/accessors.h"
#include "ir/core/setting.h"

static void members(struct hec_emitter *e, struct hec_writer *out) {
    (void)e;
    hec_line(out, "struct hrt_device *device; // The runtime's.");
    hec_line(out, "struct hkc_lane *lane; // Stream of all work on the device; the runtime's.");
}

// The numbers lie side by side, so that one transfer writes them.
static void bind(struct hec_emitter *e, struct hec_writer *out) {
    hec_line(out, "m->scale = (void *)(a + %" PRId64 ");", hec_module_arena_bytes(e->module));
    hec_line(out, "m->auxiliary_scale = m->scale + 1;");
}

static void keep(struct hec_emitter *e, struct hec_writer *out, const char *const *number,
                 int count, const char *cast) {
    const char *list = "", *comma = "";
    for (int i = 0; i < count; i++, comma = ", ")
        list = HEC_TEXT(e, "%s%s%s%s", list, comma, cast, number[i]);
    hec_line(out, "const %s numbers[] = {%s};", e->real, list);
    hec_line(out, "hrt_device_write(m->device, m->%s, numbers, sizeof numbers);", number[0]);
}

static void losses(struct hec_emitter *e, MlirOperation end) {
    const char *list = "", *comma = "";
    for (int i = 0; i < (int)mlirOperationGetNumOperands(end); i++, comma = ", ")
        list = HEC_TEXT(e, "%s%s%s", list, comma, hec_ref(e, hec_operand(end, i)));
    hec_statement(e, "return hrt_device_losses(m->device, (const float *const[]){%s});", list);
}

// The host cannot read the offsets of the experts' rows; the runtime knows the rows.
static void rows(struct hec_emitter *e, MlirOperation op, MlirValue first) {
    (void)first;
    hec_statement(e, "m->rows = hrt_experts_wave_rows(%s, wave);", hec_route_key(e, op));
}

static void fields(struct hec_emitter *e, struct hec_writer *out) {
    hec_line(out,
             ".device = &hrt_device_cuda, .device_offset = offsetof(struct %s, device), "
             ".lane_offset = offsetof(struct %s, lane),",
             e->name, e->name);
    if (hec_setting_is(e->module, HEC_KEY_parallel_states, "host"))
        hec_line(out, ".host_states = true,");
}

const struct hec_memory hec_cuda_memory = {
    .header = "hecate/runtime/device/device.h",
    .pointer = "*",
    .address = "",
    .bytes = 256,
    .members = members,
    .bind = bind,
    .keep = keep,
    .losses = losses,
    .rows = rows,
    .fields = fields,
};
