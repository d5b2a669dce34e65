// order: which operations of streams are ordered by an event or by the host. With SIMT_ORDER=FILE every access of an
// operation to memory that the device reaches is compared with earlier ones of other streams; two that nothing orders
// end the process as a race, whether they met or not. At its end the process writes to FILE.PID, for each wait and each
// event, two accesses that nothing else orders, or that there are none: one run tells what any of them is needed for.
// Kernels have to be built with the race detector's hooks.
#ifndef HECATE_TESTS_SIMT_ORDER_H
#define HECATE_TESTS_SIMT_ORDER_H

#include <memory>
#include <vector>

#include "fiber.h"

namespace simt {

enum { STREAMS_MAX = 16 };

// The operations that are followed: those of each stream up to at[stream].
struct reach_t {
    uint32_t at[STREAMS_MAX] = {};
};

// The same as it would be without one of the waits and events.
struct past_t {
    reach_t all;
    std::vector<reach_t> without; // By their numbers; those not here yet: as `all`.
    int event = -1;               // The number of the event that was recorded here.
};
typedef std::shared_ptr<const past_t> shared_past_t;

// The host, when it asks for something.
struct host_t {
    shared_past_t past; // The operations that it has waited for.
    uint32_t count;     // How often it has asked.
};

bool keeps_order();
host_t host_past();               // It asks for an operation now.
std::vector<void *> calls_here(); // That led here, the innermost first.

// An operation of a stream begins, behind the others of the stream, and the host when it asked for it.
void begin_operation(int stream, const char *what, const host_t &host);
void go_on_with(int stream); // Accesses are those of the stream's last operation.

// An event on a stream. `skipped`: the same event as it was recorded before, which others would follow without this
// one.
shared_past_t record_event(int stream, const shared_past_t &skipped,
                           const std::vector<void *> &calls);
void follow_event(int stream, const shared_past_t &event, const std::vector<void *> &calls);
void host_follows_event(const shared_past_t &event);
void host_follows_stream(
    int stream, bool reads); // Has waited for all of it; `reads`: within a copy to pageable memory.

void note_access(const void *at, size_t bytes, access_t how);
void note_host_access(const void *at, access_t how);
void forget_accesses(const void *at, size_t bytes); // This memory is handed out anew.

} // namespace simt

#endif
