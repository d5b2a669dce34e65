// The progress line.
#include "runtime/log/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LINE_BYTES = 256 };

void hrt_format_count(char *out, size_t out_bytes, double number) {
    static const char *const unit[] = {"", "k", "M", "G", "T"};
    int i = 0;
    for (; number >= 999.5 && i < 4; i++) number /= 1000;
    const int decimals = i == 0 || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
    snprintf(out, out_bytes, "%.*f%s", decimals, number, unit[i]);
}

void hrt_progress_start(struct hrt_progress *progress, FILE *out, int64_t steps, int64_t every,
                        bool experts) {
    const char *term = getenv("TERM");
    *progress = (struct hrt_progress){
        .out = out,
        .terminal = isatty(fileno(out)) && term && *term && strcmp(term, "dumb") != 0,
        .steps = steps,
        .every = every,
        .experts = experts,
    };
}

void hrt_progress_format(char *line, size_t line_bytes, const struct hrt_progress *progress,
                         const struct hrt_step *step) {
    char rate[32], load[32] = "", validation[32] = "";
    hrt_format_count(rate, sizeof rate, step->tokens_per_s);
    if (progress->experts) snprintf(load, sizeof load, " | load %.2f", step->imbalance);
    if (step->evaluated)
        snprintf(validation, sizeof validation, " | val %.4f", step->validation_loss);
    snprintf(line, line_bytes,
             "step %" PRId64 "/%" PRId64
             " | loss %.4f | aux %.4g | gnorm %.3g | lr %.1e | %.1f ms | %s tok/s%s%s",
             step->step, progress->steps, step->loss, step->auxiliary, step->grad_norm, step->lr,
             1e3 * step->seconds, rate, load, validation);
}

// Cuts the line to the terminal's width: a wrapped line cannot be redrawn.
static void cut(char *line, FILE *out) {
    struct winsize size;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return;
    if (strlen(line) >= size.ws_col) line[size.ws_col - 1] = '\0';
}

bool hrt_progress_step(struct hrt_progress *progress, const struct hrt_step *step) {
    const bool kept = step->evaluated || step->step == progress->steps || step->step == 1;
    if (!progress->terminal && !kept && step->step % progress->every != 0) return true;
    char line[LINE_BYTES];
    hrt_progress_format(line, sizeof line, progress, step);
    if (progress->terminal) {
        cut(line, progress->out);
        fprintf(progress->out, "\r%s\033[K", line);
        progress->dirty = true;
        if (kept) hrt_progress_end_line(progress);
    } else {
        fprintf(progress->out, "%s\n", line);
    }
    return fflush(progress->out) == 0;
}

void hrt_progress_end_line(struct hrt_progress *progress) {
    if (progress->dirty) fputc('\n', progress->out);
    progress->dirty = false;
}
