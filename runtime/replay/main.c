// hecate-replay: what would this policy have done on those loads?
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/replay/replay.h"

enum { POLICIES_MAX = 32 };

struct command {
    const char *path;
    const struct hpl_policy *policies[POLICIES_MAX];
    int32_t policy_count;
    int32_t nodes, devices;
    struct setting setting;
};

static _Noreturn void refuse(const char *flag, const char *value, const char *wanted) {
    fprintf(stderr, "hecate-replay: --%s=%s: %s\n", flag, value, wanted);
    exit(REPLAY_BAD_COMMAND);
}

// A whole number between two limits.
static int32_t number(const char *flag, const char *value, int32_t least, int32_t most) {
    char *end = NULL;
    errno = 0;
    const long number = strtol(value, &end, 10);
    if (end == value || *end || errno || number < least || number > most) {
        char wanted[80];
        snprintf(wanted, sizeof wanted, "a whole number from %d to %d is wanted", least, most);
        refuse(flag, value, wanted);
    }
    return (int32_t)number;
}

static void add_policies(struct command *command, char *names) {
    for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
        const struct hpl_policy *policy = hpl_policy_find(name);
        if (!policy) refuse("policy", name, "no such policy; --list-policies prints them");
        if (command->policy_count == POLICIES_MAX) refuse("policy", name, "too many policies");
        command->policies[command->policy_count++] = policy;
    }
}

static void parse(struct command *command, int argc, char **argv) {
    static const struct option options[] = {
        {"policy", required_argument, NULL, 'p'},
        {"nodes", required_argument, NULL, 'n'},
        {"devices", required_argument, NULL, 'd'},
        {"slots", required_argument, NULL, 's'},
        {"entries", required_argument, NULL, 'e'},
        {"forecast-age", required_argument, NULL, 'a'},
        {"window", required_argument, NULL, 'w'},
        {"slack", required_argument, NULL, 'k'},
        {"replica-rows", required_argument, NULL, 'r'},
        {0},
    };
    struct hpl_budget *budget = &command->setting.budget;
    for (int flag, at; (flag = getopt_long(argc, argv, "", options, &at)) != -1;) {
        if (flag == '?') exit(REPLAY_BAD_COMMAND);
        const char *name = options[at].name;
        switch (flag) {
        case 'p':
            add_policies(command, optarg);
            break;
        case 'n':
            command->nodes = number(name, optarg, 1, HPL_DEVICES_MAX);
            break;
        case 'd':
            command->devices = number(name, optarg, 1, HPL_DEVICES_MAX);
            break;
        case 's':
            budget->slots = number(name, optarg, 0, HPL_EXPERTS_MAX);
            break;
        case 'e':
            budget->entries = number(name, optarg, 0, HPL_EXPERTS_MAX);
            break;
        case 'a':
            command->setting.forecast_age = (uint32_t)number(name, optarg, 0, 1000000);
            break;
        case 'w':
            command->setting.window = (uint32_t)number(name, optarg, 1, 1000);
            break;
        case 'k':
            budget->slack = number(name, optarg, 0, 1000);
            break;
        case 'r':
            budget->replica_rows = number(name, optarg, 0, INT32_MAX);
            break;
        }
    }
    if (optind + 1 != argc) {
        fprintf(stderr, "usage: hecate-replay LOADS --policy=NAME[,NAME...] [flags]\n");
        exit(REPLAY_BAD_COMMAND);
    }
    command->path = argv[optind];
}

int main(int argc, char **argv) {
    struct command command = {
        .nodes = 2,
        .devices = 8,
        .setting = {.budget = {.slots = 4, .entries = 8, .slack = 10}, .window = 1, .early = 40}};
    parse(&command, argc, argv);
    struct loads loads;
    if (!loads_read(&loads, command.path)) return REPLAY_BAD_INPUT;
    static int32_t first[HPL_DEVICES_MAX + 1], node[HPL_DEVICES_MAX], speed[HPL_DEVICES_MAX];
    const int32_t devices = command.nodes * command.devices;
    for (int32_t n = 0; n <= command.nodes; n++) first[n] = n * command.devices;
    for (int32_t d = 0; d < devices; d++) node[d] = d / command.devices, speed[d] = 1;
    command.setting.topology = (struct hpl_topology){devices, command.nodes, first, node, speed};
    struct series series[POLICIES_MAX];
    for (int32_t i = 0; i < command.policy_count; i++) {
        if (!replay_run(&loads, &command.setting, command.policies[i], &series[i]))
            return REPLAY_INTERNAL;
    }
    text_report(stdout, &loads, &command.setting, series, command.policy_count);
    return REPLAY_OK;
}
