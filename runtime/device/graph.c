// Parts of a step that are recorded the second time.
#include "runtime/device/graph.h"

enum { RECORDED_AT = 2 };

bool hrt_device_graph_run(struct hrt_graph *graph, struct hrt_device *device) {
    graph->device = device;
    if (graph->recorded) {
        device->backend->replay(device, graph->recorded);
        return true;
    }
    if (device->records && ++graph->times == RECORDED_AT) device->backend->record(device);
    return false;
}

void hrt_device_graph_end(struct hrt_graph *graph) {
    struct hrt_device *device = graph->device;
    if (graph->times != RECORDED_AT) return;
    graph->recorded = device->backend->recorded(device);
    device->backend->replay(device, graph->recorded);
}

void hrt_device_graph_destroy(struct hrt_graph *graph) {
    if (graph->recorded) graph->device->backend->forget(graph->device, graph->recorded);
    *graph = (struct hrt_graph){0};
}
