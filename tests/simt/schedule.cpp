// The order of fibers: barriers, meetings of lanes, and the report when no fiber can go on.
#include "fiber.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace simt {

fiber_t host, *current = &host, *fibers;
warp_t warps[WARPS_MAX];
int warp_count, alive;
uint3 block_index;
dim3 block_size, grid_size;
const char *kernel_name = "host";
uint32_t block_serial, block_epoch, first_block;

static uint64_t state; // The generator's (xorshift64); 0 for the fixed order.

static struct {
    int here;
    unsigned waiting[WARPS_MAX];
    site_t site[WARPS_MAX];
} barrier;

static __attribute__((constructor)) void read_seed() {
    const char *seed = getenv("SIMT_SEED");
    if (seed) simt_seed(strtoull(seed, NULL, 0));
}

uint32_t chance(uint32_t n) {
    if (!state) return 0;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) * n >> 32);
}

bool is_seeded() {
    return state != 0;
}

void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "simt: %s: ", kernel_name);
    if (in_kernel()) {
        fprintf(stderr, "block (%u,%u,%u) thread (%u,%u,%u): ", block_index.x, block_index.y,
                block_index.z, current->thread.x, current->thread.y, current->thread.z);
    }
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    _Exit(STATUS_REPORT);
}

static bool same_text(const char *a, const char *b) {
    return a == b || strcmp(a, b) == 0;
}

static bool same_site(site_t a, site_t b) {
    return a.line == b.line && same_text(a.file, b.file);
}

// Lanes of one warp are told together where they wait in one place.
static void tell_who_waits() {
    for (int w = 0; w < warp_count; w++) {
        for (unsigned left = warps[w].live; left != 0;) {
            const fiber_t &first = fibers[w * LANES + __builtin_ctz(left)];
            unsigned same = 0;
            for (int lane = 0; lane < LANES; lane++) {
                const fiber_t &other = fibers[w * LANES + lane];
                if ((left >> lane & 1) && same_site(first.site, other.site)) same |= 1u << lane;
            }
            fprintf(stderr, "  warp %d lanes %08x wait in %s at %s:%d\n", w, same, first.waits_in,
                    first.site.file, first.site.line);
            left &= ~same;
        }
    }
}

// The fixed order: the next lane of this warp, then the next warp. Seeded: any lane, and now and then any warp.
static fiber_t *pick() {
    const int own = in_kernel() ? (int)(current->warp - warps) : 0;
    const int first = chance(8) == 1 ? (int)chance((uint32_t)warp_count) : own;
    for (int i = 0; i < warp_count; i++) {
        const int w = (first + i) % warp_count;
        const unsigned ready = warps[w].ready;
        if (!ready) continue;
        const int next = in_kernel() && w == own ? (current->lane + 1) % LANES : 0;
        const int from = is_seeded() ? (int)chance(LANES) : next;
        const unsigned turned = from ? ready >> from | ready << (LANES - from) : ready;
        return &fibers[w * LANES + (__builtin_ctz(turned) + from) % LANES];
    }
    fprintf(stderr, "simt: %s: deadlock in block (%u,%u,%u), %d of %u threads have not exited\n",
            kernel_name, block_index.x, block_index.y, block_index.z, alive,
            block_size.x * block_size.y * block_size.z);
    tell_who_waits();
    fail("deadlock");
}

void yield() {
    if (in_kernel()) switch_to(pick(), false);
}

static void wait_in(const char *what, site_t site) {
    current->waits_in = what;
    current->site = site;
    current->warp->ready &= ~(1u << current->lane);
    switch_to(pick(), false);
}

static void open_barrier() {
    for (int w = 0; w < warp_count; w++) {
        warps[w].ready |= barrier.waiting[w];
        warps[w].epoch++;
        barrier.waiting[w] = 0;
        for (int lane = 0; lane < LANES; lane++)
            fibers[w * LANES + lane].fences_known = fibers[w * LANES + lane].fences;
    }
    barrier.here = 0;
    block_epoch++;
}

void sync_block(site_t site) {
    const int w = (int)(current->warp - warps);
    if (barrier.waiting[w] && !same_site(barrier.site[w], site)) {
        fail("lanes of one warp came to __syncthreads at %s:%d and at %s:%d", barrier.site[w].file,
             barrier.site[w].line, site.file, site.line);
    }
    barrier.site[w] = site;
    barrier.waiting[w] |= 1u << current->lane;
    barrier.here++;
    if (barrier.here < alive) return wait_in("__syncthreads", site);
    open_barrier();
    if (chance(2)) yield();
}

// PTX would let lanes meet at different places for some functions; here that is an error, as no kernel means it.
meeting_t *arrive(const char *what, unsigned mask, void *argument, site_t site) {
    warp_t *warp = current->warp;
    const int lane = current->lane;
    if (!(mask >> lane & 1)) {
        fail("%s: lane %d is not in its mask %08x (%s:%d)", what, lane, mask, site.file, site.line);
    }
    if (mask & ~warp->live) {
        fail("%s: lanes %08x of mask %08x have exited or do not exist (%s:%d)", what,
             mask & ~warp->live, mask, site.file, site.line);
    }
    meeting_t &m = warp->meeting[__builtin_ctz(mask)];
    if (!m.here) {
        m.what = what;
        m.mask = mask;
        m.site = site;
    } else if (!same_text(m.what, what) || !same_site(m.site, site)) {
        fail("the warp diverged: lane %d is in %s at %s:%d, others in %s at %s:%d", lane, what,
             site.file, site.line, m.what, m.site.file, m.site.line);
    } else if (m.mask != mask) {
        fail("%s: masks %08x and %08x meet (%s:%d)", what, mask, m.mask, site.file, site.line);
    }
    m.argument[lane] = argument;
    m.here |= 1u << lane;
    if (m.here == mask) return &m;
    wait_in(what, site);
    return NULL;
}

void release(meeting_t *meeting) {
    current->warp->ready |= meeting->mask;
    meeting->here = 0;
    if (chance(2)) yield();
}

void leave() {
    warp_t *warp = current->warp;
    const unsigned bit = 1u << current->lane;
    if (current->copy_count) fail("exits with %d cp.async under way", current->copy_count);
    for (const meeting_t &m : warp->meeting) {
        if (m.here && (m.mask & bit)) fail("exits while other lanes wait for it in %s", m.what);
    }
    warp->live &= ~bit;
    warp->ready &= ~bit;
    alive--;
    if (barrier.here && barrier.here == alive) open_barrier(); // Without those that exited.
    switch_to(alive ? pick() : &host, true);
}

void begin_block() {
    memset(&barrier, 0, sizeof barrier);
    switch_to(pick(), false);
}

} // namespace simt

void simt_seed(uint64_t seed) {
    simt::state = seed * 0x9e3779b97f4a7c15u;
}
