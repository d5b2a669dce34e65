#include "runtime/net/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/net/socket.h"

static const char *set(const char *name) {
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static bool read_port(const char *text, int *port) {
    char *end;
    const long number = strtol(text, &end, 10);
    *port = (int)number;
    return end != text && !*end && number >= 1 && number <= 65535;
}

// "host:29500", "[fd00::1]:29500".
static bool read_address(struct hrt_place *place, const char *text, struct hrt_error *error) {
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    const bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
    if (length == 0 || length >= sizeof place->host || !read_port(colon + 1, &place->port))
        return hrt_fail_usage(error, "HECATE_ADDRESS is '%s'; it takes HOST:PORT of rank 0", text);
    length -= 2 * brackets;
    memcpy(place->host, text + brackets, length);
    place->host[length] = '\0';
    return true;
}

// Takes the host that a launcher names; a loopback address where all ranks are here, so that no other machine can ask.
static bool take_host(struct hrt_place *place, const char *variable, const char *host,
                      struct hrt_error *error) {
    const int length =
        snprintf(place->host, sizeof place->host, "%s", place->world.here ? "127.0.0.1" : host);
    return length < (int)sizeof place->host ||
           hrt_fail_usage(error, "%s is too long for the name of a host", variable);
}

// The port of torchrun's own store is taken: the next one is used.
static bool read_torchrun(struct hrt_place *place, struct hrt_error *error) {
    const char *port = set("MASTER_PORT"), *agent = set("TORCHELASTIC_USE_AGENT_STORE");
    const char *host = set("MASTER_ADDR");
    if (!host) return hrt_fail_usage(error, "the launcher set no MASTER_ADDR");
    if (!port) return hrt_fail_usage(error, "the launcher set no MASTER_PORT");
    if (!read_port(port, &place->port))
        return hrt_fail_usage(error, "MASTER_PORT is '%s', which is not a port", port);
    if (agent && strcmp(agent, "True") == 0) place->port = place->port % 65535 + 1;
    return take_host(place, "MASTER_ADDR", host, error);
}

bool hrt_net_first_host(const char *list, char *host, int room) {
    const size_t name = strcspn(list, "[,");
    const char *rest = list + name;
    const size_t number = *rest == '[' ? strcspn(rest + 1, "-,]") : 0;
    const int needed = snprintf(host, (size_t)room, "%.*s%.*s", (int)name, list, (int)number,
                                number ? rest + 1 : "");
    return needed > 0 && needed < room;
}

static bool read_slurm(struct hrt_place *place, struct hrt_error *error) {
    enum { FIRST = 15000, PORTS = 16000 }; // Below those that systems give out by themselves.
    const char *list = set("SLURM_STEP_NODELIST"), *job = set("SLURM_JOB_ID");
    const char *step = set("SLURM_STEP_ID");
    char host[sizeof place->host];
    if (!list) list = set("SLURM_JOB_NODELIST");
    if (!list || !hrt_net_first_host(list, host, sizeof host))
        return hrt_fail_usage(error, "Slurm's SLURM_STEP_NODELIST names no host; say where rank 0 "
                                     "is: HECATE_ADDRESS=HOST:PORT");
    const long number = (job ? atol(job) : 0) * 16 + (step ? atol(step) : 0);
    place->port = FIRST + (int)(number % PORTS);
    return take_host(place, "SLURM_STEP_NODELIST", host, error);
}

static bool read_mpirun(struct hrt_place *place, struct hrt_error *error) {
    const char *folder = set("PMIX_SERVER_TMPDIR"), *job = set("PMIX_NAMESPACE");
    if (!place->world.here || !folder || !job)
        return hrt_fail_usage(error, "mpirun does not say where rank 0 is: set "
                                     "HECATE_ADDRESS=HOST:PORT or HECATE_RENDEZVOUS=FILE");
    snprintf(place->file, sizeof place->file, "%s/hecate-%s", folder, job);
    return true;
}

static bool find(struct hrt_place *place, struct hrt_error *error) {
    const char *address = set("HECATE_ADDRESS"), *file = set("HECATE_RENDEZVOUS");
    const char *launcher = place->world.launcher;
    if (address && file)
        return hrt_fail_usage(error, "HECATE_ADDRESS and HECATE_RENDEZVOUS are both set; one says "
                                     "where rank 0 is");
    if (address) return read_address(place, address, error);
    if (file && strlen(file) >= sizeof place->file)
        return hrt_fail_usage(error, "HECATE_RENDEZVOUS is too long");
    if (file) snprintf(place->file, sizeof place->file, "%s", file);
    if (file) return true;
    if (strcmp(launcher, "torchrun") == 0) return read_torchrun(place, error);
    if (strcmp(launcher, "srun") == 0) return read_slurm(place, error);
    if (strcmp(launcher, "mpirun") == 0) return read_mpirun(place, error);
    return hrt_fail_usage(error, "HECATE_RANK is set, but not where rank 0 is: "
                                 "HECATE_ADDRESS=HOST:PORT or HECATE_RENDEZVOUS=FILE");
}

bool hrt_net_place_is_local(const struct hrt_place *place) {
    const char *host = place->host;
    if (!*host) return place->world.here;
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           strncmp(host, "127.", 4) == 0;
}

bool hrt_net_place_find(struct hrt_place *place, struct hrt_error *error) {
    *place = (struct hrt_place){.subnet = set("HECATE_SUBNET")};
    if (!hrt_base_world_find(&place->world, error)) return false;
    if (place->subnet && !hrt_net_subnet_is_sound(place->subnet))
        return hrt_fail_usage(error, "HECATE_SUBNET is '%s'; it takes one like 10.0.0.0/8",
                              place->subnet);
    return place->world.size == 1 || find(place, error);
}
