// Measurements of a machine, read from files: times of kernels, by their sizes (hecatec --calibrate), and rates of
// links (a program's links --save).
//
// A time between measured sizes is interpolated, linearly in the logarithms of sizes and time. Below the smallest size
// it is that of the smallest, beyond the largest it grows with the work. Deterministic: numbers in, numbers out.
#ifndef HECATE_PASSES_COST_MEASURED_H
#define HECATE_PASSES_COST_MEASURED_H

#include "ir/core/op.h"

enum { HEC_TIMES_AXES = 3, HEC_TIMES_POINTS = 4, HEC_TIMES_CELLS = 64, HEC_MEASURED_NAME = 64 };

// Times over a grid, the last axis innermost.
struct hec_times {
    int length[HEC_TIMES_AXES];                  // 0: not measured. 1 where there is no such axis.
    double at[HEC_TIMES_AXES][HEC_TIMES_POINTS]; // Ascending, positive.
    double us[HEC_TIMES_CELLS];
};

// Kernels that are measured, by the name that the file has for them.
enum hec_timed {
    HEC_TIMED_NN,
    HEC_TIMED_NT,
    HEC_TIMED_TN,
    HEC_TIMED_SDPA,
    HEC_TIMED_SDPA_GRAD,
    HEC_TIMED_KINDS,
};
enum { HEC_TIMED_F32, HEC_TIMED_BF16, HEC_TIMED_FORMS };

struct hec_device_times {
    char device[HEC_MEASURED_NAME]; // The measured device: "avx2, 4 threads".
    struct hec_times kernel[HEC_TIMED_KINDS][HEC_TIMED_FORMS];
    struct hec_times loop; // A loop that reads two arrays and writes one, by elements of 4 bytes.
};

// Rates of a device in one direction, while the other one is as busy; 0: not measured.
struct hec_link_rates {
    double intra_bandwidth, intra_latency; // Bytes/s, seconds.
    double inter_bandwidth, inter_latency; // The rates of a node.
};

// Read the file at `path`. False after a report that names its fault.
bool hec_measured_device(MlirOperation module, const char *path, struct hec_device_times *times);
bool hec_measured_links(MlirOperation module, const char *path, struct hec_link_rates *rates);

// Microseconds at `size`, which has a number for each axis; time grows by `power` of each beyond the grid.
double hec_times_us(const struct hec_times *times, const double size[HEC_TIMES_AXES],
                    const double power[HEC_TIMES_AXES]);

// Microseconds of `op` of a program for `devices`; negative: its kernel was not measured. Products of grouped
// rows cost as a GEMM for each expert of a device, with as many rows each.
double hec_measured_us(const struct hec_device_times *times, MlirOperation op, int64_t devices);

// Microseconds of a loop over `bytes` of memory.
double hec_measured_loop_us(const struct hec_device_times *times, double bytes);

// The best that GEMMs have reached, operations/s; and loops, bytes/s.
double hec_measured_flops(const struct hec_device_times *times);
double hec_measured_bandwidth(const struct hec_device_times *times);

#endif
