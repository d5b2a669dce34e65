#include "peers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace simt {

enum : size_t {
    GRANULE = 256,
    GRANULES = 1 << 20,
    WORDS = 1 << 14,
    FOLLOWED = 128,
    WRITES = 8,
    STREAMS = 1 << 20
};

// One operation of one stream.
struct operation_of_t {
    uint64_t stream;
    uint32_t number; // From 1 on; 0: none.
};

// The operations that a stream had followed when it wrote a value.
struct write_note_t {
    uint32_t value, count;
    operation_of_t followed[FOLLOWED];
};

// The last writes of a word, number n at n % WRITES. `version` is twice their number, and odd while there is one more.
struct word_note_t {
    uint32_t version;
    write_note_t write[WRITES];
};

// Pages that are not touched take no memory.
struct notes_t {
    operation_of_t written[GRANULES], read[GRANULES];
    word_note_t word[WORDS];
};

struct memory_t {
    size_t bytes;
    notes_t *notes;
};

static std::map<const char *, memory_t> shared;
static std::vector<notes_t *> all_notes; // This process's first, if it has any.
static notes_t *own_notes;
static std::map<int, peers_past_t> now; // By stream of this process.
static shared_peers_past_t host_now = std::make_shared<peers_past_t>();
static int running;

static uint64_t name_of(int stream) {
    return (uint64_t)getpid() * STREAMS + (uint64_t)stream;
}

// ---- notes

static notes_t *map_file(int file) {
    void *at =
        mmap(NULL, sizeof(notes_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED) return NULL;
    all_notes.push_back((notes_t *)at);
    return (notes_t *)at;
}

notes_t *make_notes(int *file) {
    static int own_file = -1;
    if (own_file < 0) own_file = memfd_create("simt-notes", MFD_CLOEXEC);
    if (!own_notes && own_file >= 0 && ftruncate(own_file, sizeof(notes_t)) == 0)
        own_notes = map_file(own_file);
    if (!own_notes) fail("no memory for notes");
    *file = own_file;
    return own_notes;
}

notes_t *map_notes(const char *path) {
    const int file = open(path, O_RDWR | O_CLOEXEC);
    notes_t *notes = file < 0 ? NULL : map_file(file);
    if (file >= 0) close(file);
    return notes;
}

void note_memory(const void *at, size_t bytes, notes_t *notes) {
    if (bytes > GRANULE * GRANULES) fail("%zu bytes are too many to share", bytes);
    shared[(const char *)at] = {bytes, notes};
}

void forget_memory(const void *at) {
    shared.erase((const char *)at);
}

// ---- what streams follow

static void join(peers_past_t &to, const peers_past_t &from) {
    for (const auto &one : from) {
        uint32_t &count = to[one.first];
        if (one.second > count) count = one.second;
    }
}

shared_peers_past_t peers_host() {
    return host_now;
}

void begin_peers_operation(int stream, const shared_peers_past_t &host) {
    running = stream;
    if (host) join(now[stream], *host);
    now[stream][name_of(stream)]++;
}

shared_peers_past_t peers_past(int stream) {
    return std::make_shared<peers_past_t>(now[stream]);
}

void follow_peers(int stream, const shared_peers_past_t &past) {
    if (past) join(now[stream], *past);
}

void host_follows_peers(const shared_peers_past_t &past) {
    if (!past) return;
    const auto next = std::make_shared<peers_past_t>(*host_now);
    join(*next, *past);
    host_now = next;
}

// ---- words

void publish_past(int stream, size_t word, uint32_t value) {
    if (!own_notes) return;
    if (word >= WORDS) fail("too many words that streams wait for");
    word_note_t &note = own_notes->word[word];
    const uint32_t version = note.version;
    write_note_t &write = note.write[version / 2 % WRITES];
    __atomic_store_n(&note.version, version + 1, __ATOMIC_SEQ_CST);
    write.value = value;
    write.count = 0;
    for (const auto &one : now[stream]) {
        if (write.count == FOLLOWED) fail("too many streams follow each other");
        write.followed[write.count++] = {one.first, one.second};
    }
    __atomic_store_n(&note.version, version + 2, __ATOMIC_SEQ_CST);
}

// The first of the writes kept that lets a wait for `value` go on.
static const write_note_t *first_write(const word_note_t &note, uint32_t version, uint32_t value,
                                       bool equal) {
    const uint32_t writes = version / 2, kept = writes < WRITES ? writes : (uint32_t)WRITES;
    for (uint32_t n = writes - kept; n != writes; n++) {
        const write_note_t &write = note.write[n % WRITES];
        if (equal ? write.value == value : (int32_t)(write.value - value) >= 0) return &write;
    }
    return NULL;
}

static peers_past_t read_note(const word_note_t &note, uint32_t value, bool equal) {
    for (;;) {
        peers_past_t past;
        const uint32_t version = __atomic_load_n(&note.version, __ATOMIC_SEQ_CST);
        const write_note_t *write = first_write(note, version, value, equal);
        const uint32_t count = write && write->count < FOLLOWED ? write->count : 0;
        for (uint32_t i = 0; i < count; i++)
            past[write->followed[i].stream] = write->followed[i].number;
        if (version % 2 == 0 && __atomic_load_n(&note.version, __ATOMIC_SEQ_CST) == version)
            return past;
    }
}

// One process writes a word.
void follow_word(int stream, size_t word, uint32_t value, bool equal) {
    if (word >= WORDS) fail("too many words that streams wait for");
    for (const notes_t *notes : all_notes) {
        if (__atomic_load_n(&notes->word[word].version, __ATOMIC_SEQ_CST))
            join(now[stream], read_note(notes->word[word], value, equal));
    }
}

// ---- accesses

static void look(const operation_of_t &last, const char *how, const void *at) {
    const auto followed = now[running].find(last.stream);
    if (last.number == 0 || last.stream == name_of(running)) return;
    if (followed != now[running].end() && followed->second >= last.number) return;
    fprintf(stderr,
            "simt: race between processes on %p: %s by stream %d of process %d, and now used by "
            "stream %d of process %d\n",
            at, how, (int)(last.stream % STREAMS), (int)(last.stream / STREAMS), running, getpid());
    _Exit(STATUS_RACE);
}

void note_shared_access(const void *at, size_t bytes, access_t how) {
    if (shared.empty() || bytes == 0) return;
    auto next = shared.upper_bound((const char *)at);
    if (next == shared.begin()) return;
    const auto &memory = *std::prev(next);
    const size_t from = (size_t)((const char *)at - memory.first);
    if (from >= memory.second.bytes) return;
    notes_t *notes = memory.second.notes;
    const operation_of_t here = {name_of(running), now[running][name_of(running)]};
    for (size_t i = from / GRANULE; i <= (from + bytes - 1) / GRANULE; i++) {
        look(notes->written[i], "written", at);
        if (how != READ) look(notes->read[i], "read", at);
        (how == READ ? notes->read : notes->written)[i] = here;
    }
}

} // namespace simt
