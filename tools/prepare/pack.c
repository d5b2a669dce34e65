// Whole documents in sequences of T tokens, by best fit.
//
// Documents are gathered until there are 64 Ki of them, or 16 Mi tokens. One that is longer than T is cut into pieces
// of T tokens and a rest. Rests, and documents that are no longer, go from the longest to the shortest, each into the
// sequence with the least room that takes it, or into a new one. So a sequence has whole documents, or a piece of one.
//
// Source: Ding et al. 2024, "Fewer Truncations Improve Language Modeling" (arXiv:2404.10830), best-fit-decreasing.
#include <stdlib.h>
#include <string.h>

#include "runtime/data/weights.h"
#include "tools/prepare/prepare.h"

enum { DOCUMENTS_MOST = 1 << 16, TOKENS_MOST = 1 << 24 };
enum { NONE = -1 };

struct piece_list { // Documents whose rests lie in one sequence, the first of the input first.
    int32_t first;
    int32_t room; // Tokens that are still free.
    int32_t next; // The sequence behind it with as much room, or NONE.
};

struct pack {
    int32_t positions, end;
    int32_t *id;       // Tokens of the documents gathered, one behind the other.
    uint16_t *weights; // Their weights.
    size_t tokens, tokens_room;
    size_t *begin; // [documents + 1]
    int32_t documents;
    int32_t *next;      // [documents] The next document in the same sequence, or NONE.
    int32_t *sequence;  // [documents] Where a document's rest lies.
    int32_t *order;     // [documents] By length, the longest first.
    int32_t *start;     // [positions + 1] Counts of lengths, then where they start in `order`.
    int32_t *with_room; // [positions + 1] A sequence with so much room, or NONE.
    unsigned char
        *some;      // [2 * leaves] A tree over rooms: whether some sequence has one below the node.
    int32_t leaves; // A power of two above `positions`.
    struct piece_list *list;
    int64_t padding;
};

void pack_free(struct pack *pack) {
    if (!pack) return;
    free(pack->id);
    free(pack->weights);
    free(pack->begin);
    free(pack->next);
    free(pack->sequence);
    free(pack->order);
    free(pack->start);
    free(pack->with_room);
    free(pack->some);
    free(pack->list);
    free(pack);
}

struct pack *pack_create(int64_t positions, int32_t end, struct hrt_error *error) {
    struct pack *pack = calloc(1, sizeof *pack);
    if (!pack) goto failed;
    const size_t rooms = (size_t)positions + 1;
    pack->positions = (int32_t)positions;
    pack->end = end;
    for (pack->leaves = 1; pack->leaves <= pack->positions;) pack->leaves *= 2;
    pack->begin = calloc(DOCUMENTS_MOST + 1, sizeof *pack->begin);
    pack->next = calloc(DOCUMENTS_MOST, sizeof *pack->next);
    pack->sequence = calloc(DOCUMENTS_MOST, sizeof *pack->sequence);
    pack->order = calloc(DOCUMENTS_MOST, sizeof *pack->order);
    pack->list = calloc(DOCUMENTS_MOST, sizeof *pack->list);
    pack->start = calloc(rooms, sizeof *pack->start);
    pack->with_room = calloc(rooms, sizeof *pack->with_room);
    pack->some = calloc(2 * (size_t)pack->leaves, sizeof *pack->some);
    if (pack->begin && pack->next && pack->sequence && pack->order && pack->list && pack->start &&
        pack->with_room && pack->some)
        return pack;
failed:
    pack_free(pack);
    hrt_fail(error, "out of memory");
    return NULL;
}

int64_t pack_padding(const struct pack *pack) {
    return pack->padding;
}

bool pack_put(struct pack *pack, const int32_t *id, const uint16_t *weights, bool otherwise,
              size_t count, struct hrt_error *error) {
    if (pack->tokens_room - pack->tokens < count) {
        const size_t room = 2 * pack->tokens + count + 4096;
        int32_t *ids = realloc(pack->id, room * sizeof *ids);
        if (ids) pack->id = ids;
        uint16_t *grown = realloc(pack->weights, room * sizeof *grown);
        if (grown) pack->weights = grown;
        if (!ids || !grown) return hrt_fail(error, "out of memory");
        pack->tokens_room = room;
    }
    memcpy(pack->id + pack->tokens, id, count * sizeof *id);
    for (size_t i = 0; i < count; i++)
        pack->weights[pack->tokens + i] = weights     ? weights[i]
                                          : otherwise ? HRT_DATA_WEIGHT_ONE
                                                      : 0;
    pack->tokens += count;
    return true;
}

// ---- sequences by their room

static void set_some(struct pack *pack, int32_t room) {
    int32_t node = pack->leaves + room;
    pack->some[node] = pack->with_room[room] != NONE;
    for (node /= 2; node > 0; node /= 2)
        pack->some[node] = pack->some[2 * node] || pack->some[2 * node + 1];
}

static void add_sequence(struct pack *pack, int32_t sequence) {
    const int32_t room = pack->list[sequence].room;
    pack->list[sequence].next = pack->with_room[room];
    pack->with_room[room] = sequence;
    set_some(pack, room);
}

// The least room of at least `length` that some sequence has; NONE: none has it.
static int32_t least_room(const struct pack *pack, int32_t length) {
    int32_t node = pack->leaves + length;
    while (!pack->some[node]) {
        while (node & 1) node /= 2; // It is the right one of two: the next one lies right of both.
        if (node == 0) return NONE;
        node++;
    }
    while (node < pack->leaves) node = pack->some[2 * node] ? 2 * node : 2 * node + 1;
    return node - pack->leaves;
}

// ---- documents into sequences

static size_t length_of(const struct pack *pack, int32_t document) {
    return pack->begin[document + 1] - pack->begin[document];
}

static int32_t rest_of(const struct pack *pack, int32_t document) {
    return (int32_t)((length_of(pack, document) - 1) % (size_t)pack->positions) + 1;
}

static bool is_long(const struct pack *pack, int32_t document) {
    return length_of(pack, document) > (size_t)pack->positions;
}

// Sorts by the lengths of rests, the longest first; those of one length stay in their order.
static void sort(struct pack *pack) {
    const int32_t most = pack->positions;
    memset(pack->start, 0, ((size_t)most + 1) * sizeof *pack->start);
    for (int32_t i = 0; i < pack->documents; i++) pack->start[most - rest_of(pack, i)]++;
    int32_t before = 0;
    for (int32_t i = 0; i <= most; i++) {
        const int32_t count = pack->start[i];
        pack->start[i] = before;
        before += count;
    }
    for (int32_t i = 0; i < pack->documents; i++)
        pack->order[pack->start[most - rest_of(pack, i)]++] = i;
}

static void fit(struct pack *pack) {
    int32_t sequences = 0;
    for (int32_t i = 0; i <= pack->positions; i++) pack->with_room[i] = NONE;
    memset(pack->some, 0, 2 * (size_t)pack->leaves);
    for (int32_t i = 0; i < pack->documents; i++) {
        const int32_t document = pack->order[i], rest = rest_of(pack, document);
        const int32_t room = least_room(pack, rest);
        int32_t sequence = room == NONE ? sequences++ : pack->with_room[room];
        if (room == NONE) {
            pack->list[sequence] = (struct piece_list){NONE, pack->positions, NONE};
        } else {
            pack->with_room[room] = pack->list[sequence].next;
            set_some(pack, room);
        }
        pack->list[sequence].room -= rest;
        pack->sequence[document] = sequence;
        if (pack->list[sequence].room > 0) add_sequence(pack, sequence);
    }
    for (int32_t i = pack->documents - 1; i >= 0; i--) {
        struct piece_list *list = &pack->list[pack->sequence[i]];
        pack->next[i] = list->first;
        list->first = i;
    }
}

// ---- writing

// Adds a part of a document. Its first token counts only where the token before it lies before it in the file, too.
static bool write_part(struct pack *pack, struct output *output, int32_t document, size_t from,
                       size_t count, bool follows, struct hrt_error *error) {
    const size_t at = pack->begin[document] + from;
    if (!follows) pack->weights[at] = 0;
    return output_add(output, pack->id + at, pack->weights + at, count, error);
}

// All of a document but its rest: each piece fills a sequence.
static bool write_pieces(struct pack *pack, struct output *output, int32_t document,
                         struct hrt_error *error) {
    const size_t length = length_of(pack, document), piece = (size_t)pack->positions;
    for (size_t at = 0; length - at > piece; at += piece) {
        if (!write_part(pack, output, document, at, piece, at > 0, error)) return false;
    }
    return true;
}

static bool write_rest(struct pack *pack, struct output *output, int32_t document, bool follows,
                       struct hrt_error *error) {
    const size_t rest = (size_t)rest_of(pack, document);
    return write_part(pack, output, document, length_of(pack, document) - rest, rest, follows,
                      error);
}

// Each token of padding is a document by itself.
static bool write_padding(struct pack *pack, struct output *output, int32_t count,
                          struct hrt_error *error) {
    pack->padding += count;
    for (int32_t i = 0; i < count; i++) {
        if (!output_add(output, &pack->end, NULL, 1, error)) return false;
    }
    return true;
}

// A sequence, behind the other pieces of its documents. The rest that comes first lies behind them.
static bool write_sequence(struct pack *pack, struct output *output, const struct piece_list *list,
                           struct hrt_error *error) {
    int32_t first = list->first; // The first long document's rest, or the first document.
    while (first != NONE && !is_long(pack, first)) first = pack->next[first];
    if (first == NONE) first = list->first;
    for (int32_t i = list->first; i != NONE; i = pack->next[i]) {
        if (i != first && !write_pieces(pack, output, i, error)) return false;
    }
    if (!write_pieces(pack, output, first, error) ||
        !write_rest(pack, output, first, is_long(pack, first), error))
        return false;
    for (int32_t i = list->first; i != NONE; i = pack->next[i]) {
        if (i != first && !write_rest(pack, output, i, false, error)) return false;
    }
    return write_padding(pack, output, list->room, error);
}

// Writes the documents that were gathered. Sequences are in the order of their first documents.
static bool write_all(struct pack *pack, struct output *output, struct hrt_error *error) {
    sort(pack);
    fit(pack);
    for (int32_t i = 0; i < pack->documents; i++) {
        const struct piece_list *list = &pack->list[pack->sequence[i]];
        if (list->first == i && !write_sequence(pack, output, list, error)) return false;
    }
    pack->documents = 0;
    pack->tokens = 0;
    return true;
}

bool pack_close(struct pack *pack, struct output *output, struct hrt_error *error) {
    if (pack->tokens == pack->begin[pack->documents]) return true;
    if (pack->id[pack->tokens - 1] != pack->end &&
        !pack_put(pack, &pack->end, NULL, false, 1, error))
        return false;
    pack->begin[++pack->documents] = pack->tokens;
    output->documents++;
    return (pack->documents < DOCUMENTS_MOST && pack->tokens < TOKENS_MOST) ||
           write_all(pack, output, error);
}

bool pack_flush(struct pack *pack, struct output *output, struct hrt_error *error) {
    return pack_close(pack, output, error) && write_all(pack, output, error);
}
