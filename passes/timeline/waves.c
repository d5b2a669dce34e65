// Rows of a wave.
#include "passes/timeline/traffic.h"

double hec_traffic_rows(const struct hec_mover *m, const struct hec_traffic *t, int32_t device,
                        int64_t wave) {
    const double room = (double)m->cost->wave_rows, left = t->load[device] - (double)wave * room;
    return left <= 0 ? 0 : left < room || wave == t->waves - 1 ? left : room;
}
