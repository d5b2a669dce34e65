// Vector clocks of streams, and of each stream as it would be without any one of the waits and events.
#include "order.h"
#include "peers.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

extern "C" char __executable_start;

namespace simt {

// The host is one more stream; between two calls that ask for something it is at one operation.
enum { WORD = 4, CALLS_MAX = 16, HOST = STREAMS_MAX - 1 };

// The last users of a word of memory, as numbers of operations.
struct used_t {
    uint32_t written, writer;
    uint32_t read[STREAMS_MAX];
};

// A wait that may be left out: of a stream or of the host, or an event.
struct wait_t {
    const char *kind;
    int who, whom; // Streams; -1: the host.
    std::vector<void *> calls;
    bool followed;      // An event that nobody waits for orders nothing.
    std::string needed; // Two accesses that nothing else orders.
};

struct stream_past_t {
    past_t now;
    reach_t sure; // Operations that are followed without any one of the waits.
    std::vector<std::string> operations;
};

static std::vector<wait_t> waits;
static stream_past_t streams[STREAMS_MAX];
static shared_past_t host_now = std::make_shared<past_t>();
static uint32_t host_count = 1;
static used_t *used;
static int own; // The stream whose operation runs.

static void write_waits() {
    const std::string path = std::string(getenv("SIMT_ORDER")) + "." + std::to_string(getpid());
    FILE *file = fopen(path.c_str(), "w");
    if (!file) fail("%s cannot be written", path.c_str());
    for (const wait_t &wait : waits) {
        if (!wait.followed) continue;
        fprintf(file, "%s\t%d\t%d\t", wait.kind, wait.who, wait.whom);
        for (void *call : wait.calls) fprintf(file, "%#tx ", (char *)call - &__executable_start);
        fprintf(file, "\t%s\n", wait.needed.c_str());
    }
    fclose(file);
}

bool keeps_order() {
    static int keeps = -1;
    if (keeps >= 0) return keeps;
    keeps = getenv("SIMT_ORDER") != NULL;
    if (keeps) atexit(write_waits);
    return keeps;
}

host_t host_past() {
    return {host_now, host_count++};
}

std::vector<void *> calls_here() {
    std::vector<void *> calls(CALLS_MAX);
    if (!keeps_order()) return {};
    calls.resize((size_t)backtrace(calls.data(), CALLS_MAX));
    return calls;
}

// ---- clocks

static const reach_t &without(const past_t &past, size_t wait) {
    return wait < past.without.size() ? past.without[wait] : past.all;
}

static void join_reach(reach_t &to, const reach_t &from) {
    for (int i = 0; i < STREAMS_MAX; i++) to.at[i] = std::max(to.at[i], from.at[i]);
}

static void join_past(past_t &to, const past_t &from) {
    const size_t count = std::max(to.without.size(), from.without.size());
    to.without.resize(count, to.all);
    for (size_t i = 0; i < count; i++) join_reach(to.without[i], without(from, i));
    join_reach(to.all, from.all);
}

static int add_wait(const char *kind, int who, int whom, const std::vector<void *> &calls) {
    waits.push_back({kind, who, whom, calls, true, ""});
    return (int)waits.size() - 1;
}

// `past` follows `other` by a wait, without which it would stay as it is.
static void follow(past_t &past, const past_t &other, int wait) {
    const reach_t before = past.all;
    join_past(past, other);
    past.without.resize(std::max(past.without.size(), (size_t)wait + 1), past.all);
    past.without[(size_t)wait] = before;
    if (other.event >= 0) waits[(size_t)other.event].followed = true;
}

static void find_sure(stream_past_t &stream) {
    stream.sure = stream.now.all;
    for (size_t i = 0; i < stream.now.without.size(); i++) {
        if (!waits[i].needed.empty()) continue;
        for (int k = 0; k < STREAMS_MAX; k++)
            stream.sure.at[k] = std::min(stream.sure.at[k], stream.now.without[i].at[k]);
    }
}

static void come_to(past_t &past, int number, uint32_t count) {
    past.all.at[number] = std::max(past.all.at[number], count);
    for (reach_t &reach : past.without) reach.at[number] = std::max(reach.at[number], count);
}

void begin_operation(int number, const char *what, const host_t &host) {
    if (number >= HOST) fail("more than %d streams", (int)HOST);
    stream_past_t &stream = streams[number];
    join_past(stream.now, *host.past);
    stream.operations.push_back(what);
    come_to(stream.now, number, (uint32_t)stream.operations.size());
    come_to(stream.now, HOST, host.count);
    find_sure(stream);
}

void go_on_with(int number) {
    own = number;
}

shared_past_t record_event(int number, const shared_past_t &skipped,
                           const std::vector<void *> &calls) {
    const auto past = std::make_shared<past_t>(streams[number].now);
    past->event = add_wait("event", number, number, calls);
    waits.back().followed = false;
    past->without.resize(waits.size(), past->all);
    past->without.back() = skipped ? skipped->all : reach_t{};
    return past;
}

void follow_event(int number, const shared_past_t &event, const std::vector<void *> &calls) {
    int whom = event->event >= 0 ? waits[(size_t)event->event].who : -1;
    follow(streams[number].now, *event, add_wait("wait", number, whom, calls));
}

static void host_follows(const past_t &past, int whom, const char *kind) {
    const auto next = std::make_shared<past_t>(*host_now);
    bool more = false;
    for (int i = 0; i < HOST; i++) more = more || past.all.at[i] > host_now->all.at[i];
    if (!more) return;
    follow(*next, past, add_wait(kind, -1, whom, calls_here()));
    host_now = next;
    streams[HOST].now = *next;
    find_sure(streams[HOST]);
}

void host_follows_event(const shared_past_t &event) {
    if (event) host_follows(*event, waits[(size_t)event->event].who, "host");
}

void host_follows_stream(int stream, bool reads) {
    if (stream < STREAMS_MAX) host_follows(streams[stream].now, stream, reads ? "read" : "host");
}

// ---- accesses

static uint32_t count_of(int stream) {
    return stream == HOST ? host_count : (uint32_t)streams[stream].operations.size();
}

static std::string name_of(int stream, uint32_t operation) {
    if (stream == HOST) return "the host";
    return streams[stream].operations[operation - 1] + " of stream " + std::to_string(stream);
}

// Nothing is known to order this access behind an operation of another stream whatever wait is left out.
static void look_closer(const void *at, int other, uint32_t operation) {
    stream_past_t &stream = streams[own];
    const std::string pair = name_of(other, operation) + ", then " + name_of(own, count_of(own));
    if (operation > stream.now.all.at[other]) {
        fprintf(stderr, "simt: race between streams on %p: %s\n", at, pair.c_str());
        _Exit(STATUS_RACE);
    }
    for (size_t i = 0; i < stream.now.without.size(); i++) {
        if (waits[i].needed.empty() && stream.now.without[i].at[other] < operation)
            waits[i].needed = pair;
    }
    find_sure(stream);
}

static used_t *words_at(const void *at) {
    const range_t memory = reachable_memory();
    if (!used) {
        const size_t bytes = (size_t)(memory.end - memory.begin) / WORD * sizeof *used;
        void *taken = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (taken == MAP_FAILED) fail("no memory for the order of accesses");
        used = (used_t *)taken;
    }
    return used + ((const unsigned char *)at - memory.begin) / WORD;
}

void note_access(const void *at, size_t bytes, access_t how) {
    const range_t memory = reachable_memory();
    const unsigned char *begin = (const unsigned char *)at;
    note_shared_access(at, bytes, how);
    if (bytes == 0 || !keeps_order() || begin < memory.begin || begin >= memory.end) return;
    stream_past_t &stream = streams[own];
    const uint32_t now = count_of(own);
    used_t *const last = words_at(begin + bytes - 1);
    for (used_t *word = words_at(begin); word <= last; word++) {
        const int writer = (int)word->writer;
        if (writer != own && word->written > stream.sure.at[writer])
            look_closer(at, writer, word->written);
        if (how == READ) {
            word->read[own] = now;
            continue;
        }
        for (int i = 0; i < STREAMS_MAX; i++) {
            if (i != own && word->read[i] > stream.sure.at[i]) look_closer(at, i, word->read[i]);
        }
        word->writer = (uint32_t)own;
        word->written = now;
    }
}

void note_host_access(const void *at, access_t how) {
    const int before = own;
    own = HOST;
    note_access(at, 1, how);
    own = before;
}

void forget_accesses(const void *at, size_t bytes) {
    if (!keeps_order() || bytes == 0) return;
    used_t *first = words_at(at), *last = words_at((const char *)at + bytes - 1);
    memset((void *)first, 0, (size_t)(last - first + 1) * sizeof *first);
}

} // namespace simt
