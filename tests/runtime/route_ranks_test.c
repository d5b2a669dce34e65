// Records of forced routing by several ranks: the files are those of one rank that takes all
// sequences. Run by mpirun.
#include "runtime/route/forced.h"

#include <unistd.h>

#include "tests/runtime/ranks_case.h"

enum { POSITIONS = 8, BATCH = 2, ITERATIONS = 2, STEPS = 3, EXPERTS = 4, TOPK = 2 };
enum { LOADS_HEAD = 8 + 5 * 4 };

struct model {
    int64_t batch;
    struct hrt_routing routing[1];
};

static const struct hrt_set set = {.name = "s", .experts = EXPERTS, .topk = TOPK, .layers = 1};
static const struct hrt_loads loads = {.routing_offset = offsetof(struct model, routing)};
static struct hrt_comm world;

// Takes all steps as one of the ranks of `comm`, with `batch` sequences at a time.
static void record(struct hrt_comm *comm, int64_t batch, const char *ids, const char *of_loads) {
    const struct hrt_program program = {
        .positions = POSITIONS, .batch = batch, .sets = 1, .set = &set, .loads = 1, .load = &loads};
    const struct hrt_route_request request = {.route = "zipf:1",
                                              .record_ids = ids,
                                              .record_loads = of_loads,
                                              .seed = 5,
                                              .steps = STEPS,
                                              .batch = batch,
                                              .iterations = ITERATIONS};
    struct model model = {0};
    int32_t count[EXPERTS];
    struct hrt_route route;
    struct hrt_error error;
    RANKS_CHECK(comm, hrt_route_open(&route, &request, &program, comm, &model, count, &error));
    for (int64_t n = 0; n < STEPS * ITERATIONS; n++) {
        const int64_t first = (n * comm->size + comm->rank) * batch;
        RANKS_CHECK(comm, hrt_route_force(&route, n / ITERATIONS, first, &error));
        memset(count, 0, sizeof count);
        for (int64_t p = 0; p < batch * POSITIONS * TOPK; p++) count[model.routing->forced[p]]++;
        hrt_route_record(&route, n % ITERATIONS, first);
        if (n % ITERATIONS == ITERATIONS - 1) hrt_route_end_step(&route);
    }
    hrt_route_finish(&route);
    hrt_route_close(&route);
}

// The loads of each step and microbatch, of all ranks together; every rank's are of all its top-k choices.
static void sum_devices(const char *loads_file, uint32_t devices, int64_t *sum) {
    const uint16_t *row = (const uint16_t *)(loads_file + LOADS_HEAD);
    for (int step = 0; step < STEPS; step++) {
        for (uint32_t d = 0; d < devices; d++) {
            int64_t picks = 0;
            for (int k = 0; k < ITERATIONS * EXPERTS; k++) {
                picks += *row;
                sum[step * ITERATIONS * EXPERTS + k] += *row++;
            }
            RANKS_CHECK(&world,
                        picks * devices == ITERATIONS * BATCH * world.size * POSITIONS * TOPK);
        }
    }
}

static void ranks_record_what_one_would(void **state) {
    (void)state;
    char path[4][64]; // ids and loads of all ranks, and of one. mpirun is every rank's parent.
    for (int i = 0; i < 4; i++)
        snprintf(path[i], sizeof path[i], "/tmp/route_ranks.%ld.%d", (long)getppid(), i);
    record(&world, BATCH, path[0], path[1]);
    if (world.rank > 0) return;

    struct hrt_comm self;
    size_t bytes[4];
    char *file[4];
    hrt_net_comm_open_self(&self);
    record(&self, BATCH * world.size, path[2], path[3]);
    for (int i = 0; i < 4; i++) {
        file[i] = test_read(path[i], &bytes[i]);
        unlink(path[i]);
    }
    RANKS_CHECK(&world, bytes[0] == bytes[2] && memcmp(file[0], file[2], bytes[0]) == 0);
    const uint32_t head[] = {STEPS, 1, (uint32_t)world.size, ITERATIONS, EXPERTS};
    RANKS_CHECK(&world, memcmp(file[1] + 8, head, sizeof head) == 0);
    int64_t sum[2][STEPS * ITERATIONS * EXPERTS] = {0};
    sum_devices(file[1], (uint32_t)world.size, sum[0]);
    sum_devices(file[3], 1, sum[1]);
    RANKS_CHECK(&world, memcmp(sum[0], sum[1], sizeof *sum) == 0);
    for (int i = 0; i < 4; i++) free(file[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_record_what_one_would)};
    ranks_open(&world, NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_net_comm_close(&world);
    return failed;
}
