// The machine a module is compiled for, and how long operations take on it.
#ifndef HECATE_PASSES_COST_MACHINE_H
#define HECATE_PASSES_COST_MACHINE_H

#include "passes/cost/measured.h"

enum { HEC_DEVICE_NAME = 32 };

// Rates come from the user's settings, or from an assumption where there is no setting: then the bit of the first
// field of a pair is set in `assumed`.
struct hec_machine {
    int64_t nodes, devices; // Devices of one node.
    char device[HEC_DEVICE_NAME];
    double flops, memory_bandwidth, memory; // One device's: 1/s, bytes/s, bytes.
    double intra_bandwidth, intra_latency;  // Bytes/s per device and direction; seconds.
    double inter_bandwidth, inter_latency;  // Bytes/s per node and direction.
    double host_bandwidth;                  // Bytes/s between a device and its host, each way.
    bool states_on_host;                    // The optimizer's states lie behind that link,
    bool masters_on_host;                   // and experts' parameters that GEMMs read copies of.
    bool assumed_device, assumed_links;     // Some of these rates have no setting.
    bool measured_device, measured_intra, measured_inter; // By files that the settings name.
    struct hec_device_times times;                        // Where the device was measured.
};

// The machine of the module's settings. False after a report: a file of measurements cannot be read.
bool hec_machine_of(MlirOperation module, struct hec_machine *machine);

// The assumed fraction of `flops` that GEMMs reach, of `memory_bandwidth` that loops over memory reach, and of links
// that transfers reach. They hold where there is no measurement; a report names them.
extern const double hec_reached_of_flops, hec_reached_of_bandwidth, hec_reached_of_link;

// Bytes/s that the transfers of a device, or of a node, reach.
double hec_intra_rate(const struct hec_machine *machine);
double hec_inter_rate(const struct hec_machine *machine);

// Microseconds of a loop over `bytes` of memory.
double hec_loop_us(const struct hec_machine *machine, double bytes);

// Microseconds of one execution: as measured; else arithmetic or memory, whichever takes longer.
double hec_op_us(const struct hec_machine *machine, MlirOperation op);

// Microseconds of the operations behind `from` (null: from the start of `block`) and before `to`
// (null: to its end). Loops over layers count as often as they run. Operations on the rows of a wave do
// not count: their time depends on the loads.
double hec_span_us(const struct hec_machine *machine, MlirBlock block, MlirOperation from,
                   MlirOperation to);

// Iterations of a step: train.tokens over those of an iteration.
int64_t hec_step_iterations(MlirOperation module, const struct hec_machine *machine);

#endif
