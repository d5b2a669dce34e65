// Unit test of where ranks without MPI find each other: variables of launchers, addresses, proofs.
#include "runtime/net/place.h"

#include <string.h>

#include "runtime/net/secret.h"
#include "runtime/net/socket.h"
#include "tests/runtime/support/case.h"

static const char *const names[] = {
    "HECATE_RANK",
    "HECATE_RANKS",
    "HECATE_LOCAL_RANK",
    "HECATE_LOCAL_RANKS",
    "HECATE_ADDRESS",
    "HECATE_RENDEZVOUS",
    "HECATE_SUBNET",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_USE_AGENT_STORE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_LOCALID",
    "SLURM_STEP_ID",
    "SLURM_STEP_NUM_NODES",
    "SLURM_JOB_ID",
    "SLURM_STEP_NODELIST",
    "SLURM_JOB_NODELIST",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMIX_SERVER_TMPDIR",
    "PMIX_NAMESPACE",
};

// Sets variables, "NAME=VALUE ...", and no others.
static void set_only(const char *text) {
    char copy[512], *rest;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        setenv(word, equals + 1, 1);
    }
}

static void expect_place(const char *variables, const char *host, int port, const char *file) {
    struct hrt_place place;
    struct hrt_error error = {0};
    set_only(variables);
    assert_true(hrt_net_place_find(&place, &error));
    assert_string_equal(place.host, host);
    assert_string_equal(place.file, file);
    assert_int_equal(place.port, port);
}

static void launchers_say_where_rank_0_is(void **state) {
    (void)state;
    const char torchrun[] = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=n0 MASTER_PORT=29500";
    char agent[128];
    expect_place(torchrun, "n0", 29500, "");
    snprintf(agent, sizeof agent, "%s TORCHELASTIC_USE_AGENT_STORE=True", torchrun);
    expect_place(agent, "n0", 29501, ""); // The first port is the launcher's.
    expect_place("SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_STEP_ID=3 SLURM_JOB_ID=1001 "
                 "SLURM_JOB_NODELIST=m[1-2] SLURM_STEP_NODELIST=gpu[007-009,12],m1",
                 "gpu007", 15000 + (16 * 1001 + 3) % 16000, "");
    expect_place("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 "
                 "OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_SERVER_TMPDIR=/tmp/s PMIX_NAMESPACE=7",
                 "", 0, "/tmp/s/hecate-7");
    expect_place("HECATE_RANK=0 HECATE_RANKS=2 HECATE_ADDRESS=[fd00::1]:99", "fd00::1", 99, "");
    expect_place("HECATE_RANK=0 HECATE_RANKS=2 HECATE_RENDEZVOUS=/shared/f", "", 0, "/shared/f");
    // A person's setting goes before a launcher's.
    expect_place("HECATE_ADDRESS=here:1 RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=n0", "here", 1,
                 "");
    expect_place("", "", 0, ""); // Alone.
}

static void ranks_of_one_machine_meet_at_its_loopback(void **state) {
    (void)state;
    const char torchrun[] = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=n0 MASTER_PORT=29500";
    const char slurm[] = "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_STEP_ID=0 "
                         "SLURM_JOB_ID=1 SLURM_STEP_NODELIST=n[1-2]";
    char here[256];
    snprintf(here, sizeof here, "%s LOCAL_WORLD_SIZE=2", torchrun);
    expect_place(here, "127.0.0.1", 29500, "");
    snprintf(here, sizeof here, "%s LOCAL_WORLD_SIZE=1", torchrun);
    expect_place(here, "n0", 29500, "");
    snprintf(here, sizeof here, "%s SLURM_STEP_NUM_NODES=1", slurm);
    expect_place(here, "127.0.0.1", 15016, "");
    snprintf(here, sizeof here, "%s SLURM_STEP_NUM_NODES=2", slurm);
    expect_place(here, "n1", 15016, "");
    // A person's setting of the place holds.
    expect_place("HECATE_RANK=0 HECATE_RANKS=2 HECATE_LOCAL_RANKS=2 HECATE_ADDRESS=n0:7", "n0", 7,
                 "");
}

static void expect_wrong(const char *variables, const char *text) {
    struct hrt_place place;
    struct hrt_error error = {0};
    set_only(variables);
    const bool found = hrt_net_place_find(&place, &error);
    test_expect_error(found, &error, HRT_EXIT_USAGE, text);
}

static void what_is_missing_is_named(void **state) {
    (void)state;
    expect_wrong("RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=n0",
                 "the launcher set no MASTER_PORT");
    expect_wrong("RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR= MASTER_PORT=29500",
                 "the launcher set no MASTER_ADDR");
    expect_wrong("HECATE_RANK=0 HECATE_RANKS=2 HECATE_LOCAL_RANKS=all HECATE_ADDRESS=n0:7",
                 "HECATE_LOCAL_RANKS is 'all', which is not a number of ranks");
    expect_wrong("RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=n0 MASTER_PORT=x",
                 "MASTER_PORT is 'x', which is not a port");
    expect_wrong("SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_STEP_ID=0",
                 "Slurm's SLURM_STEP_NODELIST names no host; say where rank 0 is: "
                 "HECATE_ADDRESS=HOST:PORT");
    expect_wrong("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 "
                 "OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_SERVER_TMPDIR=/tmp/s PMIX_NAMESPACE=7",
                 "mpirun does not say where rank 0 is: set HECATE_ADDRESS=HOST:PORT or "
                 "HECATE_RENDEZVOUS=FILE");
    expect_wrong("HECATE_RANK=1", "the launcher set no HECATE_RANKS");
    set_only("");
}

static void first_hosts_of_lists(void **state) {
    static const char *const lists[][2] = {
        {"n1", "n1"}, {"n1,n2", "n1"}, {"n[003-7,9],m1", "n003"}, {"a-b[9]", "a-b9"}};
    char host[16];
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_true(hrt_net_first_host(lists[i][0], host, sizeof host));
        assert_string_equal(host, lists[i][1]);
    }
    assert_false(hrt_net_first_host("", host, sizeof host));
    assert_false(hrt_net_first_host("a-name-of-16-byt", host, sizeof host));
}

static void expect_in(const char *host, const char *subnet, bool in) {
    struct hrt_address address;
    const char *why;
    assert_true(hrt_net_address_find(host, 1, &address, &why));
    assert_true(hrt_net_address_is_in(&address, subnet) == in);
}

static void subnets_have_addresses(void **state) {
    (void)state;
    expect_in("10.1.2.3", "10.0.0.0/8", true);
    expect_in("11.1.2.3", "10.0.0.0/8", false);
    expect_in("10.1.2.3", "10.1.2.3/32", true);
    expect_in("10.1.2.2", "10.1.2.3/32", false);
    expect_in("10.1.6.3", "10.1.4.0/22", true);
    expect_in("10.1.8.3", "10.1.4.0/22", false);
    expect_in("1.2.3.4", "0.0.0.0/0", true);
    expect_in("1.2.3.4", "::/0", false);
    assert_true(hrt_net_subnet_is_sound("fd00::/8"));
    assert_false(hrt_net_subnet_is_sound("10.0.0.0"));
    assert_false(hrt_net_subnet_is_sound("10.0.0.0/33"));
    assert_false(hrt_net_subnet_is_sound("10.0.0/8"));
}

static void proofs_are_those_of_the_secret(void **state) {
    const struct hrt_secret secret = {"Jefe"}, other = {"jefe"};
    const struct hrt_part parts[] = {{"what do ya want ", 16}, {"for nothing?", 12}};
    const struct hrt_part whole = {"what do ya want for nothing?", 28};
    unsigned char proof[HRT_PROOF];
    (void)state;
    assert_true(hrt_net_prove(&secret, parts, 2, proof));
    assert_true(hrt_net_proves(&secret, &whole, 1, proof));
    assert_false(hrt_net_proves(&other, &whole, 1, proof));
    assert_false(hrt_net_proves(&secret, parts, 1, proof));
    proof[31] ^= 1;
    assert_false(hrt_net_proves(&secret, &whole, 1, proof));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_say_where_rank_0_is),
        cmocka_unit_test(ranks_of_one_machine_meet_at_its_loopback),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(first_hosts_of_lists),
        cmocka_unit_test(subnets_have_addresses),
        cmocka_unit_test(proofs_are_those_of_the_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
