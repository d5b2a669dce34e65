// peers: the order of streams of several processes that share memory of a device. A stream that waits for a value
// follows what the stream that wrote it had done. Every access to shared memory is compared with the last ones of other
// streams: one that nothing orders ends the process as a race, whether they met or not.
#ifndef HECATE_TESTS_SIMT_PEERS_H
#define HECATE_TESTS_SIMT_PEERS_H

#include <map>
#include <memory>

#include "fiber.h"

namespace simt {

// The operations that are followed: so many of each stream of each process.
typedef std::map<uint64_t, uint32_t> peers_past_t;
typedef std::shared_ptr<const peers_past_t> shared_peers_past_t;

struct notes_t;                       // One process's, in a file that others map.
notes_t *make_notes(int *file);       // This process's own.
notes_t *map_notes(const char *path); // NULL: it cannot be reached.
void note_memory(const void *at, size_t bytes,
                 notes_t *notes); // This memory is shared from now on.
void forget_memory(const void *at);

shared_peers_past_t peers_host(); // The operations that the host has waited for.
void begin_peers_operation(int stream, const shared_peers_past_t &host);
shared_peers_past_t peers_past(int stream);
void follow_peers(int stream, const shared_peers_past_t &past);
void host_follows_peers(const shared_peers_past_t &past);

// The stream writes a value to a word that is number `word` for all processes, or has seen this one, or (not `equal`)
// at least this one, modulo 2^32.
void publish_past(int stream, size_t word, uint32_t value);
void follow_word(int stream, size_t word, uint32_t value, bool equal);

// By the stream whose operation runs.
void note_shared_access(const void *at, size_t bytes, access_t how);

} // namespace simt

#endif
