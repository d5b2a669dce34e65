// rounds.c: transfers in the order of their rounds, and their mirror.
//
// An executor that asks for all messages of a round at once asks for the same ones on both sides of each, since ranks walk
// through the rounds of one list.
#include "runtime/plan/rounds.h"

#include "runtime/plan/slots.h"
#include "runtime/plan/work.h"

static int32_t last_round(const struct hpl_schedule *schedule) {
    int64_t last = 0;
    for (int32_t i = 0; i < schedule->count; i++) last = hpl_max(last, schedule->transfer[i].round);
    return (int32_t)last;
}

// Where each transfer goes: behind those of earlier rounds, and of its own that stand before it.
static void find_places(const struct hpl_schedule *schedule, int32_t *begin, int32_t rounds,
                        int32_t *place) {
    hpl_zero_i32(begin, (int64_t)rounds + 2);
    for (int32_t i = 0; i < schedule->count; i++) begin[schedule->transfer[i].round + 1]++;
    for (int32_t r = 0; r <= rounds; r++) begin[r + 1] += begin[r];
    for (int32_t i = 0; i < schedule->count; i++) place[i] = begin[schedule->transfer[i].round]++;
}

enum hpl_status hpl_rounds_sort(struct hpl_schedule *schedule, struct hpl_work *work) {
    const struct hpl_work before = *work;
    const int32_t rounds = last_round(schedule);
    int32_t *begin = HPL_TAKE(work, (int64_t)rounds + 2, int32_t);
    int32_t *place = HPL_TAKE(work, schedule->count, int32_t);
    *work = before;
    if (!begin || !place) return HPL_NO_ROOM;
    find_places(schedule, begin, rounds, place);
    for (int32_t i = 0; i < schedule->count; i++) {
        while (place[i] != i) { // Each turn brings one to where it stays.
            const int32_t to = place[i];
            const struct hpl_transfer moved = schedule->transfer[to];
            schedule->transfer[to] = schedule->transfer[i];
            schedule->transfer[i] = moved;
            place[i] = place[to];
            place[to] = to;
        }
    }
    return HPL_OK;
}

static int32_t devices_of(const struct hpl_schedule *schedule) {
    int64_t last = -1;
    for (int32_t i = 0; i < schedule->count; i++)
        last = hpl_max(last, hpl_max(schedule->transfer[i].from, schedule->transfer[i].to));
    return (int32_t)last + 1;
}

// A device receives and sends at most HPL_STAGED pieces in a round, as many as it has staging for. Further pieces come
// in later rounds, for all devices alike. `used` counts places from the first round on: the last round of a device is
// full, or its next piece goes there.
static void divide_rounds(struct hpl_schedule *schedule, int32_t *used, int32_t devices) {
    int32_t rounds = 0, *received = used, *sent = used + devices;
    for (int32_t begin = 0, end; begin < schedule->count; begin = end) {
        const int32_t round = schedule->transfer[begin].round;
        int32_t more = 0;
        hpl_zero_i32(used, 2 * (int64_t)devices);
        for (end = begin; end < schedule->count && schedule->transfer[end].round == round; end++) {
            struct hpl_transfer *t = &schedule->transfer[end];
            const int32_t in = received[t->to] / HPL_STAGED, out = sent[t->from] / HPL_STAGED;
            const int32_t behind = in > out ? in : out;
            received[t->to] = (in < behind ? behind * HPL_STAGED : received[t->to]) + 1;
            sent[t->from] = (out < behind ? behind * HPL_STAGED : sent[t->from]) + 1;
            t->round = rounds + 1 + behind;
            if (behind > more) more = behind;
        }
        rounds += 1 + more;
    }
}

enum hpl_status hpl_schedule_mirror(const struct hpl_schedule *gather, struct hpl_schedule *reduce,
                                    struct hpl_work *work) {
    const struct hpl_work before = *work;
    const int32_t rounds = last_round(gather), devices = devices_of(gather);
    int32_t *used = HPL_TAKE(work, 2 * (int64_t)devices, int32_t);
    *work = before;
    if (gather->count > reduce->capacity || !used) return HPL_NO_ROOM;
    reduce->segments = gather->segments;
    reduce->count = gather->count;
    for (int32_t i = 0; i < gather->count; i++) {
        const struct hpl_transfer t = gather->transfer[gather->count - 1 - i];
        reduce->transfer[i] =
            (struct hpl_transfer){t.expert, t.segment, t.to, t.from, rounds - t.round + 1};
    }
    divide_rounds(reduce, used, devices);
    return hpl_rounds_sort(reduce, work);
}
