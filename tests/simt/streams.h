// streams: shared by the fakes of CUDA's runtime and of NCCL. A stream is a queue of operations; nothing runs when
// it is called, but later, when the host waits or calls something else, in an order that a seed chooses.
#ifndef HECATE_TESTS_SIMT_STREAMS_H
#define HECATE_TESTS_SIMT_STREAMS_H

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "order.h"
#include "peers.h"

// An operation in a queue. A step is asked until it says that it is done.
struct operation_t {
    const char *what;
    std::function<bool()> step;
    simt::host_t host; // When it asked for it.
    simt::shared_peers_past_t peers;
    bool begun;
};

struct CUstream_st {
    std::deque<operation_t> queue;
    int number; // From 0 on, in the order in which streams are made.
    std::vector<operation_t> *captured = nullptr; // Where a capture keeps operations, or NULL.
};

// One record of an event; operations that wait for it keep it.
struct mark_t {
    double seconds = 0; // When it was passed, or 0.
    int stream = 0;     // Whose.
    simt::shared_past_t past;
    simt::shared_peers_past_t peers;
};
struct CUevent_st {
    std::shared_ptr<mark_t> mark;
};

struct CUgraph_st {
    std::vector<operation_t> operations;
};
struct CUgraphExec_st {
    std::vector<operation_t> operations;
};

namespace simt {

double now();
void enqueue(cudaStream_t stream, const char *what, std::function<bool()> step);

// Ends the process with a report where a stream is captured: `what` cannot be part of a graph.
void refuse_capture(const char *what);

// `look` is called when the host waits and no stream can go on; it may end the process with a report.
void on_idle(void (*look)());

// Runs operations until `until` holds. Ends the process with a report when nothing can go on.
void drain(const std::function<bool()> &until);

// Memory: one allocation holds all of these bytes, none of them touches any, or they cross an allocation's end.
enum place_t { ON_DEVICE, PINNED, PAGEABLE, BROKEN };
place_t place_of(const void *at, size_t bytes);
void open_to_host(bool open); // With SIMT_PROTECT the host may not touch device memory.
void protect_memory();        // After memory has been added, as it is now.

// Virtual memory (virtual.cpp): its addresses; bytes of memory that has been created; whether pages stand behind
// an access (1: all do, 0: it is elsewhere, -1: one does not); where an address is, for reports; the driver's
// functions by name.
range_t virtual_range();
size_t virtual_bytes();
int virtual_holds(const void *at, size_t bytes);
bool virtual_mixes(const void *at, size_t bytes);
std::string virtual_name(const void *at);
void open_virtual_to_host(bool open);
void *virtual_function(const char *name);
size_t memory_left(); // Bytes of the device that are free.
size_t most_memory(); // The most bytes that were taken at a time.
void count_memory();  // Called when some has been taken.

// Makes the pages of the allocation that begins at `at` a file, which other processes can map; -1: none begins there.
int share_pages(const void *at, size_t *bytes);
// Maps those of another process, of which `bytes` from `offset` on are the allocation. NULL: they cannot be reached.
void *map_pages(const char *path, size_t offset, size_t bytes);
bool unmap_pages(void *at); // False: nothing is mapped there.
// Memory of the host's own that the device reaches.
void register_host(const void *at, size_t bytes);
bool unregister_host(const void *at);
// The number of a word of it, the same in all processes; -1: it lies elsewhere.
long registered_word(const void *at);

} // namespace simt

#endif
