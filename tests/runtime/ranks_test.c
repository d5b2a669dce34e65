// Test of the back ends `mpi` and `tcp`, run with 1, 2 and 4 ranks.
#include "tests/runtime/ranks_case.h"

#include <math.h>
#include <time.h>

#include "runtime/base/world.h"

static struct hrt_comm comm; // Ranks join once per process.

#define CHECK(condition) RANKS_CHECK(&comm, condition)

static void ranks_are_those_of_the_launcher(void **state) {
    (void)state;
    struct hrt_world world;
    struct hrt_error error;
    CHECK(hrt_base_world_find(&world, &error) && world.launcher);
    CHECK(comm.rank == world.rank && comm.size == world.size);
    CHECK(comm.nodes == 1 && comm.node == 0);
    for (int r = 0; r < comm.size; r++) CHECK(comm.node_of[r] == 0);
}

// Values whose sum depends on the order in which they are added.
static double value_of(int rank, int64_t i) {
    return sin((double)(i % 9973) + 3.7 * rank) * pow(10, (double)((rank * 5 + i) % 13) - 6);
}

static void sum_has_the_bits_of_adding_in_the_order_of_ranks(void **state) {
    (void)state;
    const int64_t counts[] = {0, 1, 3, 1024, 1025, 70001, 2200003}; // The last one: two rounds.
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const int64_t count = counts[c];
        float *data = malloc((size_t)count * sizeof *data + 1);
        for (int64_t i = 0; i < count; i++) data[i] = (float)value_of(comm.rank, i);
        hrt_net_comm_all_reduce(&comm, data, count, HRT_FLOAT);
        for (int64_t i = 0; i < count; i++) {
            float sum = (float)value_of(0, i);
            for (int r = 1; r < comm.size; r++) sum += (float)value_of(r, i);
            CHECK(memcmp(&sum, &data[i], sizeof sum) == 0);
        }
        free(data);
    }
}

static void sums_of_doubles_and_integers(void **state) {
    (void)state;
    enum { COUNT = 5000 };
    static double real[COUNT];
    static int64_t whole[COUNT];
    for (int64_t i = 0; i < COUNT; i++) {
        real[i] = value_of(comm.rank, i);
        whole[i] = ((int64_t)1 << 40) * (comm.rank + 1) + i;
    }
    hrt_net_comm_all_reduce(&comm, real, COUNT, HRT_DOUBLE);
    hrt_net_comm_all_reduce(&comm, whole, COUNT, HRT_INT64);
    for (int64_t i = 0; i < COUNT; i++) {
        double sum = value_of(0, i);
        for (int r = 1; r < comm.size; r++) sum += value_of(r, i);
        CHECK(memcmp(&sum, &real[i], sizeof sum) == 0);
        CHECK(whole[i] == ((int64_t)1 << 40) * comm.size * (comm.size + 1) / 2 + i * comm.size);
    }
    double minus_zero = -0.0;
    hrt_net_comm_all_reduce(&comm, &minus_zero, 1, HRT_DOUBLE);
    CHECK(signbit(minus_zero));
}

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void nobody_passes_a_barrier_before_the_last_one_comes(void **state) {
    (void)state;
    double came = 0;
    if (comm.rank == comm.size - 1) {
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        came = seconds();
    }
    hrt_net_comm_barrier(&comm);
    const double left = seconds();
    hrt_net_comm_all_reduce(&comm, &came, 1, HRT_DOUBLE); // The others add 0.
    CHECK(left >= came);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_those_of_the_launcher),
        cmocka_unit_test(sum_has_the_bits_of_adding_in_the_order_of_ranks),
        cmocka_unit_test(sums_of_doubles_and_integers),
        cmocka_unit_test(nobody_passes_a_barrier_before_the_last_one_comes),
    };
    ranks_open(&comm, NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_net_comm_close(&comm);
    return failed;
}
