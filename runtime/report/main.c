// hecate-report: what was this run like?
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/report/log.h"
#include "runtime/report/page.h"

enum { DONE = 0, BAD_INPUT = 1, BAD_COMMAND = 2, LOGS = 2 };

static const char help[] = "usage: hecate-report RUN.jsonl [OTHER.jsonl] -o PAGE.html\n"
                           "\n"
                           "Writes a page of a run that was logged by --log, or of two side by "
                           "side: one file, which needs no network.\n"
                           "Loads and placement are in it where the run had --set log.loads=N.\n"
                           "\n"
                           "  -o, --output FILE   the page\n"
                           "  -h, --help          this text\n";

struct options {
    const char *log[LOGS], *page;
    int logs;
};

// Returns what to end with; -1: go on.
static int parse(struct options *options, int argc, char **argv) {
    static const struct option known[] = {
        {"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {0}};
    int option;
    while ((option = getopt_long(argc, argv, "o:h", known, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return DONE;
        }
        if (option != 'o') return BAD_COMMAND; // getopt has said why.
        options->page = optarg;
    }
    for (; optind < argc && options->logs < LOGS; optind++)
        options->log[options->logs++] = argv[optind];
    if (optind == argc && options->logs > 0 && options->page) return -1;
    fprintf(stderr, "hecate-report: %s (hecate-report --help)\n",
            optind < argc        ? "at most two logs"
            : options->logs == 0 ? "which log?"
                                 : "where to? give -o PAGE.html");
    return BAD_COMMAND;
}

// Whether the page is none of the logs.
static bool check_files(const struct options *options) {
    char why[HF_WHY];
    struct hf_files files = {0};
    bool sound = true;
    for (int i = 0; sound && i < options->logs; i++)
        sound =
            hf_files_add(&files, HF_READ, i ? "the other log" : "the log", options->log[i], why);
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

int main(int argc, char **argv) {
    struct options options = {0};
    struct report_log log[LOGS];
    char why[REPORT_WHY];
    hf_hold_standard();
    signal(SIGXFSZ, SIG_IGN); // A write beyond the limit then fails, and is told.
    const int end = parse(&options, argc, argv);
    if (end >= 0) return end;
    if (!check_files(&options)) return BAD_COMMAND;
    int read = 0;
    while (read < options.logs && report_log_read(&log[read], options.log[read], why))
        tell_repairs(&log[read++]);
    const bool sound = read == options.logs;
    if (!sound) fprintf(stderr, "hecate-report: %s\n", why);
    const bool written = sound && write_page(options.page, log, read);
    for (int i = 0; i < read; i++) report_log_free(&log[i]);
    return written ? DONE : BAD_INPUT;
}
