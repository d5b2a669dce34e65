// Streams of the emulator: a missing dependency between them shows under some seed, and never where it is there.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cuda_runtime_api.h>

void simt_seed(uint64_t seed);

enum { COUNT = 64, SEEDS = 40 };

static void check(cudaError_t error) {
    assert_int_equal(error, cudaSuccess);
}

// One stream writes, another reads: returns the value that the reader has seen.
static int what_is_read(uint64_t seed, bool with_event) {
    cudaStream_t writer, reader;
    cudaEvent_t written;
    void *device, *pinned;
    simt_seed(seed);
    check(cudaStreamCreateWithFlags(&writer, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&reader, cudaStreamNonBlocking));
    check(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
    check(cudaMalloc(&device, COUNT));
    check(cudaMallocHost(&pinned, COUNT));
    check(cudaMemsetAsync(device, 1, COUNT, writer));
    check(cudaMemsetAsync(device, 7, COUNT, writer));
    check(cudaEventRecord(written, writer));
    if (with_event) check(cudaStreamWaitEvent(reader, written, 0));
    check(cudaMemcpyAsync(pinned, device, COUNT, cudaMemcpyDeviceToHost, reader));
    check(cudaStreamSynchronize(reader));
    const int seen = ((const unsigned char *)pinned)[COUNT - 1];
    check(cudaStreamSynchronize(writer));
    check(cudaEventQuery(written));
    check(cudaEventDestroy(written));
    check(cudaStreamDestroy(writer));
    check(cudaStreamDestroy(reader));
    check(cudaFree(device));
    check(cudaFreeHost(pinned));
    return seen;
}

static void an_event_orders_two_streams(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        assert_int_equal(what_is_read(seed, true), 7);
    }
}

static void a_missing_event_shows(void **state) {
    (void)state;
    assert_int_not_equal(what_is_read(0, false), 7); // The youngest stream runs ahead.
    int right = 0;
    for (uint64_t seed = 1; seed < SEEDS; seed++) right += what_is_read(seed, false) == 7;
    assert_in_range(right, 1, SEEDS - 2);
}

// Pinned memory is read when the copy runs, pageable memory when it is asked for.
static void copies_read_when_they_run(void **state) {
    (void)state;
    unsigned char pageable[COUNT], seen[2 * COUNT];
    void *pinned, *device;
    cudaStream_t stream;
    simt_seed(0);
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaMallocHost(&pinned, COUNT));
    check(cudaMalloc(&device, 2 * COUNT));
    memset(pageable, 3, COUNT);
    memset(pinned, 3, COUNT);
    check(cudaMemcpyAsync(device, pageable, COUNT, cudaMemcpyHostToDevice, stream));
    check(cudaMemcpyAsync((char *)device + COUNT, pinned, COUNT, cudaMemcpyHostToDevice, stream));
    memset(pageable, 4, COUNT);
    memset(pinned, 4, COUNT);
    check(cudaMemcpyAsync(seen, device, sizeof seen, cudaMemcpyDeviceToHost, stream));
    assert_int_equal(seen[0], 3);
    assert_int_equal(seen[COUNT], 4);
    check(cudaStreamDestroy(stream));
    check(cudaFree(device));
    check(cudaFreeHost(pinned));
}

// A graph runs as often as it is launched, in the order of the stream, and not when it is captured.
static void a_graph_runs_when_it_is_launched(void **state) {
    (void)state;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    void *device, *pinned;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaMalloc(&device, 4));
    check(cudaMallocHost(&pinned, 4));
    unsigned char *seen = pinned;
    memset(seen, 0, 4);
    check(cudaMemsetAsync(device, 1, 4, stream));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    check(cudaMemcpyAsync(seen, device, 2, cudaMemcpyDeviceToHost, stream));
    check(cudaMemsetAsync(device, 2, 4, stream));
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&ready, graph, 0));
    check(cudaGraphDestroy(graph));
    check(cudaStreamSynchronize(stream));
    assert_int_equal(seen[0], 0);
    for (int i = 0; i < 3; i++) {
        check(cudaMemsetAsync(device, 5 + i, 1, stream));
        check(cudaGraphLaunch(ready, stream));
    }
    check(cudaGraphExecDestroy(ready));
    assert_int_equal(seen[0], 7);
    assert_int_equal(seen[1], 2);
    check(cudaStreamDestroy(stream));
    check(cudaFree(device));
    check(cudaFreeHost(pinned));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_orders_two_streams),
        cmocka_unit_test(a_missing_event_shows),
        cmocka_unit_test(a_graph_runs_when_it_is_launched),
        cmocka_unit_test(copies_read_when_they_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
