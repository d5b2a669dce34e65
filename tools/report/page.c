// Data as JSON inside of a page whose style and script the build has embedded (page/).
#include "tools/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/embedded.h"

enum { DIGITS = 6 }; // More than a screen shows.

// Null where there is no number.
static json_t *number(double value, int digits) {
    if (!isfinite(value)) return json_null();
    if (value == floor(value) && fabs(value) < 9e15) return json_integer((json_int_t)value);
    char text[32];
    snprintf(text, sizeof text, "%.*g", digits, value);
    return json_real(strtod(text, NULL));
}

// The same list with all of its numbers rounded to what a screen shows; `list` is given back.
static json_t *rounded(json_t *list) {
    const char *key;
    json_t *value, *copy = NULL;
    size_t i;
    if (json_is_object(list)) {
        copy = json_object();
        json_object_foreach(list, key, value)
            json_object_set_new(copy, key, rounded(json_incref(value)));
    } else if (json_is_array(list)) {
        copy = json_array();
        json_array_foreach(list, i, value) json_array_append_new(copy, rounded(json_incref(value)));
    } else if (json_is_real(list)) {
        copy = number(json_real_value(list), 4);
    }
    if (!copy) return list;
    json_decref(list);
    return copy;
}

static json_t *columns_of(const struct report_log *log) {
    int64_t count;
    int64_t *row = report_log_thin(log, REPORT_POINTS, &count);
    json_t *columns = json_object();
    for (int c = 0; row && c < REPORT_COLUMNS; c++) {
        json_t *list = json_array();
        bool any = false;
        for (int64_t i = 0; i < count; i++) {
            const double value = log->row[row[i]].of[c];
            any = any || isfinite(value);
            json_array_append_new(list, number(value, DIGITS));
        }
        if (any)
            json_object_set_new(columns, report_column_name((enum report_column)c), list);
        else
            json_decref(list);
    }
    json_t *losses = json_object();
    for (int l = 0; row && l < REPORT_LOSSES && log->loss[l]; l++) {
        json_t *list = json_array();
        for (int64_t i = 0; i < count; i++)
            json_array_append_new(list, number(log->row[row[i]].loss[l], DIGITS));
        json_object_set_new(losses, log->loss[l], list);
    }
    json_object_set_new(columns, "losses", losses);
    free(row);
    return columns;
}

// How often each rank was the one that others waited for: of all steps, not only of those that are drawn.
static json_t *slowest_of(const struct report_log *log) {
    enum { MOST = 4096 };
    static int64_t times[MOST];
    int ranks = 0;
    memset(times, 0, sizeof times);
    for (int64_t i = 0; i < log->rows; i++) {
        const double rank = log->row[i].of[REPORT_SLOWEST];
        if (!(rank >= 0 && rank < MOST)) continue;
        times[(int)rank]++;
        if (rank >= ranks) ranks = (int)rank + 1;
    }
    json_t *list = json_array();
    for (int r = 0; r < ranks; r++) json_array_append_new(list, json_integer(times[r]));
    return list;
}

static json_t *repairs_of(const struct report_log *log) {
    json_t *list = json_array();
    if (log->cut) json_array_append_new(list, json_string("the last line is cut off and left out"));
    if (log->spoilt)
        json_array_append_new(
            list, json_sprintf("%lld lines are none of a log and left out; the first is line %lld",
                               (long long)log->spoilt, (long long)log->first_spoilt));
    if (log->repeated)
        json_array_append_new(
            list,
            json_sprintf("%lld steps were told twice, as after a resume: the later lines count",
                         (long long)log->repeated));
    return list;
}

// A name is any bytes; JSON holds those that are UTF-8.
static json_t *name_of(const char *path) {
    json_t *name = json_string(path);
    if (name) return name;
    char *shown = strdup(path);
    for (char *at = shown; at && *at; at++) {
        if ((unsigned char)*at >= 0x80) *at = '?';
    }
    name = json_string(shown ? shown : "?");
    free(shown);
    return name;
}

static json_t *run_of(const struct report_log *log) {
    return json_pack("{s:o s:O? s:I s:o s:o s:o s:o s:o}", "path", name_of(log->path), "run",
                     log->run, "rows", (json_int_t)log->rows, "steps", columns_of(log), "slowest",
                     slowest_of(log), "repairs", repairs_of(log), "snapshots",
                     report_kept_list(&log->snapshots), "routers",
                     rounded(report_kept_list(&log->routers)));
}

// Text of JSON in which nothing can end the element that it stands in.
static bool write_escaped(FILE *out, const char *text) {
    for (const char *at = text; *at; at++) {
        if (*at == '<')
            fputs("\\u003c", out);
        else
            fputc(*at, out);
    }
    return !ferror(out);
}

bool report_page(FILE *out, const struct report_log *log, int logs, bool watched) {
    json_t *runs = json_array();
    for (int i = 0; i < logs; i++) json_array_append_new(runs, run_of(&log[i]));
    const bool whole = json_array_size(runs) == (size_t)logs; // None was out of memory.
    char *text =
        !whole ? NULL : json_dumps(runs, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
    json_decref(runs);
    if (!text) return false;
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
          out);
    if (watched) fputs("<meta http-equiv=\"refresh\" content=\"10\">\n", out);
    fputs("<title>hecate report</title>\n<style>\n", out);
    fwrite(report_style, 1, report_style_bytes, out);
    fputs("</style></head>\n<body>\n<main id=\"page\"><noscript>This page draws with its own "
          "script, which is "
          "switched off.</noscript></main>\n<script id=\"data\" type=\"application/json\">",
          out);
    write_escaped(out, text);
    fputs("</script>\n<script>\n", out);
    fwrite(report_script, 1, report_script_bytes, out);
    fputs("</script>\n</body></html>\n", out);
    free(text);
    return fflush(out) == 0 && !ferror(out);
}
