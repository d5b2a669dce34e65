// plan.c: see plan.h.
#include "runtime/plan/plan.h"

int32_t hpl_even_owner(int64_t expert, int64_t experts, int64_t devices) {
    const int64_t each = experts / devices, more = experts % devices;
    if (expert < more * (each + 1)) return (int32_t)(expert / (each + 1));
    return (int32_t)(more + (expert - more * (each + 1)) / each);
}

enum hpl_status hpl_plan_copy(struct hpl_plan *to, const struct hpl_plan *from) {
    const int32_t holders = from->first[from->experts];
    if (to->capacity < holders) return HPL_NO_ROOM;
    to->experts = from->experts;
    for (int32_t e = 0; e <= from->experts; e++) to->first[e] = from->first[e];
    for (int32_t k = 0; k < holders; k++) to->holder[k] = from->holder[k];
    return HPL_OK;
}

enum hpl_status hpl_plan_of_owners(struct hpl_plan *to, int32_t experts, const int32_t *owner) {
    if (to->capacity < experts) return HPL_NO_ROOM;
    to->experts = experts;
    for (int32_t e = 0; e <= experts; e++) to->first[e] = e;
    for (int32_t e = 0; e < experts; e++) to->holder[e] = owner[e];
    return HPL_OK;
}

enum hpl_status hpl_plan_with_owners(struct hpl_plan *to, const struct hpl_plan *plan,
                                     const int32_t *owner) {
    int32_t count = 0;
    to->experts = plan->experts;
    for (int32_t e = 0; e < plan->experts; e++) {
        const int32_t end = plan->first[e + 1];
        int32_t k = plan->first[e];
        bool listed = false;
        to->first[e] = count;
        while (k < end || !listed) {
            const bool own_next = !listed && (k == end || plan->holder[k] >= owner[e]);
            const int32_t holder = own_next ? owner[e] : plan->holder[k];
            if (!own_next || (k < end && plan->holder[k] == owner[e])) k++;
            listed |= own_next;
            if (count == to->capacity) return HPL_NO_ROOM;
            to->holder[count++] = holder;
        }
    }
    to->first[plan->experts] = count;
    return HPL_OK;
}

enum hpl_status hpl_plan_added(struct hpl_plan *to, const struct hpl_plan *before,
                               const struct hpl_plan *now, const int32_t *owner) {
    int32_t count = 0;
    to->experts = now->experts;
    for (int32_t e = 0; e < now->experts; e++) {
        int32_t b = before->first[e];
        to->first[e] = count;
        for (int32_t k = now->first[e]; k < now->first[e + 1]; k++) {
            const bool there = b < before->first[e + 1] && before->holder[b] == now->holder[k];
            b += there;
            if (there && now->holder[k] != owner[e]) continue;
            if (count == to->capacity) return HPL_NO_ROOM;
            to->holder[count++] = now->holder[k];
        }
    }
    to->first[now->experts] = count;
    return HPL_OK;
}

bool hpl_plan_holds(const struct hpl_plan *plan, int32_t expert, int32_t device) {
    for (int32_t k = plan->first[expert]; k < plan->first[expert + 1]; k++) {
        if (plan->holder[k] == device) return true;
    }
    return false;
}
