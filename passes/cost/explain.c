// Quantities as text.
#include "passes/cost/explain.h"

#include <stdio.h>

#include "runtime/plan/policy.h"

// Three digits that matter: "4.5", "1.03", "112", "1023".
static void write(struct hec_text *to, double value, const char *prefix, const char *of) {
    const char *format = value < 999.5 && value > -999.5 ? "%.3g %s%s" : "%.0f %s%s";
    snprintf(to->text, sizeof to->text, format, value, prefix, of);
}

struct hec_text hec_text_bytes(double bytes) {
    static const char *const prefix[] = {"", "Ki", "Mi", "Gi", "Ti"};
    struct hec_text to;
    int p = 0;
    for (; (bytes >= 1024 || bytes <= -1024) && p < 4; p++) bytes /= 1024;
    write(&to, bytes, prefix[p], "B");
    return to;
}

struct hec_text hec_text_rate(double rate, const char *of) {
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P"};
    struct hec_text to;
    int p = 0;
    for (; rate >= 1000 && p < 5; p++) rate /= 1000;
    write(&to, rate, prefix[p], of);
    return to;
}

struct hec_text hec_text_us(double us) {
    struct hec_text to;
    if (us >= 1e6) {
        write(&to, us / 1e6, "", "s");
    } else if (us >= 1e4) {
        write(&to, us / 1e3, "", "ms");
    } else {
        snprintf(to.text, sizeof to.text, us < 9.95 && us > 0 ? "%.1f us" : "%.0f us", us);
    }
    return to;
}

struct hec_text hec_text_long(double seconds) {
    static const struct {
        double seconds;
        const char *name;
    } unit[] = {{365.25 * 86400, "years"}, {86400, "days"}, {3600, "hours"}, {60, "minutes"}};
    struct hec_text to;
    for (int i = 0; i < 4; i++) {
        if (seconds < 2 * unit[i].seconds) continue;
        write(&to, seconds / unit[i].seconds, "", unit[i].name);
        return to;
    }
    write(&to, seconds, "", "seconds");
    return to;
}

void hec_explain_programs(const struct hpl_policy *policy, FILE *out) {
    if (!*policy->programs) return;
    fprintf(
        out,
        "Counted is the movement of %s's authors. Its programs differ (docs/planner.md):\n%s.\n",
        policy->name, policy->programs);
}
