// options.c: flags of hecate-replay, one table.
#include "tools/replay/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: hecate-replay LOADS --policy=NAME[,NAME...] [flags]\n"
    "       hecate-replay --synthesize=LOADS [flags]\n"
    "\n"
    "Replays recorded loads through placement policies and reports what each reaches.\n"
    "\n"
    "cluster\n"
    "  --nodes=2            nodes\n"
    "  --devices=8          devices of each node, or one number for each: 8,8,4\n"
    "  --speeds=1           relative speed of all devices, or one number for each\n"
    "budget, for each layer\n"
    "  --slots=4            replicas that a device may hold\n"
    "  --entries=8          chunks that may enter a node\n"
    "  --chunk-bytes=4718592 bytes of an expert's parameters as they travel\n"
    "  --window-bytes=0     bytes that may enter a node within the window; 0: no further limit\n"
    "  --slack=10           thousandths of the mean load given up to keep rows near\n"
    "  --replica-rows=1     rows that a replica must keep on its device, beyond balance\n"
    "  --import-rows=1      rows that an entry must keep in its node, beyond balance\n"
    "forecast\n"
    "  --forecast-age=0     stored iterations between forecast and use; 0: the last microbatch\n"
    "  --window=1           microbatches whose mean is the forecast (4 when older)\n"
    "  --period=4           microbatches between plans of policies that keep theirs\n"
    "  --calibrate=no       no, worth (when it saves more time than it takes) or always\n"
    "  --reserve=0          slots that the plan before the gate leaves to calibration\n"
    "  --dispatch=policy    how rows are split over holders: as the policy does it, quota "
    "(exact),\n"
    "                       nearest, node or all (evenly over the nearest, the node's, all)\n"
    "  --reshard=0          microbatches between changes of owners, of policies that calibrate; 0: "
    "never\n"
    "  --costs=R,S,C        time of a row's computation, of sending a row, of sending a chunk\n"
    "report\n"
    "  --early=40           stored iterations before this one are reported as early\n"
    "  --json[=FILE]        JSON to FILE or to standard output instead of the table\n"
    "  --print=I,L,M        loads, plan, rank 0's quotas and transfers of one layer-step, as text\n"
    "  --csv=FILE           every layer-step as a line\n"
    "  --svg=FILE           picture of every device's load over time\n"
    "  --picture-layer=0    its layer\n"
    "drawn loads (with --synthesize)\n"
    "  --experts=64 --layers=4 --iterations=16 --microbatches=4 --rows=4096\n"
    "  --skew=1.2 --drift=0.05 --bias=0.1 --seed=1\n"
    "\n"
    "  --list-policies      names and summaries\n"
    "\n"
    "exit codes: 0 done, 1 unreadable loads or output, 2 command line, 70 internal error\n";

static _Noreturn void refuse(const char *flag, const char *value, const char *wanted) {
    fprintf(stderr, "hecate-replay: --%s=%s: %s\n", flag, value, wanted);
    exit(REPLAY_BAD_COMMAND);
}

static int64_t number(const char *flag, const char *value, int64_t least, int64_t most) {
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (end == value || *end || errno || number < least || number > most) {
        char wanted[96];
        snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld is wanted",
                 (long long)least, (long long)most);
        refuse(flag, value, wanted);
    }
    return number;
}

static double real(const char *flag, const char *value) {
    char *end = NULL;
    const double number = strtod(value, &end);
    if (end == value || *end || !(number >= 0 && number <= 100)) {
        refuse(flag, value, "a number from 0 to 100 is wanted");
    }
    return number;
}

// Numbers with commas between; returns how many.
static int32_t numbers(const char *flag, const char *value, int64_t most, int64_t *out,
                       int32_t room) {
    int32_t count = 0;
    for (const char *at = value;; at++) {
        char item[24];
        const size_t length = strcspn(at, ",");
        if (length >= sizeof item || count == room) refuse(flag, value, "too long a list");
        memcpy(item, at, length);
        item[length] = 0;
        out[count++] = number(flag, item, 0, most);
        at += length;
        if (!*at) return count;
    }
}

static void add_policies(struct options *options, const char *names) {
    for (const char *at = names;; at++) {
        char name[24];
        const size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        const struct hpl_policy *policy = hpl_policy_find(name);
        if (!policy) refuse("policy", name, "no such policy; --list-policies prints them all");
        if (options->policy_count == POLICIES_MAX) refuse("policy", names, "too many policies");
        options->policies[options->policy_count++] = policy;
        at += length;
        if (!*at) return;
    }
}

static _Noreturn void list_policies(void) {
    for (int32_t i = 0; i < hpl_policy_count; i++) {
        const struct hpl_policy *p = &hpl_policies[i];
        printf("%-10s %s (%s%s%s)\n", p->name, p->summary, hpl_collective_names[p->collective],
               *p->programs ? "; in programs " : "", p->programs);
    }
    exit(REPLAY_OK);
}

// Flags that name one whole number: where it goes, and its limits.
struct number_flag {
    const char *name;
    void *to;
    size_t bytes;
    int64_t least, most;
};

#define NUMBER(flag, member, least, most)                                                          \
    { flag, &(member), sizeof(member), least, most }

static bool set_number(struct options *o, const char *name, const char *value) {
    struct setting *s = &o->setting;
    struct synthesis *y = &o->synthesis;
    const struct number_flag flags[] = {
        NUMBER("slots", s->budget.slots, 0, HPL_EXPERTS_MAX),
        NUMBER("entries", s->budget.entries, 0, HPL_EXPERTS_MAX),
        NUMBER("chunk-bytes", s->budget.chunk_bytes, 0, INT64_MAX / 2),
        NUMBER("window-bytes", s->budget.window_bytes, 0, INT64_MAX / 2),
        NUMBER("slack", s->budget.slack, 0, HPL_SLACK_MAX),
        NUMBER("replica-rows", s->budget.replica_rows, 0, INT32_MAX),
        NUMBER("import-rows", s->budget.import_rows, 0, INT32_MAX),
        NUMBER("forecast-age", s->forecast_age, 0, 1000000),
        NUMBER("window", s->window, 1, 1000),
        NUMBER("period", s->period, 1, 1000000),
        NUMBER("reserve", s->reserve, 0, HPL_EXPERTS_MAX),
        NUMBER("reshard", s->reshard, 0, 1000000),
        NUMBER("early", s->early, 0, INT32_MAX),
        NUMBER("picture-layer", s->picture_layer, 0, INT32_MAX),
        NUMBER("experts", y->experts, 1, HPL_EXPERTS_MAX),
        NUMBER("layers", y->layers, 1, 1000),
        NUMBER("iterations", y->iterations, 1, 100000),
        NUMBER("microbatches", y->microbatches, 1, 1000),
        NUMBER("rows", y->rows, 0, UINT16_MAX),
        NUMBER("seed", y->seed, 0, INT64_MAX),
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (strcmp(flags[i].name, name) != 0) continue;
        const int64_t n = number(name, value, flags[i].least, flags[i].most);
        if (flags[i].bytes == sizeof n)
            memcpy(flags[i].to, &n, sizeof n);
        else
            memcpy(flags[i].to, &(int32_t){(int32_t)n}, sizeof(int32_t));
        return true;
    }
    return false;
}

static void set_costs(struct options *o, const char *value) {
    int64_t costs[3];
    if (numbers("costs", value, INT32_MAX, costs, 3) != 3) {
        refuse("costs", value, "three numbers are wanted");
    }
    o->setting.costs =
        (struct hpl_costs){.row_compute = costs[0], .row_send = costs[1], .chunk_send = costs[2]};
}

static void set_print(struct options *o, const char *value) {
    int64_t at[3];
    if (numbers("print", value, INT32_MAX, at, 3) != 3) {
        refuse("print", value, "iteration, layer and microbatch are wanted");
    }
    o->setting.prints = true;
    o->setting.print_iteration = (uint32_t)at[0];
    o->setting.print_layer = (uint32_t)at[1];
    o->setting.print_microbatch = (uint32_t)at[2];
}

static void set_dispatch(struct options *o, const char *value) {
    static const struct {
        const char *name;
        int32_t split;
    } names[] = {{"policy", -1},
                 {"quota", HPL_SPLIT_QUOTA},
                 {"nearest", HPL_SPLIT_NEAREST},
                 {"node", HPL_SPLIT_NODE},
                 {"all", HPL_SPLIT_ALL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, value) != 0) continue;
        o->setting.dispatch = names[i].split;
        return;
    }
    refuse("dispatch", value, "policy, quota, nearest, node or all is wanted");
}

static bool set_other(struct options *o, const char *name, const char *value) {
    struct setting *s = &o->setting;
    if (strcmp(name, "policy") == 0)
        add_policies(o, value);
    else if (strcmp(name, "synthesize") == 0)
        o->synthesize = value;
    else if (strcmp(name, "dispatch") == 0)
        set_dispatch(o, value);
    else if (strcmp(name, "print") == 0)
        set_print(o, value);
    else if (strcmp(name, "csv") == 0)
        o->csv = value;
    else if (strcmp(name, "svg") == 0)
        o->picture = value;
    else if (strcmp(name, "skew") == 0)
        o->synthesis.skew = real(name, value);
    else if (strcmp(name, "drift") == 0)
        o->synthesis.drift = real(name, value);
    else if (strcmp(name, "bias") == 0)
        o->synthesis.bias = real(name, value);
    else if (strcmp(name, "costs") == 0)
        set_costs(o, value);
    else if (strcmp(name, "calibrate") == 0) {
        s->calibrate = strcmp(value, "no") != 0;
        s->calibrate_always = strcmp(value, "always") == 0;
        if (s->calibrate && !s->calibrate_always && strcmp(value, "worth") != 0) {
            refuse(name, value, "no, worth or always is wanted");
        }
    } else
        return false;
    return true;
}

// Node sizes and speeds, which only fit together once all flags are known.
struct cluster {
    int64_t nodes;
    int64_t sizes[HPL_DEVICES_MAX], speeds[HPL_DEVICES_MAX];
    int32_t size_count, speed_count;
};

static void form_topology(struct options *o, const struct cluster *c) {
    const int64_t nodes = c->size_count > 1 ? c->size_count : c->nodes;
    if (c->nodes > 0 && c->nodes != nodes) {
        refuse("devices", "list", "as many sizes as --nodes says are wanted");
    }
    int64_t devices = 0;
    for (int64_t n = 0; n < nodes; n++) {
        const int64_t size = c->sizes[c->size_count > 1 ? n : 0];
        if (size < 1) refuse("devices", "0", "a node needs at least one device");
        if (devices + size > HPL_DEVICES_MAX) refuse("devices", "list", "at most 4096 in all");
        o->first[n] = (int32_t)devices;
        for (int64_t i = 0; i < size; i++) o->node[devices++] = (int32_t)n;
    }
    o->first[nodes] = (int32_t)devices;
    if (c->speed_count != 1 && c->speed_count != devices) {
        refuse("speeds", "list", "one number for all devices, or one for each, is wanted");
    }
    for (int64_t d = 0; d < devices; d++) {
        o->speed[d] = (int32_t)c->speeds[c->speed_count == 1 ? 0 : d];
        if (o->speed[d] < 1) refuse("speeds", "0", "a whole number from 1 to 1000 is wanted");
    }
    o->setting.topology =
        (struct hpl_topology){(int32_t)devices, (int32_t)nodes, o->first, o->node, o->speed};
    o->synthesis.devices = (uint32_t)devices;
}

static void set_defaults(struct options *o) {
    memset(o, 0, sizeof *o);
    o->setting = (struct setting){
        .budget = {.slots = 4,
                   .entries = 8,
                   .chunk_bytes = 4718592, // bf16, 768 to 1,536 and back.
                   .slack = 10,
                   .replica_rows = 1,
                   .import_rows = 1},
        // A chunk weighs about as much as 1,500 rows of work.
        .costs = {.row_compute = 1, .row_send = 1, .chunk_send = 1500},
        .period = 4,
        .dispatch = -1,
        .early = 40,
    };
    o->synthesis = (struct synthesis){.iterations = 16,
                                      .layers = 4,
                                      .microbatches = 4,
                                      .experts = 64,
                                      .rows = 4096,
                                      .skew = 1.2,
                                      .drift = 0.05,
                                      .bias = 0.1,
                                      .seed = 1};
}

static void parse_flag(struct options *o, struct cluster *cluster, const char *argument) {
    char name[24];
    const size_t length = strcspn(argument, "=");
    snprintf(name, sizeof name, "%.*s", (int)length, argument);
    const char *value = argument[length] ? argument + length + 1 : NULL;
    if (strcmp(argument, "help") == 0) {
        fputs(help, stdout);
        exit(REPLAY_OK);
    }
    if (strcmp(argument, "list-policies") == 0) list_policies();
    if (strcmp(name, "json") == 0) {
        o->json = value ? value : "-";
        return;
    }
    if (!value) refuse(argument, "", "a value is wanted, or there is no such flag; see --help");
    if (strcmp(name, "nodes") == 0) {
        cluster->nodes = number(name, value, 1, HPL_DEVICES_MAX);
    } else if (strcmp(name, "devices") == 0) {
        cluster->size_count =
            numbers(name, value, HPL_DEVICES_MAX, cluster->sizes, HPL_DEVICES_MAX);
    } else if (strcmp(name, "speeds") == 0) {
        cluster->speed_count =
            numbers(name, value, HPL_SPEED_MAX, cluster->speeds, HPL_DEVICES_MAX);
    } else if (!set_number(o, name, value) && !set_other(o, name, value)) {
        refuse(name, value, "no such flag; --help lists them");
    }
}

void options_parse(struct options *o, int argc, char **argv) {
    static struct cluster cluster = {
        .sizes = {8}, .size_count = 1, .speeds = {1}, .speed_count = 1};
    set_defaults(o);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-h") == 0)
            parse_flag(o, &cluster, "help");
        else if (strncmp(argv[i], "--", 2) == 0)
            parse_flag(o, &cluster, argv[i] + 2);
        else if (o->path)
            refuse("loads", argv[i], "one file of loads is enough");
        else
            o->path = argv[i];
    }
    if (cluster.nodes == 0 && cluster.size_count == 1) cluster.nodes = 2;
    form_topology(o, &cluster);
    if (o->setting.window == 0) o->setting.window = o->setting.forecast_age == 0 ? 1 : 4;
    if (!o->path == !o->synthesize) {
        fprintf(stderr, "hecate-replay: either a file of loads or --synthesize=FILE is wanted; "
                        "see --help\n");
        exit(REPLAY_BAD_COMMAND);
    }
    if (o->path && o->policy_count == 0) {
        fprintf(stderr, "hecate-replay: --policy=NAME[,NAME...] is wanted\n");
        exit(REPLAY_BAD_COMMAND);
    }
}
