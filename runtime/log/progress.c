// The progress line.
#include "runtime/log/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LINE_BYTES = 640, COLUMNS = 120 };

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

__attribute__((format(printf, 3, 4))) static void add(char *line, size_t room, const char *format,
                                                      ...) {
    const size_t used = strlen(line);
    va_list values;
    va_start(values, format);
    vsnprintf(line + used, room - used, format, values);
    va_end(values);
}

static void format_time(char *out, size_t bytes, double seconds) {
    const int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, bytes, "%" PRId64 "h%02d", s / 3600, (int)(s / 60 % 60));
    else if (s >= 60)
        snprintf(out, bytes, "%dm%02d", (int)(s / 60), (int)(s % 60));
    else
        snprintf(out, bytes, "%ds", (int)s);
}

// The first matter most: a line that wraps is hard to read.
static void add_where_it_fits(char *line, size_t line_bytes, const struct hrt_progress *progress,
                              const struct hrt_step_report *step) {
    const struct hrt_watch_sums *watched = &step->watched;
    char column[6][32] = {0}, left[32], memory[32];
    if (watched->after > 0) {
        snprintf(column[0], sizeof *column, " | dev %.2f", watched->after);
        snprintf(column[2], sizeof *column, " | +%" PRId64, watched->replicas);
    }
    if (watched->slowest >= 0)
        snprintf(column[1], sizeof *column, " | wait %.0f%%", 100 * watched->waited);
    format_time(left, sizeof left, step->left);
    if (step->left > 0 && step->step < progress->steps)
        snprintf(column[3], sizeof *column, " | %.12s", left);
    if (progress->peak > 0)
        snprintf(column[4], sizeof *column, " | mfu %.0f%%", 100 * step->flops / progress->peak);
    hrt_format_count(memory, sizeof memory, watched->memory);
    if (watched->memory > 0) snprintf(column[5], sizeof *column, " | %.8sB", memory);
    for (int i = 0; i < 6; i++) {
        if (strlen(line) + strlen(column[i]) <= COLUMNS) add(line, line_bytes, "%s", column[i]);
    }
}

void hrt_progress_format(char *line, size_t line_bytes, const struct hrt_progress *progress,
                         const struct hrt_step_report *step) {
    char rate[32];
    hrt_format_count(rate, sizeof rate, step->tokens_per_s);
    snprintf(line, line_bytes, "step %" PRId64 "/%" PRId64 " | loss %.4f", step->step,
             progress->steps, step->loss);
    for (int i = 0; i < step->named.count; i++)
        add(line, line_bytes, " | %s %.4f", step->named.loss[i].name, step->named.value[i]);
    add(line, line_bytes, " | aux %.4g | gnorm %.3g | lr %.1e | %.1f ms | %s tok/s",
        step->auxiliary, step->grad_norm, step->lr, 1e3 * step->seconds, rate);
    if (progress->experts) add(line, line_bytes, " | load %.2f", step->imbalance);
    if (step->evaluated) add(line, line_bytes, " | val %.4f", step->validation_loss);
    add_where_it_fits(line, line_bytes, progress, step);
}

// Cuts the line to the terminal's width: a wrapped line cannot be redrawn.
static void cut(char *line, FILE *out) {
    struct winsize size;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return;
    if (strlen(line) >= size.ws_col) line[size.ws_col - 1] = '\0';
}

bool hrt_progress_step(struct hrt_progress *progress, const struct hrt_step_report *step) {
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
