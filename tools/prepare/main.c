// hecate-data: from texts to the tokens that programs train on.
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tools/prepare/prepare.h"

static const char help[] =
    "usage: hecate-data tokenize --out=FOLDER --tokenizer=FILE --end=TOKEN [flags] INPUT...\n"
    "       hecate-data chat --out=FOLDER --model=FOLDER [flags] INPUT...\n"
    "       hecate-data pairs --out=FOLDER --model=FOLDER --pack=T --end=TOKEN [flags] INPUT...\n"
    "       hecate-data routes --out=FILE --pack=T --layers=N --experts=N --topk=N INPUT...\n"
    "       hecate-data rollouts --out=FILE --pack=T --vocabulary=N [flags] INPUT...\n"
    "       hecate-data inspect [flags] FILE...\n"
    "       hecate-data check [flags] FILE...\n"
    "       hecate-data mix --out=FILE --tokens=N [--block=N] FILE=WEIGHT...\n"
    "\n"
    "tokenize  makes FOLDER/train/INPUT.bin of every input, and a record beside it, "
    "INPUT.bin.json.\n"
    "          Files of the same input, tokenizer and flags stay.\n"
    "  -t, --tokenizer=FILE  a tokenizer.json\n"
    "  -e, --end=TOKEN       the added token behind every document, or none\n"
    "  -o, --out=FOLDER      made if it is not there\n"
    "      --input=auto      text (a document ends at a NUL or with its file), lines (each is "
    "one), "
    "jsonl,\n"
    "                        json (an array), llmc (.bin of llm.c), megatron (.idx, beside its "
    ".bin);\n"
    "                        auto: by the name. Texts may be compressed: gzip, zstd, xz, bzip2\n"
    "      --field=text      field of JSON records that holds the text\n"
    "      --bad=stop        at a record that is no JSON or has no such text; skip: leave it out\n"
    "      --frame           put around each document what the tokenizer puts around a text\n"
    "      --pack=T          whole documents in sequences of T positions, those of the model, by "
    "best fit\n"
    "      --validation=0    share of the documents that go to FOLDER/validation instead\n"
    "      --seed=1          which documents these are\n"
    "      --threads=N       as many as there are processors\n"
    "      --vocabulary=N    ids are below it, of inputs that hold tokens, without --tokenizer\n"
    "chat      does the same with conversations, JSON lines or an array: with the chat template of "
    "a "
    "model,\n"
    "          and with weights: in training only the assistant's tokens count. Flags as above, "
    "and\n"
    "  -m, --model=FOLDER    tokenizer.json, tokenizer_config.json, chat_template.jinja if there "
    "is "
    "one\n"
    "      --template=FILE   another chat template\n"
    "      --date=YYYY-MM-DD the day, for templates that ask for it\n"
    "      --end=none        a token behind each conversation, which does not count\n"
    "pairs     does the same with pairs of answers to a prompt, chosen and rejected: each answer, "
    "with "
    "its\n"
    "          prompt, is a sequence of --pack; for models with train.objective = dpo\n"
    "routes    makes a file for --route=ids:FILE of the experts that an engine of rollouts has "
    "chosen:\n"
    "          JSON lines or an array with routed_experts, or NumPy's .npy; a record is a sequence "
    "of "
    "--pack\n"
    "      --layers=N        that have routers, each with --experts=N, --topk=N of them for a "
    "token\n"
    "      --dense=0         layers before them without a router, which the engine has, too\n"
    "rollouts  makes all files of a step of reinforcement learning, of JSON lines or an array: "
    "FILE\n"
    "          (tokens, with weights), FILE.rollout for --teacher, and with the flags of routes "
    "FILE.ids\n"
    "      --end=0           id of the padding behind an answer\n"
    "inspect   prints how many tokens there are and the largest; with --show=N the first N, as "
    "text\n"
    "          with --tokenizer\n"
    "check     reads files whole and compares them with their records; with --vocabulary=N every "
    "id\n"
    "mix       makes one file of blocks of several, by weight; a file that ends begins again\n"
    "      --tokens=N        of the mixture, at least\n"
    "      --block=4096      tokens\n"
    "  -h, --help            this text\n"
    "\n"
    "exit codes: 0 done, 1 a file cannot be read or written, or is wrong, 2 command line\n";

enum flag {
    INPUT = 256,
    FIELD,
    FRAME,
    SHARE,
    SEED,
    THREADS,
    VOCABULARY,
    SHOW,
    TOKENS,
    BLOCK,
    PACK,
    BAD,
    TEMPLATE,
    DATE,
    LAYERS,
    EXPERTS,
    TOPK,
    DENSE
};

static const struct option flags[] = {
    {"tokenizer", required_argument, NULL, 't'},
    {"end", required_argument, NULL, 'e'},
    {"out", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {"input", required_argument, NULL, INPUT},
    {"field", required_argument, NULL, FIELD},
    {"frame", no_argument, NULL, FRAME},
    {"validation", required_argument, NULL, SHARE},
    {"seed", required_argument, NULL, SEED},
    {"threads", required_argument, NULL, THREADS},
    {"vocabulary", required_argument, NULL, VOCABULARY},
    {"show", required_argument, NULL, SHOW},
    {"tokens", required_argument, NULL, TOKENS},
    {"block", required_argument, NULL, BLOCK},
    {"pack", required_argument, NULL, PACK},
    {"bad", required_argument, NULL, BAD},
    {"model", required_argument, NULL, 'm'},
    {"template", required_argument, NULL, TEMPLATE},
    {"date", required_argument, NULL, DATE},
    {"layers", required_argument, NULL, LAYERS},
    {"experts", required_argument, NULL, EXPERTS},
    {"topk", required_argument, NULL, TOPK},
    {"dense", required_argument, NULL, DENSE},
    {0},
};

static bool read_number(const char *name, int64_t least, int64_t most, int64_t *number,
                        struct hrt_error *error) {
    char *end = NULL;
    errno = 0;
    *number = strtoll(optarg, &end, 10);
    if (end != optarg && !*end && !errno && *number >= least && *number <= most) return true;
    return hrt_fail_usage(error,
                          "--%s=%s: a whole number from %" PRId64 " to %" PRId64 " is wanted", name,
                          optarg, least, most);
}

static bool read_kind(enum kind *kind, struct hrt_error *error) {
    static const char *const kinds[] = {"auto", "text",     "lines", "jsonl",
                                        "llmc", "megatron", "json"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        *kind = (enum kind)i;
        if (strcmp(optarg, kinds[i]) == 0) return true;
    }
    return hrt_fail_usage(
        error, "--input=%s: auto, text, lines, jsonl, json, llmc or megatron is wanted", optarg);
}

static bool read_share(double *share, struct hrt_error *error) {
    char *end = NULL;
    *share = strtod(optarg, &end);
    if (end != optarg && !*end && *share >= 0 && *share < 1) return true;
    return hrt_fail_usage(error, "--validation=%s: a share from 0 to below 1 is wanted", optarg);
}

static bool read_flag(int flag, struct options *o, struct hrt_error *error) {
    switch (flag) {
    case 't':
        o->tokenizer = optarg;
        return true;
    case 'e':
        o->end = optarg;
        return true;
    case 'o':
        o->out = optarg;
        return true;
    case 'm':
        o->model = optarg;
        return true;
    case TEMPLATE:
        o->template = optarg;
        return true;
    case DATE:
        o->date = optarg;
        return true;
    case INPUT:
        return read_kind(&o->kind, error);
    case BAD:
        o->skip = strcmp(optarg, "skip") == 0;
        return o->skip || strcmp(optarg, "stop") == 0 ||
               hrt_fail_usage(error, "--bad=%s: stop or skip is wanted", optarg);
    case FIELD:
        o->field = optarg;
        return true;
    case FRAME:
        o->frame = true;
        return true;
    case SHARE:
        return read_share(&o->validation, error);
    case SEED:
        return read_number("seed", 0, INT64_MAX, &o->seed, error);
    case THREADS:
        return read_number("threads", 1, 1024, &o->threads, error);
    case VOCABULARY:
        return read_number("vocabulary", 1, INT32_MAX, &o->vocabulary, error);
    case SHOW:
        return read_number("show", 0, 1 << 20, &o->show, error);
    case TOKENS:
        return read_number("tokens", 1, INT32_MAX, &o->tokens, error);
    case BLOCK:
        return read_number("block", 1, 1 << 24, &o->block, error);
    case PACK:
        return read_number("pack", 2, 1 << 24, &o->pack, error);
    case LAYERS:
        return read_number("layers", 1, 4096, &o->layers, error);
    case EXPERTS:
        return read_number("experts", 1, 4096, &o->experts, error);
    case TOPK:
        return read_number("topk", 1, 4096, &o->topk, error);
    case DENSE:
        return read_number("dense", 0, 4096, &o->dense, error);
    default:
        return hrt_fail_usage(error, "see --help");
    }
}

static int run(int argc, char **argv, struct hrt_error *error) {
    static const struct {
        const char *name;
        int (*run)(const struct options *options, struct hrt_error *error);
    } commands[] = {
        {"tokenize", tokenize}, {"chat", chat},       {"pairs", pairs}, {"routes", routes},
        {"rollouts", rollouts}, {"inspect", inspect}, {"check", check}, {"mix", mix}};
    struct options o = {
        .field = "text", .seed = 1, .threads = omp_get_max_threads(), .block = 4096};
    for (int flag; (flag = getopt_long(argc, argv, "t:e:o:m:h", flags, NULL)) != -1;) {
        if (flag == 'h') {
            fputs(help, stdout);
            return HRT_EXIT_DONE;
        }
        if (!read_flag(flag, &o, error)) return (int)error->code;
    }
    const char *command = optind < argc ? argv[optind] : NULL;
    o.file = argv + optind + 1;
    o.files = argc - optind - 1;
    for (size_t i = 0; command && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(command, commands[i].name) != 0) continue;
        if (o.files > 0) return commands[i].run(&o, error);
        hrt_fail_usage(error, "%s: at least one file is wanted; see --help", command);
        return (int)error->code;
    }
    if (command)
        hrt_fail_usage(error, "no command '%s'; see --help", command);
    else
        hrt_fail_usage(
            error,
            "tokenize, chat, pairs, routes, rollouts, inspect, check or mix is wanted; see --help");
    return (int)error->code;
}

int main(int argc, char **argv) {
    struct hrt_error error = {0};
    hf_hold_standard();
    signal(SIGXFSZ, SIG_IGN); // A write beyond the limit then fails, and is told.
    int code = run(argc, argv, &error);
    if (code == HRT_EXIT_DONE && (fflush(stdout) != 0 || ferror(stdout))) {
        hrt_fail(&error, "cannot write to standard output: %s", strerror(errno));
        code = HRT_EXIT_FAILED;
    }
    if (code != HRT_EXIT_DONE) fprintf(stderr, "hecate-data: %s\n", error.text);
    return code;
}
