// A part of a step that asks the device for the same every time: the same kernels, on the same memory, with the same
// numbers. It is recorded once, and then asked for at once, which takes the host a few microseconds in place of some
// for each kernel, and the device less between two kernels.
#ifndef HECATE_RUNTIME_DEVICE_GRAPH_H
#define HECATE_RUNTIME_DEVICE_GRAPH_H

#include "runtime/device/device.h"

// Zeroed: of nothing.
struct hrt_graph {
    struct hrt_device *device;
    void *recorded; // The back end's, or NULL.
    int times;      // Runs of the part by the caller itself.
};

// Whether the device was asked for the part, of which nothing is left to do. If not, the caller asks for it and then
// calls hrt_device_graph_end, without waiting for the device and without marks in between: the first time it is done as
// always, as kernels are loaded then; the second time it is recorded, too.
bool hrt_device_graph_run(struct hrt_graph *graph, struct hrt_device *device);
void hrt_device_graph_end(struct hrt_graph *graph);

void hrt_device_graph_destroy(struct hrt_graph *graph);

#endif
