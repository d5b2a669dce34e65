// Logs of runs, for hecate-report.
//
// Promises: a refusal says why; the data of the page is JSON, has what was kept, in order, and cannot end the element
// that it stands in.
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/report/embedded.h"
#include "tools/report/page.h"

// The page's style and script are not tested.
const unsigned char report_style[1], report_script[1];
const size_t report_style_bytes = 0, report_script_bytes = 0;

static const char begin[] = "type=\"application/json\">", end[] = "</script>";

// The page's data, between its element's ends.
static json_t *data_of(char *page) {
    char *text = strstr(page, begin);
    if (!text) fuzz_broken("a page has data");
    text += sizeof begin - 1;
    char *last = strstr(text, end);
    if (!last || !strstr(last, "</body></html>")) fuzz_broken("a page ends");
    *last = '\0';
    if (strchr(text, '<')) fuzz_broken("data cannot end its element");
    json_t *data = json_loads(text, 0, NULL);
    if (json_array_size(data) != 2) fuzz_broken("the data of both runs is JSON");
    return data;
}

static void check_run(const json_t *run, const struct report_log *log) {
    const json_t *shots = json_object_get(run, "snapshots");
    double before = 0;
    if (json_integer_value(json_object_get(run, "rows")) != log->rows)
        fuzz_broken("the data has the log's steps");
    if (json_array_size(shots) > REPORT_SNAPSHOTS) fuzz_broken("few layers are kept");
    for (size_t i = 0; i < json_array_size(shots); i++) {
        const double step = json_number_value(json_object_get(json_array_get(shots, i), "step"));
        if (i > 0 && step <= before) fuzz_broken("steps are in order");
        before = step;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_file(0, data, size);
    struct report_log log[2];
    char why[REPORT_WHY] = "";
    if (!report_log_read(&log[0], path, why)) {
        if (!*why) fuzz_broken("a refusal says why");
        return 0;
    }
    log[1] = log[0];
    char *page = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&page, &bytes);
    if (!out || !report_page(out, log, 2, false)) fuzz_broken("a page is written");
    fclose(out);
    json_t *runs = data_of(page);
    check_run(json_array_get(runs, 0), log);
    json_decref(runs);
    free(page);
    report_log_free(log);
    return 0;
}
