// The progress line.
#include "runtime/log/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/log/objective.h"

enum { LINE_BYTES = 1024 };

static const double redraw_every = 0.05; // Seconds: no eye is faster, and a terminal may be slow.

void hrt_log_format_count(char *out, size_t out_bytes, double number) {
    static const char *const unit[] = {"", "k", "M", "G", "T"};
    int i = 0;
    for (; number >= 999.5 && i < 4; i++) number /= 1000;
    const int decimals = i == 0 || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
    snprintf(out, out_bytes, "%.*f%s", decimals, number, unit[i]);
}

void hrt_log_progress_start(struct hrt_progress *progress, FILE *out, int64_t steps, int64_t every,
                            bool experts, bool alone) {
    const char *term = getenv("TERM");
    *progress = (struct hrt_progress){
        .out = out,
        .redraws = alone && isatty(fileno(out)) && term && *term && strcmp(term, "dumb") != 0,
        .steps = steps,
        .every = every,
        .experts = experts,
    };
}

struct line {
    char *text;
    size_t room, width, used; // `width` is less than `room`.
    bool full;
};

// A column that does not fit ends the line: those behind it matter less.
__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...) {
    char column[LINE_BYTES];
    va_list values;
    va_start(values, format);
    const int bytes = vsnprintf(column, sizeof column, format, values);
    va_end(values);
    const size_t apart = line->used ? 3 : 0;
    if (line->full || line->used + apart + (size_t)bytes > line->width) {
        line->full = true;
        return;
    }
    snprintf(line->text + line->used, line->room - line->used, "%s%s", apart ? " | " : "", column);
    line->used += apart + (size_t)bytes;
}

static struct line begin_line(char *text, size_t room, size_t width) {
    *text = '\0';
    return (struct line){
        .text = text, .room = room, .width = width && width < room ? width : room - 1};
}

static void format_time(char *out, size_t bytes, double seconds) {
    const int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 86400)
        snprintf(out, bytes, "%" PRId64 "d%02d", s / 86400, (int)(s / 3600 % 24));
    else if (s >= 3600)
        snprintf(out, bytes, "%" PRId64 "h%02d", s / 3600, (int)(s / 60 % 60));
    else if (s >= 60)
        snprintf(out, bytes, "%dm%02d", (int)(s / 60), (int)(s % 60));
    else
        snprintf(out, bytes, "%ds", (int)s);
}

// "step 120/20000  ", as wide at each step.
static void add_step(struct line *line, const struct hrt_progress *progress, int64_t step) {
    char of[64];
    const int last = snprintf(of, sizeof of, "%" PRId64, progress->steps);
    snprintf(of, sizeof of, "%" PRId64 "/%" PRId64, step, progress->steps);
    add(line, "step %-*s", 2 * last + 1, of);
}

// The means of preferences or rollouts.
static void add_objective(struct line *line, const struct hrt_step_report *step) {
    struct hrt_objective_number number[HRT_OBJECTIVE_NUMBERS];
    const char *section;
    const int count = hrt_log_objective_of(step, number, &section);
    for (int i = 0; i < count; i++) add(line, "%s %.3g", number[i].name, number[i].value);
}

// Numbers are as wide as they mostly are, so that lines stand below each other.
void hrt_log_progress_format(char *text, size_t text_bytes, size_t width,
                             const struct hrt_progress *progress,
                             const struct hrt_step_report *step) {
    const struct hrt_watch_sums *watched = &step->watched;
    struct line line = begin_line(text, text_bytes, width);
    char rate[32], left[32], memory[32];
    hrt_log_format_count(rate, sizeof rate, step->tokens_per_s);
    format_time(left, sizeof left, step->left);
    hrt_log_format_count(memory, sizeof memory, watched->memory);
    add_step(&line, progress, step->step);
    add(&line, "loss %.4f", step->loss);
    add(&line, "%5s tok/s", rate);
    add(&line, "%5s left", left);
    if (progress->experts) add(&line, "load %.2f", step->routers.load);
    for (int i = 0; i < step->named.count; i++)
        add(&line, "%s %.4f", step->named.loss[i].name, step->named.value[i]);
    add_objective(&line, step);
    add(&line, "lr %.1e", step->lr);
    add(&line, "gnorm %5.3g", step->grad_norm);
    add(&line, "%6.*f ms", step->seconds < 100 ? 1 : 0, 1e3 * step->seconds);
    if (watched->slowest >= 0) add(&line, "wait %2.0f%%", 100 * watched->waited);
    if (watched->after > 0) {
        add(&line, "rank load %.2f", watched->after);
        add(&line, "replicas %" PRId64, watched->replicas);
    }
    if (progress->peak > 0) add(&line, "mfu %2.0f%%", 100 * step->flops / progress->peak);
    if (progress->experts) {
        add(&line, "entropy %.2f", step->routers.entropy);
        add(&line, "dead %" PRId64, step->routers.dead);
    }
    if (watched->memory > 0) add(&line, "mem %sB", memory);
    add(&line, "aux %.4g", step->auxiliary);
}

static void format_validation(char *text, size_t text_bytes, size_t width,
                              const struct hrt_progress *progress,
                              const struct hrt_step_report *step) {
    struct line line = begin_line(text, text_bytes, width);
    add_step(&line, progress, step->step);
    add(&line, "val %.4f", step->validation.loss);
    for (int i = 0; i < step->named.count; i++)
        add(&line, "val %s %.4f", step->named.loss[i].name, step->validation.named[i]);
    const struct hrt_data *data = progress->data;
    for (int i = 0; data && data->val_sources > 1 && i < data->val_sources; i++)
        add(&line, "%.*s %.4f", data->val_source[i].name_bytes, data->val_source[i].name,
            step->validation.source_loss[i]);
}

// Width of the terminal that `out` is: a line that wraps cannot be redrawn, and is hard to read. 0: files have no
// width, nor have the terminals that launchers make.
static size_t width_of(FILE *out) {
    struct winsize size;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return 0;
    return size.ws_col - 1U;
}

static void draw(struct hrt_progress *progress, const char *line) {
    fprintf(progress->out, progress->redraws ? "\r%s\033[K" : "%s\n", line);
    progress->dirty = progress->redraws;
    progress->unseen = 0;
}

bool hrt_log_progress_step(struct hrt_progress *progress, const struct hrt_step_report *step) {
    const bool kept = step->evaluated || step->step == progress->steps || step->step == 1;
    progress->unseen += step->seconds;
    const bool due =
        progress->redraws ? progress->unseen >= redraw_every : step->step % progress->every == 0;
    if (!kept && !due) return true;
    char line[LINE_BYTES];
    const size_t width = width_of(progress->out);
    hrt_log_progress_format(line, sizeof line, width, progress, step);
    draw(progress, line);
    if (kept) hrt_log_progress_end_line(progress);
    if (step->evaluated) {
        format_validation(line, sizeof line, width, progress, step);
        fprintf(progress->out, "%s\n", line);
    }
    return fflush(progress->out) == 0;
}

void hrt_log_progress_end_line(struct hrt_progress *progress) {
    if (progress->dirty) fputc('\n', progress->out);
    progress->dirty = false;
}
