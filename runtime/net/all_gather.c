// Across groups: Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing
// systems", section 4. Ranks that have the same number in their groups double what they have in each round.
#include "runtime/net/all_gather.h"

size_t hrt_net_gathered_at(const struct hpl_grid *grid, int32_t rank, int32_t of) {
    const int32_t row = of % grid->inside;
    const int32_t ahead = of / grid->inside - rank / grid->inside;
    return (size_t)row * (size_t)grid->groups + (size_t)((ahead + grid->groups) % grid->groups);
}

// A send waits for all that was received before it. By its second `after` it also waits for the send before it, which
// has waited for earlier rounds.
static int32_t send(struct hrt_steps *steps, int32_t peer, int32_t round, const int32_t after[2],
                    const void *from, size_t bytes) {
    return hrt_net_steps_append(steps, &(struct hrt_step){.kind = HRT_SEND,
                                                          .peer = peer,
                                                          .round = round,
                                                          .after = {after[0], after[1]},
                                                          .from = from,
                                                          .bytes = bytes});
}

static int32_t receive(struct hrt_steps *steps, int32_t peer, int32_t round, void *to,
                       size_t bytes) {
    const int32_t step = hrt_net_steps_receive(steps, peer, to, bytes, -1);
    steps->step[step].round = round;
    return step;
}

// The last receive and send, and the round behind them.
struct told {
    int32_t before[2], round;
};

static struct told tell_across(struct hrt_steps *steps, const struct hpl_grid *grid, int32_t rank,
                               char *row, size_t bytes) {
    const int32_t inside = grid->inside, groups = grid->groups;
    const int32_t number = rank % inside, group = rank / inside;
    struct told told = {{-1, -1}, 1};
    hrt_net_steps_clear(steps);
    for (int32_t have = 1; have < groups; have *= 2, told.round++) {
        const int32_t more = have < groups - have ? have : groups - have;
        const int32_t to = (group + groups - have) % groups * inside + number;
        const int32_t from = (group + have) % groups * inside + number;
        const size_t size = (size_t)more * bytes;
        told.before[1] = send(steps, to, told.round, told.before, row, size);
        told.before[0] = receive(steps, from, told.round, row + (size_t)have * bytes, size);
    }
    return told;
}

void hrt_net_steps_gather_across(struct hrt_steps *steps, const struct hpl_grid *grid, int32_t rank,
                                 void *row, size_t bytes) {
    tell_across(steps, grid, rank, row, bytes);
}

void hrt_net_steps_all_gather(struct hrt_steps *steps, const struct hpl_grid *grid, int32_t rank,
                              void *blocks, size_t bytes) {
    const int32_t inside = grid->inside, number = rank % inside, first = rank - number;
    const size_t row = (size_t)grid->groups * bytes;
    char *all = blocks, *own = all + (size_t)number * row;
    const struct told told = tell_across(steps, grid, rank, own, bytes);
    for (int32_t i = 1; i < inside; i++) {
        const int32_t from = (number + inside - i) % inside;
        receive(steps, first + from, told.round, all + (size_t)from * row, row);
    }
    for (int32_t i = 1; i < inside; i++)
        send(steps, first + (number + i) % inside, told.round, told.before, own, row);
}
