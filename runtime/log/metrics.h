// Numbers of the last step as Prometheus reads them, at a port of this machine.
#ifndef HECATE_RUNTIME_LOG_METRICS_H
#define HECATE_RUNTIME_LOG_METRICS_H

#include <pthread.h>
#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/train/trainer.h"

struct hrt_loopback; // runtime/base/loopback.h

struct hrt_metrics {
    struct hrt_loopback *loopback; // NULL: nobody is answered.
    pthread_t thread;
    pthread_mutex_t lock;
    char text[8192]; // Text of the last step.
};

// Answers GET /metrics of 127.0.0.1:port by a thread of its own, which sleeps between requests. Port 0: nothing. False:
// the port is taken, or may not be used.
bool hrt_log_metrics_open(struct hrt_metrics *metrics, int port, struct hrt_error *error);

// From now on these are the numbers. `peak` as numbers.h; `program` is borrowed for the call.
void hrt_log_metrics_step(struct hrt_metrics *metrics, const struct hrt_step_report *step,
                          double peak, const char *program);

// Also of a zeroed one.
void hrt_log_metrics_close(struct hrt_metrics *metrics);

#endif
