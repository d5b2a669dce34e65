// Candidates of a search, kept in the module for reports, which search nothing anew.
#include <string.h>

#include "ir/accessors.h"
#include "passes/timeline/search.h"

enum hec_differs hec_differs_in(const struct hec_candidate *a, const struct hec_candidate *b) {
    const struct hpl_movement *m = &a->movement, *n = &b->movement;
    const bool differ[HEC_DIFFERS] = {m->overlap != n->overlap,
                                      m->slots != n->slots,
                                      m->rematerialize != n->rematerialize,
                                      m->calibrate != n->calibrate,
                                      m->lifetime != n->lifetime,
                                      m->import_discount != n->import_discount};
    enum hec_differs in = HEC_DIFFERS;
    int count = 0;
    for (int i = 0; i < HEC_DIFFERS; i++) {
        if (differ[i]) in = (enum hec_differs)i, count++;
    }
    return count == 1 ? in : HEC_DIFFERS;
}

static bool is_nearer(const struct hec_candidate *a, const struct hec_candidate *b) {
    if (a->fits != b->fits) return a->fits;
    return a->detail != b->detail ? a->detail > b->detail : a->us < b->us;
}

// The nearest that differs from the chosen one in this choice alone; -1: none does.
static int nearest(const struct hec_search *s, enum hec_differs of) {
    int near = -1;
    for (int i = 0; i < s->count; i++) {
        if (hec_differs_in(&s->candidate[i], &s->candidate[s->chosen]) == of &&
            (near < 0 || is_nearer(&s->candidate[i], &s->candidate[near])))
            near = i;
    }
    return near;
}

static MlirAttribute candidate_attr(MlirContext c, const struct hec_candidate *of) {
    const struct hpl_movement *m = &of->movement;
    const MlirNamedAttribute entry[] = {
        hec_attr_int(c, "overlap", m->overlap),
        hec_attr_int(c, "slots", m->slots),
        hec_attr_bool(c, "rematerialize", m->rematerialize),
        hec_attr_string(c, "calibrate", hec_calibrate_name(m->calibrate)),
        hec_attr_string(c, "lifetime", hec_lifetime_name(m->lifetime)),
        hec_attr_int(c, "import_discount", m->import_discount),
        hec_attr_float(c, "us", of->us),
        hec_attr_int(c, "replica_bytes", of->replica_bytes),
        hec_attr_bool(c, "fits", of->fits),
    };
    return mlirDictionaryAttrGet(c, sizeof entry / sizeof *entry, entry);
}

void hec_compared_write(MlirOperation module, const struct hec_search *s) {
    const MlirContext c = mlirOperationGetContext(module);
    MlirAttribute told[2 + HEC_DIFFERS];
    int place[2 + HEC_DIFFERS], count = 0, singles = 0;
    for (int i = 0; i < s->count; i++) singles += s->candidate[i].detail > HEC_DETAIL_SUMS;
    place[count++] = s->chosen;
    if (s->second >= 0) place[count++] = s->second;
    for (int of = 0; of < HEC_DIFFERS; of++) {
        const int near = nearest(s, (enum hec_differs)of);
        if (near >= 0) place[count++] = near;
    }
    for (int i = 0; i < count; i++) told[i] = candidate_attr(c, &s->candidate[place[i]]);
    const MlirNamedAttribute entry[] = {
        hec_attr_int(c, "count", s->count),
        hec_attr_int(c, "singles", singles),
        hec_attr(c, "told", mlirArrayAttrGet(c, count, told)),
    };
    hec_module_put_searched(module, mlirDictionaryAttrGet(c, 3, entry));
}

// ---- reading

static MlirAttribute value_of(MlirAttribute from, const char *key) {
    return mlirDictionaryAttrGetElementByName(from, HEC_STR(key));
}

static bool read_int(MlirAttribute from, const char *key, int64_t *number) {
    const MlirAttribute value = value_of(from, key);
    if (mlirAttributeIsNull(value) || !mlirAttributeIsAInteger(value)) return false;
    *number = mlirIntegerAttrGetValueInt(value);
    return *number >= 0;
}

static bool read_bool(MlirAttribute from, const char *key, bool *flag) {
    const MlirAttribute value = value_of(from, key);
    if (mlirAttributeIsNull(value) || !mlirAttributeIsABool(value)) return false;
    *flag = mlirBoolAttrGetValue(value);
    return true;
}

static MlirStringRef text_of(MlirAttribute from, const char *key) {
    const MlirAttribute value = value_of(from, key);
    const bool text = !mlirAttributeIsNull(value) && mlirAttributeIsAString(value);
    return text ? mlirStringAttrGetValue(value) : HEC_STR("");
}

static bool read_candidate(MlirAttribute from, struct hec_candidate *c) {
    struct hpl_movement *m = &c->movement;
    if (!mlirAttributeIsADictionary(from)) return false;
    const MlirAttribute us = value_of(from, "us");
    if (mlirAttributeIsNull(us) || !mlirAttributeIsAFloat(us)) return false;
    c->us = mlirFloatAttrGetValueDouble(us);
    return c->us > 0 && read_int(from, "overlap", &m->overlap) &&
           read_int(from, "slots", &m->slots) &&
           read_bool(from, "rematerialize", &m->rematerialize) &&
           hec_calibrate_find(text_of(from, "calibrate"), &m->calibrate) &&
           hec_lifetime_find(text_of(from, "lifetime"), &m->lifetime) &&
           read_int(from, "import_discount", &m->import_discount) &&
           read_int(from, "replica_bytes", &c->replica_bytes) && read_bool(from, "fits", &c->fits);
}

void hec_compared_read(MlirOperation module, struct hec_search *s) {
    s->count = s->most = s->singles = 0;
    s->chosen = 0, s->second = 1;
    if (!hec_module_has_searched(module)) return;
    const MlirAttribute all = hec_module_searched(module);
    int64_t compared, singles;
    const MlirAttribute told = value_of(all, "told");
    if (!read_int(all, "count", &compared) || !read_int(all, "singles", &singles) ||
        mlirAttributeIsNull(told) || !mlirAttributeIsAArray(told) ||
        mlirArrayAttrGetNumElements(told) > HEC_CANDIDATES_MAX)
        return;
    for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(told); i++) {
        if (!read_candidate(mlirArrayAttrGetElement(told, i), &s->candidate[i])) return;
    }
    s->count = (int)mlirArrayAttrGetNumElements(told);
    s->most = (int)compared;
    s->singles = (int)singles;
}
