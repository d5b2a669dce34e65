// Numbers with units: "4096", "1e-5", "4Ki", "80GB", "450GB/s", "2us".
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lang/scan.h"

struct factor {
    const char *text;
    double value;
};

static const struct factor prefixes[] = {
    {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
    {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
};

static const struct {
    const char *text;
    enum hec_measure measure;
    double value;
    bool prefixed; // Takes k, Mi and the like.
} units[] = {
    {"", HEC_PLAIN, 1, true},
    {"B", HEC_BYTES, 1, true},
    {"B/s", HEC_BYTES_PER_SECOND, 1, true},
    {"bit/s", HEC_BYTES_PER_SECOND, 0.125, true},
    {"FLOPS", HEC_FLOPS, 1, true},
    {"s", HEC_SECONDS, 1, false},
    {"ms", HEC_SECONDS, 1e-3, false},
    {"us", HEC_SECONDS, 1e-6, false},
    {"ns", HEC_SECONDS, 1e-9, false},
};

const char *const hec_units_text =
    "k M G T (decimal) or Ki Mi Gi Ti (binary), then B, B/s, bit/s or FLOPS; s, ms, us, ns";

static bool find_unit(const char *text, bool prefixed, double factor, struct hec_number *number) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text, units[i].text) || (prefixed && !units[i].prefixed)) continue;
        number->measure = units[i].measure;
        number->value *= factor;
        // 2us as 2 / 1e6 rounds once; 2 * 1e-6 would round twice.
        number->value = units[i].value >= 1 ? number->value * units[i].value
                                            : number->value / (1 / units[i].value);
        return true;
    }
    return false;
}

bool hec_number_read(const char *text, struct hec_number *number) {
    char *unit = NULL;
    *number = (struct hec_number){.value = strtod(text, &unit)};
    bool known = find_unit(unit, false, 1, number);
    for (size_t i = 0; !known && i < sizeof prefixes / sizeof *prefixes; i++) {
        const size_t length = strlen(prefixes[i].text);
        if (strncmp(unit, prefixes[i].text, length)) continue;
        known = find_unit(unit + length, true, prefixes[i].value, number);
    }
    number->integral = isfinite(number->value) && number->value == floor(number->value) &&
                       fabs(number->value) <= 0x1p53;
    return known && unit != text && isfinite(number->value);
}

bool hec_count_read(const char *text, int64_t *count) {
    struct hec_number number;
    if (!hec_number_read(text, &number) || !number.integral) return false;
    *count = (int64_t)number.value;
    return true;
}

const char *hec_number_text(struct hec_arena *arena, double value) {
    // A whole number in digits, as readers of counts expect: 1e15 would be "1e+15".
    if (value == floor(value) && fabs(value) <= 0x1p53)
        return hec_arena_format(arena, "%.0f", value + 0.0); // No "-0".
    const char *text = hec_arena_format(arena, "%.15g", value);
    if (strtod(text, NULL) != value) text = hec_arena_format(arena, "%.17g", value);
    return text;
}
