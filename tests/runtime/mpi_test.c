// Test of the back end `mpi`, run by mpirun with 1, 2 and 4 ranks.
#include "tests/runtime/mpi_case.h"

#include <math.h>
#include <time.h>

static struct hrt_comm comm; // MPI starts once per process.

#define CHECK(condition) RANKS_CHECK(&comm, condition)

static void wait_for(struct hrt_request *request) {
    while (!hrt_comm_test(&comm, request)) {
    }
}

static void ranks_are_those_of_the_launcher(void **state) {
    (void)state;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *size = getenv("OMPI_COMM_WORLD_SIZE");
    CHECK(rank && comm.rank == atoi(rank));
    CHECK(size && comm.size == atoi(size));
    CHECK(comm.nodes == 1 && comm.node == 0);
    for (int r = 0; r < comm.size; r++) CHECK(comm.node_of[r] == 0);
}

// Byte i of message `number` from rank r.
static unsigned char byte_of(int r, int number, size_t i) {
    return (unsigned char)(i * 7 + i / 251 + (size_t)r * 31 + (size_t)number * 101);
}

static void messages_of_any_length_arrive_in_order(void **state) {
    (void)state;
    enum { MESSAGES = 4 };
    const size_t bytes[MESSAGES] = {0, 1, (3u << 20) + 5, 1u << 20};
    const int to = (comm.rank + 1) % comm.size, from = (comm.rank + comm.size - 1) % comm.size;
    struct hrt_request send[MESSAGES], recv[MESSAGES];
    unsigned char *out[MESSAGES], *in[MESSAGES];
    for (int m = 0; m < MESSAGES; m++) {
        out[m] = malloc(bytes[m] + 1);
        in[m] = malloc(bytes[m] + 1);
        for (size_t i = 0; i < bytes[m]; i++) out[m][i] = byte_of(comm.rank, m, i);
        hrt_comm_irecv(&comm, &recv[m], from, 5, in[m], bytes[m]);
    }
    for (int m = 0; m < MESSAGES; m++) hrt_comm_isend(&comm, &send[m], to, 5, out[m], bytes[m]);
    for (int m = MESSAGES - 1; m >= 0; m--) {
        wait_for(&send[m]);
        wait_for(&recv[m]);
        for (size_t i = 0; i < bytes[m]; i++) CHECK(in[m][i] == byte_of(from, m, i));
        free(out[m]);
        free(in[m]);
    }
}

static void tags_keep_messages_apart(void **state) {
    (void)state;
    const int to = (comm.rank + 1) % comm.size, from = (comm.rank + comm.size - 1) % comm.size;
    struct hrt_request send[2], recv[2];
    const int out[2] = {comm.rank, comm.rank + 1000};
    int in[2] = {-1, -1};
    hrt_comm_isend(&comm, &send[0], to, 0, &out[0], sizeof *out);
    hrt_comm_isend(&comm, &send[1], to, 1, &out[1], sizeof *out);
    hrt_comm_irecv(&comm, &recv[1], from, 1, &in[1], sizeof *in);
    hrt_comm_barrier(&comm); // Its own messages do not meet these.
    hrt_comm_irecv(&comm, &recv[0], from, 0, &in[0], sizeof *in);
    for (int i = 0; i < 2; i++) {
        wait_for(&send[i]);
        wait_for(&recv[i]);
    }
    CHECK(in[0] == from && in[1] == from + 1000);
}

// The caller computes, which here is sleep, and does not touch the messages until they are there.
static void messages_advance_behind_the_caller(void **state) {
    (void)state;
    const size_t bytes = 32u << 20;
    const int to = (comm.rank + 1) % comm.size, from = (comm.rank + comm.size - 1) % comm.size;
    char *out = malloc(bytes), *in = calloc(bytes, 1);
    memset(out, comm.rank + 1, bytes);
    struct hrt_request send, recv;
    hrt_comm_irecv(&comm, &recv, from, 9, in, bytes);
    hrt_comm_isend(&comm, &send, to, 9, out, bytes);
    int looks = 1;
    for (; looks < 600; looks++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        if (*(volatile char *)&in[bytes - 1] == from + 1) break;
    }
    CHECK(looks < 600);
    wait_for(&send);
    wait_for(&recv);
    for (size_t i = 0; i < bytes; i += 4096) CHECK(in[i] == from + 1);
    free(out);
    free(in);
}

// Rank r sends 3 * (p + 2 r) % 7 elements to p: every count differs, some are 0.
static size_t elements(int from, int to) {
    return (size_t)(3 * (to + 2 * from) % 7);
}

static void all_to_all_takes_uneven_parts(void **state) {
    (void)state;
    enum { MOST = 64 };
    size_t send_bytes[MOST], send_offset[MOST], recv_bytes[MOST], recv_offset[MOST];
    int out[MOST * 7], in[MOST * 7 + 1];
    size_t sent = 1, received = 0; // Offsets need not start at 0.
    CHECK(comm.size < MOST);
    for (int p = 0; p < comm.size; p++) {
        send_bytes[p] = elements(comm.rank, p) * sizeof *out;
        recv_bytes[p] = elements(p, comm.rank) * sizeof *in;
        send_offset[p] = sent * sizeof *out;
        recv_offset[p] = received * sizeof *in;
        for (size_t i = 0; i < elements(comm.rank, p); i++)
            out[sent++] = comm.rank * 10000 + p * 100 + (int)i;
        received += elements(p, comm.rank);
    }
    in[received] = -1;
    hrt_comm_all_to_all(&comm, in, out,
                        &(struct hrt_exchange){send_bytes, send_offset, recv_bytes, recv_offset});
    const int *at = in;
    for (int p = 0; p < comm.size; p++) {
        for (size_t i = 0; i < elements(p, comm.rank); i++)
            CHECK(*at++ == p * 10000 + comm.rank * 100 + (int)i);
    }
    CHECK(*at == -1);
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
        hrt_comm_all_reduce(&comm, data, count, HRT_FLOAT);
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
    hrt_comm_all_reduce(&comm, real, COUNT, HRT_DOUBLE);
    hrt_comm_all_reduce(&comm, whole, COUNT, HRT_INT64);
    for (int64_t i = 0; i < COUNT; i++) {
        double sum = value_of(0, i);
        for (int r = 1; r < comm.size; r++) sum += value_of(r, i);
        CHECK(memcmp(&sum, &real[i], sizeof sum) == 0);
        CHECK(whole[i] == ((int64_t)1 << 40) * comm.size * (comm.size + 1) / 2 + i * comm.size);
    }
    double minus_zero = -0.0;
    hrt_comm_all_reduce(&comm, &minus_zero, 1, HRT_DOUBLE);
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
    hrt_comm_barrier(&comm);
    const double left = seconds();
    hrt_comm_all_reduce(&comm, &came, 1, HRT_DOUBLE); // The others add 0.
    CHECK(left >= came);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_those_of_the_launcher),
        cmocka_unit_test(messages_of_any_length_arrive_in_order),
        cmocka_unit_test(tags_keep_messages_apart),
        cmocka_unit_test(messages_advance_behind_the_caller),
        cmocka_unit_test(all_to_all_takes_uneven_parts),
        cmocka_unit_test(sum_has_the_bits_of_adding_in_the_order_of_ranks),
        cmocka_unit_test(sums_of_doubles_and_integers),
        cmocka_unit_test(nobody_passes_a_barrier_before_the_last_one_comes),
    };
    ranks_open(&comm, NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_comm_close(&comm);
    return failed;
}
