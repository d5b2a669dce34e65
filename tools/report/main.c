// hecate-report: what was this run like, or what is it like now?
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/base/loopback.h"
#include "tools/report/log.h"
#include "tools/report/page.h"

enum { DONE = 0, BAD_INPUT = 1, BAD_COMMAND = 2, LOGS = 8, PORT = 6060 };

static const char help[] =
    "usage: hecate-report RUN.jsonl... -o PAGE.html\n"
    "       hecate-report RUN.jsonl... --watch[=PORT]\n"
    "\n"
    "Makes a page of a run that was logged by --log, or compares up to eight: one file, which\n"
    "needs no network. Loads of experts and placement are in it where a run had\n"
    "--set log.loads=N.\n"
    "\n"
    "  -o, --output FILE   writes it\n"
    "  -w, --watch[=PORT]  shows it on 127.0.0.1:PORT (6060), as the logs are by then\n"
    "  -h, --help          this text\n";

struct options {
    const char *log[LOGS], *page; // NULL: the page is shown,
    int logs, port;               // there.
};

static bool parse_port(const char *text, int *port) {
    char *end = NULL;
    const long number = text ? strtol(text, &end, 10) : PORT;
    *port = (int)number;
    if (number > 0 && number < 65536 && (!text || !*end)) return true;
    fprintf(stderr, "hecate-report: --watch=%s: a port is a number from 1 to 65535\n", text);
    return false;
}

static const char *missing(const struct options *options, bool more) {
    if (more) return "at most eight logs";
    if (options->logs == 0) return "which log?";
    if (options->page && options->port) return "-o and --watch are two ways to see a page: one";
    return options->page || options->port ? NULL : "where to? give -o PAGE.html, or --watch";
}

// Returns what to end with; -1: go on.
static int parse(struct options *options, int argc, char **argv) {
    static const struct option known[] = {{"output", required_argument, NULL, 'o'},
                                          {"watch", optional_argument, NULL, 'w'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    int option;
    while ((option = getopt_long(argc, argv, "o:w::h", known, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return DONE;
        }
        if (option == '?') return BAD_COMMAND; // getopt has said why.
        if (option == 'o') options->page = optarg;
        if (option == 'w' && !parse_port(optarg, &options->port)) return BAD_COMMAND;
    }
    for (; optind < argc && options->logs < LOGS; optind++)
        options->log[options->logs++] = argv[optind];
    const char *what = missing(options, optind < argc);
    if (!what) return -1;
    fprintf(stderr, "hecate-report: %s (hecate-report --help)\n", what);
    return BAD_COMMAND;
}

// Whether the page is none of the logs.
static bool check_files(const struct options *options) {
    char why[HF_WHY];
    struct hf_files files = {0};
    bool sound = true;
    for (int i = 0; sound && i < options->logs; i++)
        sound = hf_files_add(&files, HF_READ, i ? "another log" : "the log", options->log[i], why);
    if (options->page)
        sound = sound && hf_files_add(&files, HF_REPLACED, "--output", options->page, why);
    hf_files_free(&files);
    if (!sound) fprintf(stderr, "hecate-report: %s\n", why);
    return sound;
}

static void tell_repairs(const struct report_log *log) {
    if (log->cut)
        fprintf(stderr, "hecate-report: %s: its last line is cut off and left out\n", log->path);
    if (log->spoilt)
        fprintf(stderr,
                "hecate-report: %s: %lld lines, line %lld first, are none of a log and left out\n",
                log->path, (long long)log->spoilt, (long long)log->first_spoilt);
}

static bool write_page(const char *path, const struct report_log *log, int logs) {
    const char *why;
    struct hf_replacement page;
    if (hf_replace_begin(&page, path, &why) &&
        hf_replace_end(&page, report_page(page.file, log, logs, false), &why))
        return true;
    fprintf(stderr, "hecate-report: cannot write '%s': %s\n", path, why);
    return false;
}

// Reads the logs; those that were read are to be freed. False: one cannot be, and why was told.
static bool read_logs(const struct options *options, struct report_log log[LOGS], int *read) {
    char why[REPORT_WHY];
    *read = 0;
    while (*read < options->logs && report_log_read(&log[*read], options->log[*read], why)) ++*read;
    if (*read == options->logs) return true;
    fprintf(stderr, "hecate-report: %s\n", why);
    return false;
}

static void free_logs(struct report_log log[LOGS], int read) {
    for (int i = 0; i < read; i++) report_log_free(&log[i]);
}

// Logs that grow, and the page that was made of them last.
struct watched {
    struct report_log log[LOGS];
    int logs;
    char *page; // NULL: it is to be made.
    size_t bytes;
};

static bool make_page(struct watched *watched) {
    FILE *out = open_memstream(&watched->page, &watched->bytes);
    if (!out) return false;
    const bool written = report_page(out, watched->log, watched->logs, true);
    if (fclose(out) == 0 && written) return true;
    free(watched->page);
    watched->page = NULL;
    return false;
}

// Writes the page for the logs as they are now; only new lines of them are read.
static bool answer(void *context, FILE *out) {
    struct watched *watched = context;
    char why[REPORT_WHY];
    bool sound = true, any = false;
    for (int i = 0; sound && i < watched->logs; i++) {
        bool changed = false;
        sound = report_log_update(&watched->log[i], &changed, why);
        any = any || changed || !sound;
    }
    if (!sound) fprintf(stderr, "hecate-report: %s\n", why);
    if (any) {
        free(watched->page);
        watched->page = NULL;
    }
    if (!sound || (!watched->page && !make_page(watched))) return false;
    return fwrite(watched->page, 1, watched->bytes, out) == watched->bytes;
}

// Until it is ended.
static int watch(struct options *options) {
    const char *why;
    struct watched watched = {.logs = options->logs};
    for (int i = 0; i < options->logs; i++) watched.log[i].path = options->log[i];
    struct hrt_loopback *loopback = hrt_base_loopback_open(options->port, &why);
    if (!loopback) {
        fprintf(stderr, "hecate-report: cannot listen on port %d: %s\n", options->port, why);
        return BAD_INPUT;
    }
    printf("http://127.0.0.1:%d/ shows the run; ctrl-C ends this\n", options->port);
    fflush(stdout);
    hrt_base_loopback_serve(loopback, "/", "text/html; charset=utf-8", answer, &watched);
    hrt_base_loopback_close(loopback);
    free_logs(watched.log, watched.logs);
    free(watched.page);
    return DONE;
}

static int write_once(const struct options *options) {
    struct report_log log[LOGS];
    int read;
    const bool sound = read_logs(options, log, &read);
    for (int i = 0; i < read; i++) tell_repairs(&log[i]);
    const bool written = sound && write_page(options->page, log, read);
    free_logs(log, read);
    return written ? DONE : BAD_INPUT;
}

int main(int argc, char **argv) {
    struct options options = {0};
    hf_hold_standard();
    signal(SIGXFSZ, SIG_IGN); // A write beyond the limit then fails, and is told.
    const int end = parse(&options, argc, argv);
    if (end >= 0) return end;
    if (!check_files(&options)) return BAD_COMMAND;
    return options.port ? watch(&options) : write_once(&options);
}
