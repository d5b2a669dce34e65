// One thread, one lock, one text.
#include "runtime/log/metrics.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#include "runtime/base/loopback.h"
#include "runtime/log/numbers.h"

static bool write_text(void *context, FILE *out) {
    struct hrt_metrics *metrics = context;
    pthread_mutex_lock(&metrics->lock);
    fputs(metrics->text, out);
    pthread_mutex_unlock(&metrics->lock);
    return true;
}

static void *answer(void *context) {
    const struct hrt_metrics *metrics = context;
    hrt_base_loopback_serve(metrics->loopback, "/metrics", "text/plain; version=0.0.4", write_text,
                            context);
    return NULL;
}

// Signals are for the thread that trains.
static bool start(struct hrt_metrics *metrics) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int failed = pthread_create(&metrics->thread, NULL, answer, metrics);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !failed;
}

bool hrt_log_metrics_open(struct hrt_metrics *metrics, int port, struct hrt_error *error) {
    const char *why;
    *metrics = (struct hrt_metrics){.lock = PTHREAD_MUTEX_INITIALIZER};
    if (!port) return true;
    metrics->loopback = hrt_base_loopback_open(port, &why);
    if (!metrics->loopback) return hrt_fail(error, "cannot listen on port %d: %s", port, why);
    if (start(metrics)) return true;
    hrt_base_loopback_close(metrics->loopback);
    metrics->loopback = NULL;
    return hrt_fail(error, "cannot start a thread for --metrics");
}

// "balance/after" as "hecate_balance_after".
static void name_of(const char *tag, char name[64]) {
    snprintf(name, 64, "hecate_%s", tag);
    for (char *at = name; *at; at++) {
        if (*at == '/') *at = '_';
    }
}

static void print(FILE *out, const char *tag, const char *help, double value) {
    char name[64];
    name_of(tag, name);
    fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n%s ", name, help, name, name);
    if (isfinite(value))
        fprintf(out, "%.9g\n", value);
    else
        fprintf(out, "%s\n", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
}

void hrt_log_metrics_step(struct hrt_metrics *metrics, const struct hrt_step_report *step,
                          double peak, const char *program) {
    struct hrt_number_of number[HRT_NUMBERS_OF];
    char text[sizeof metrics->text] = "";
    if (!metrics->loopback) return;
    FILE *out = fmemopen(text, sizeof text, "w");
    if (!out) return;
    const int count = hrt_log_numbers_of(step, peak, number);
    fprintf(out, "# TYPE hecate_run_info gauge\nhecate_run_info{program=\"%s\"} 1\n", program);
    print(out, "step", "steps that are done", (double)step->step);
    for (int i = 0; i < count; i++) print(out, number[i].tag, number[i].help, number[i].value);
    fclose(out);
    pthread_mutex_lock(&metrics->lock);
    memcpy(metrics->text, text, sizeof text);
    pthread_mutex_unlock(&metrics->lock);
}

void hrt_log_metrics_close(struct hrt_metrics *metrics) {
    if (!metrics->loopback) return;
    hrt_base_loopback_stop(metrics->loopback);
    pthread_join(metrics->thread, NULL);
    hrt_base_loopback_close(metrics->loopback);
    pthread_mutex_destroy(&metrics->lock);
    *metrics = (struct hrt_metrics){0};
}
