// Unit test of runtime/base/world: launchers' variables and topology files.
#include "runtime/base/world.h"

#include "runtime/net/backend.h"
#include "runtime/net/comm.h"
#include "tests/runtime/support/case.h"

static void forget_launchers(void) {
    static const char *const names[] = {
        "RANK",
        "HECATE_RANK",
        "HECATE_RANKS",
        "HECATE_LOCAL_RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "MASTER_ADDR",
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_LOCALID",
        "SLURM_STEP_ID",
        "HECATE_TOPOLOGY",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
}

static void expect_world(const char *launcher, int rank, int size, int local_rank) {
    struct hrt_world world;
    struct hrt_error error = {0};
    assert_true(hrt_base_world_find(&world, &error));
    if (launcher) {
        assert_string_equal(world.launcher, launcher);
    } else {
        assert_null(world.launcher);
    }
    assert_int_equal(world.rank, rank);
    assert_int_equal(world.size, size);
    assert_int_equal(world.local_rank, local_rank);
}

static void the_innermost_launcher_counts(void **state) {
    (void)state;
    forget_launchers();
    expect_world(NULL, 0, 1, 0);
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_NTASKS", "8", 1);
    setenv("SLURM_LOCALID", "0", 1);
    expect_world(NULL, 0, 1, 0); // Not in a step: the login shell of an allocation.
    setenv("SLURM_STEP_ID", "4294967291", 1);
    expect_world(NULL, 0, 1, 0); // The batch script.
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_PROCID", "5", 1);
    setenv("SLURM_LOCALID", "1", 1);
    expect_world("srun", 5, 8, 1);
    setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "2", 1);
    expect_world("mpirun", 2, 4, 2);
    setenv("RANK", "9", 1);
    setenv("WORLD_SIZE", "16", 1);
    setenv("LOCAL_RANK", "1", 1);
    expect_world("mpirun", 2, 4, 2); // RANK alone may be anybody's.
    setenv("MASTER_ADDR", "n0", 1);
    expect_world("torchrun", 9, 16, 1);
    setenv("HECATE_RANK", "3", 1);
    setenv("HECATE_RANKS", "4", 1);
    expect_world("HECATE_RANKS", 3, 4, -1); // The number on its machine is unknown.
    setenv("HECATE_LOCAL_RANK", "2", 1);
    expect_world("HECATE_RANKS", 3, 4, 2);
    forget_launchers();
}

static void expect_wrong(const char *text) {
    struct hrt_world world;
    struct hrt_error error = {0};
    const bool found = hrt_base_world_find(&world, &error);
    test_expect_error(found, &error, HRT_EXIT_USAGE, text);
}

static void wrong_variables_are_named(void **state) {
    (void)state;
    forget_launchers();
    setenv("OMPI_COMM_WORLD_RANK", "4", 1);
    expect_wrong("the launcher set no OMPI_COMM_WORLD_SIZE");
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "four", 1);
    expect_wrong("OMPI_COMM_WORLD_SIZE is 'four', which is not a number of ranks");
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    expect_wrong("OMPI_COMM_WORLD_RANK is 4, but OMPI_COMM_WORLD_SIZE is 4");
    setenv("OMPI_COMM_WORLD_RANK", "99999999999999999999", 1);
    expect_wrong("OMPI_COMM_WORLD_RANK is '99999999999999999999', which is not a number of ranks");
    forget_launchers();
}

static void an_empty_variable_names_no_topology(void **state) {
    (void)state;
    forget_launchers();
    assert_null(hrt_base_topology_path());
    setenv("HECATE_TOPOLOGY", "", 1);
    assert_null(hrt_base_topology_path());
    setenv("HECATE_TOPOLOGY", "nodes", 1);
    assert_string_equal(hrt_base_topology_path(), "nodes");
    forget_launchers();
}

static void a_topology_assigns_every_rank(void **state) {
    (void)state;
    const char text[] = "# three nodes\n  0-2 6\n\n3 5 # and\n4\t7";
    const int32_t expected[8] = {0, 0, 0, 1, 2, 1, 0, 2};
    int32_t node_of[8];
    int nodes;
    struct hrt_error error = {0};
    test_write("topology", text, sizeof text - 1);
    assert_true(hrt_base_topology_read("topology", 8, node_of, &nodes, &error));
    assert_int_equal(nodes, 3);
    assert_memory_equal(node_of, expected, sizeof expected);
}

static void expect_bad_topology(const char *text, const char *message) {
    int32_t node_of[4];
    int nodes;
    struct hrt_error error = {0};
    test_write("topology", text, strlen(text));
    const bool read = hrt_base_topology_read("topology", 4, node_of, &nodes, &error);
    test_expect_error(read, &error, HRT_EXIT_USAGE, message);
}

static void bad_topologies_are_refused_with_their_line(void **state) {
    (void)state;
    expect_bad_topology("0-1\n1-3\n", "topology:2: rank 1 is in a node already");
    expect_bad_topology("0-2\n", "topology: rank 3 is in no node");
    expect_bad_topology("", "topology: rank 0 is in no node");
    const char *const words[] = {"4", "0-4", "3-1",   "-1", "1-",
                                 "x", "1x",  "0-1-2", "+1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char text[64], message[128];
        snprintf(text, sizeof text, "# ranks\n%s\n", words[i]);
        snprintf(message, sizeof message,
                 "topology:2: '%s' is neither a rank below 4 nor a range of them", words[i]);
        expect_bad_topology(text, message);
    }
    int32_t node_of[4];
    int nodes;
    struct hrt_error error = {0};
    const bool read = hrt_base_topology_read("missing", 4, node_of, &nodes, &error);
    test_expect_error(read, &error, HRT_EXIT_USAGE,
                      "cannot read missing: No such file or directory");
}

static void a_program_of_one_rank_refuses_to_be_one_of_several(void **state) {
    (void)state;
    struct hrt_comm comm;
    struct hrt_error error = {0};
    forget_launchers();
    assert_true(hrt_net_comm_self.open(&comm, NULL, &error));
    assert_int_equal(comm.size, 1);
    hrt_net_comm_close(&comm);

    test_write("topology", "0\n1\n", 4);
    const bool placed = hrt_net_comm_self.open(&comm, "topology", &error);
    test_expect_error(placed, &error, HRT_EXIT_USAGE,
                      "topology:2: '1' is neither a rank below 1 nor a range of them");

    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_PROCID", "1", 1);
    setenv("SLURM_NTASKS", "2", 1);
    setenv("SLURM_LOCALID", "1", 1);
    const bool opened = hrt_net_comm_self.open(&comm, NULL, &error);
    test_expect_error(opened, &error, HRT_EXIT_USAGE,
                      "srun started 2 ranks, but the program was compiled for one (see "
                      "cluster.nodes and cluster.devices)");
    forget_launchers();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_innermost_launcher_counts),
        cmocka_unit_test(wrong_variables_are_named),
        cmocka_unit_test(an_empty_variable_names_no_topology),
        cmocka_unit_test(a_topology_assigns_every_rank),
        cmocka_unit_test(bad_topologies_are_refused_with_their_line),
        cmocka_unit_test(a_program_of_one_rank_refuses_to_be_one_of_several),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
