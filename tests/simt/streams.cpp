// Streams and events. An operation runs when the host waits or calls something else: as late as possible in the fixed
// order, else in any order that streams and events allow, so that a missing event shows.
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace simt {

enum : useconds_t { PAUSE = 20, LONGEST_PAUSE = 320 }; // Microseconds.

static std::vector<cudaStream_t> streams;
static double last_progress;
static void (*idle)();

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Whether the next operation of a stream is done. Device memory is open.
static bool go_on(CUstream_st &stream) {
    operation_t &operation = stream.queue.front();
    if (!operation.begun) {
        if (keeps_order()) begin_operation(stream.number, operation.what, operation.host);
        begin_peers_operation(stream.number, operation.peers);
        operation.begun = true;
    }
    go_on_with(stream.number);
    return operation.step();
}

// One operation of one stream, if any can go on. One stream runs ahead for a while, the youngest in the fixed order.
static bool run_one() {
    static size_t ahead;
    const size_t count = streams.size();
    if (count == 0) return false;
    if (!is_seeded()) {
        ahead = count - 1;
    } else if (ahead >= count || chance(12) == 1) {
        ahead = chance((uint32_t)count);
    }
    for (size_t i = 0; i < count; i++) {
        cudaStream_t stream = streams[(ahead + i) % count];
        if (stream->queue.empty()) continue;
        const bool done = go_on(*stream);
        if (!done) continue;
        stream->queue.pop_front();
        last_progress = now();
        return true;
    }
    return false;
}

// While the host looks whether something is done.
static void run_for_a_look() {
    open_to_host(true);
    const bool ran = run_one();
    open_to_host(false);
    if (!ran) usleep(PAUSE);
}

static void report_standstill() {
    for (const cudaStream_t stream : streams) {
        if (stream->queue.empty()) continue;
        fprintf(stderr, "simt: stream %p stands at %s, %zu operations behind it\n", (void *)stream,
                stream->queue.front().what, stream->queue.size() - 1);
    }
    fail("streams stand still");
}

void on_idle(void (*look)()) {
    idle = look;
}

void drain(const std::function<bool()> &until) {
    static const char *deadline = getenv("SIMT_DEADLINE");
    const double limit = deadline ? atof(deadline) : 20;
    refuse_capture("a wait of the host");
    last_progress = now();
    useconds_t pause = PAUSE;
    bool open =
        false; // For as long as the host waits: opening takes longer than many an operation.
    while (!until()) {
        if (!open) open_to_host(open = true);
        if (run_one()) {
            pause = PAUSE;
            continue;
        }
        if (idle) idle();
        if (now() - last_progress > limit) report_standstill();
        usleep(pause); // Another process, which may need the processor, has to go on.
        pause = std::min<useconds_t>(2 * pause, LONGEST_PAUSE);
    }
    if (open) open_to_host(false);
}

// With SIMT_CALLS the process says at its end how often the host called, how many operations that were, and how much
// memory of the device it had at most.
static long calls, operations, pageable;

static void report_calls() {
    fprintf(
        stderr,
        "simt: %ld operations, asked for by %ld calls, %ld of pageable memory; %zu bytes of the "
        "device at most\n",
        operations, calls, pageable, most_memory());
}

static void count_call() {
    static const char *asked = getenv("SIMT_CALLS");
    if (asked && calls == 0) atexit(report_calls);
    calls++;
}

void refuse_capture(const char *what) {
    for (const cudaStream_t stream : streams) {
        if (stream->captured) fail("%s while stream %d is captured", what, stream->number);
    }
}

static void append(cudaStream_t stream, const char *what, std::function<bool()> step) {
    operations++;
    stream->queue.push_back({what, std::move(step), host_past(), peers_host(), false});
}

void enqueue(cudaStream_t stream, const char *what, std::function<bool()> step) {
    if (!stream) fail("%s on the default stream: use one of your own", what);
    count_call();
    if (stream->captured) {
        stream->captured->push_back({what, std::move(step), {}, {}, false});
        return;
    }
    append(stream, what, std::move(step));
    uint32_t n = chance(4);
    if (n == 0) return;
    open_to_host(true);
    while (n > 0 && run_one()) n--;
    open_to_host(false);
}

cudaError_t submit(cudaStream_t stream, const char *name, dim3 grid, dim3 block,
                   size_t shared_bytes, call_t *call, const void *arguments) {
    if (in_kernel()) fail("a launch inside of a kernel");
    const unsigned char *bytes = (const unsigned char *)arguments;
    const std::vector<unsigned char> kept(bytes, bytes + ARGUMENTS_MAX);
    enqueue(stream, name, [=] {
        run_grid(name, grid, block, shared_bytes, call, kept.data());
        return true;
    });
    return cudaSuccess;
}

// Checks one end of a copy: pageable memory only of the host, at the host's end.
static void check_end(const void *at, size_t bytes, bool of_device, const char *what) {
    const place_t place = place_of(at, bytes);
    if (place == BROKEN) fail("%s: %zu bytes at %p cross an allocation's end", what, bytes, at);
    if (of_device && place == PAGEABLE) fail("%s: %p is not on the device", what, at);
    if (!of_device && place == ON_DEVICE) fail("%s: %p is on the device", what, at);
}

// No copy is promised to know pages of the device from those of the host.
static void check_home(const void *at, size_t bytes, const char *what) {
    if (virtual_mixes(at, bytes))
        fail("%s: %zu bytes at %p are partly of the device, partly of the host", what, bytes, at);
}

// SIMT_UNORDERED=A:B plants a fault: stream A does not wait for events of stream B.
static bool is_waited_for(int waiting, int recorded) {
    static const char *fault = getenv("SIMT_UNORDERED");
    int a, b;
    return !fault || sscanf(fault, "%d:%d", &a, &b) != 2 || a != waiting || b != recorded;
}

} // namespace simt

using simt::enqueue;

extern "C" {

// Pageable sources are read, and pageable targets written, before the call returns; others when the copy runs.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    if (bytes == 0) return cudaSuccess;
    simt::check_home(to, bytes, "cudaMemcpyAsync, target");
    simt::check_home(from, bytes, "cudaMemcpyAsync, source");
    if (kind != cudaMemcpyDefault) {
        const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
        const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
        simt::check_end(to, bytes, to_device, "cudaMemcpyAsync, target");
        simt::check_end(from, bytes, from_device, "cudaMemcpyAsync, source");
    }
    if (simt::place_of(from, bytes) == simt::PAGEABLE) {
        simt::refuse_capture("a copy of pageable memory");
        simt::pageable++;
        const std::vector<char> staged((const char *)from, (const char *)from + bytes);
        enqueue(stream, "a copy of pageable memory", [=] {
            simt::note_access(to, bytes, simt::WRITE);
            memcpy(to, staged.data(), bytes);
            return true;
        });
    } else {
        enqueue(stream, "a copy", [=] {
            simt::note_access(from, bytes, simt::READ);
            simt::note_access(to, bytes, simt::WRITE);
            memmove(to, from, bytes);
            return true;
        });
    }
    if (simt::place_of(to, bytes) == simt::PAGEABLE) {
        simt::drain([=] { return stream->queue.empty(); });
        if (simt::keeps_order()) simt::host_follows_stream(stream->number, true);
        simt::host_follows_peers(simt::peers_past(stream->number));
    }
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    if (bytes == 0) return cudaSuccess;
    simt::check_home(to, bytes, "cudaMemsetAsync");
    simt::check_end(to, bytes, true, "cudaMemsetAsync");
    enqueue(stream, "a memset", [=] {
        simt::note_access(to, bytes, simt::WRITE);
        memset(to, value, bytes);
        return true;
    });
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    static int made;
    *stream = new CUstream_st{{}, made++};
    simt::streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int) {
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    simt::drain([=] { return stream->queue.empty(); });
    if (simt::keeps_order()) simt::host_follows_stream(stream->number, false);
    simt::host_follows_peers(simt::peers_past(stream->number));
    return cudaSuccess;
}

// SIMT_FAIL=N plants a fault: the device has failed when the host looks at a stream or an event for the N-th time.
static bool has_failed(void) {
    static const char *look = getenv("SIMT_FAIL");
    static int looks;
    return look && looks++ >= atoi(look);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    simt::refuse_capture("a look at a stream");
    if (has_failed()) return cudaErrorIllegalAddress;
    if (stream->queue.empty()) {
        if (simt::keeps_order()) simt::host_follows_stream(stream->number, false);
        simt::host_follows_peers(simt::peers_past(stream->number));
        return cudaSuccess;
    }
    simt::run_for_a_look();
    return cudaErrorNotReady;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    cudaStreamSynchronize(stream);
    for (size_t i = 0; i < simt::streams.size(); i++) {
        if (simt::streams[i] == stream) simt::streams.erase(simt::streams.begin() + (long)i);
    }
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    for (const cudaStream_t stream : simt::streams) cudaStreamSynchronize(stream);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    *event = new CUevent_st;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    simt::refuse_capture("an event");
    const std::shared_ptr<mark_t> before = event->mark, mark = std::make_shared<mark_t>();
    const std::vector<void *> calls = simt::calls_here();
    mark->stream = stream->number;
    event->mark = mark;
    enqueue(stream, "an event", [=] {
        mark->seconds = simt::now();
        mark->peers = simt::peers_past(stream->number);
        if (simt::keeps_order())
            mark->past = simt::record_event(stream->number, before ? before->past : NULL, calls);
        return true;
    });
    return cudaSuccess;
}

// An event that was never recorded is not waited for.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    simt::refuse_capture("a wait for an event");
    const std::shared_ptr<mark_t> mark = event->mark;
    if (!mark || !simt::is_waited_for(stream->number, mark->stream)) return cudaSuccess;
    const std::vector<void *> calls = simt::calls_here();
    enqueue(stream, "a wait for an event", [=] {
        if (mark->seconds == 0) return false;
        if (mark->past) simt::follow_event(stream->number, mark->past, calls);
        simt::follow_peers(stream->number, mark->peers);
        return true;
    });
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    const std::shared_ptr<mark_t> mark = event->mark;
    if (!mark) return cudaSuccess;
    simt::drain([=] { return mark->seconds != 0; });
    simt::host_follows_event(mark->past);
    simt::host_follows_peers(mark->peers);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (has_failed()) return cudaErrorIllegalAddress;
    if (event->mark && event->mark->seconds == 0) {
        simt::run_for_a_look();
        return cudaErrorNotReady;
    }
    if (event->mark) simt::host_follows_event(event->mark->past);
    if (event->mark) simt::host_follows_peers(event->mark->peers);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    *milliseconds = (float)((to->mark->seconds - from->mark->seconds) * 1e3);
    return cudaSuccess;
}

// Graphs of what one stream was asked for: launched, that runs as often as one likes, with the arguments of then.

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    if (stream->captured) simt::fail("stream %d is captured twice", stream->number);
    stream->captured = new std::vector<operation_t>;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    if (!stream->captured) simt::fail("stream %d is not captured", stream->number);
    *graph = new CUgraph_st{std::move(*stream->captured)};
    delete stream->captured;
    stream->captured = nullptr;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ready, cudaGraph_t graph, unsigned long long) {
    *ready = new CUgraphExec_st{graph->operations};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream) {
    simt::refuse_capture("a launch of a graph");
    simt::count_call();
    for (const operation_t &operation : ready->operations) {
        simt::append(stream, operation.what, operation.step);
    }
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready) {
    cudaDeviceSynchronize(); // Its launches may still run.
    delete ready;
    return cudaSuccess;
}
}
