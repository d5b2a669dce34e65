// A heap of pairs that merge, and a table of words.
#include "runtime/tokenizer/merge.h"

#include <stdlib.h>

enum {
    SLOTS = 1 << 18,
    KEPT_BYTES = 64,         // The longest kept word: longer ones do not come again.
    KEPT_IDS_ROOM = 4 << 20, // Words of four bytes for ids and texts of all that is kept.
};

struct symbol {
    int32_t id, previous, next; // id -1: merged into one in front; places -1: none.
};

// A pair that may merge: the one with the least `first` comes out first.
struct candidate {
    uint64_t first; // Rank << 32 | place of its left symbol.
    int32_t id;     // The id of the merged symbol.
};

struct kept {
    uint32_t hash, at; // In `room`: the ids, then the text.
    uint16_t bytes, ids;
};

struct hrt_words {
    struct symbol *symbol;
    size_t symbols, symbol_room;
    struct candidate *heap;
    size_t heaped, heap_room;
    struct kept kept[SLOTS];
    int32_t *room; // [KEPT_IDS_ROOM]
    uint32_t used;
};

struct hrt_words *hrt_tokenizer_words_create(void) {
    struct hrt_words *words = calloc(1, sizeof *words);
    if (!words) return NULL;
    words->room = malloc(KEPT_IDS_ROOM * sizeof *words->room);
    if (words->room) return words;
    free(words);
    return NULL;
}

void hrt_tokenizer_words_free(struct hrt_words *words) {
    if (!words) return;
    free(words->symbol);
    free(words->heap);
    free(words->room);
    free(words);
}

static bool push(struct hrt_words *words, struct candidate candidate) {
    if (!hrt_tokenizer_grow(&words->heap, &words->heap_room, words->heaped + 1,
                            sizeof *words->heap))
        return false;
    size_t at = words->heaped++;
    for (; at > 0 && words->heap[(at - 1) / 2].first > candidate.first; at = (at - 1) / 2)
        words->heap[at] = words->heap[(at - 1) / 2];
    words->heap[at] = candidate;
    return true;
}

static struct candidate pop(struct hrt_words *words) {
    const struct candidate top = words->heap[0], last = words->heap[--words->heaped];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < words->heaped; at = child) {
        if (child + 1 < words->heaped && words->heap[child + 1].first < words->heap[child].first)
            child++;
        if (last.first <= words->heap[child].first) break;
        words->heap[at] = words->heap[child];
    }
    words->heap[at] = last;
    return top;
}

// Puts the pair that begins at `place` into the heap, if it merges.
static bool consider(struct hrt_words *words, const struct hrt_model *model, int32_t place) {
    if (place < 0 || words->symbol[place].next < 0) return true;
    const struct symbol *left = &words->symbol[place], *right = &words->symbol[left->next];
    const struct hrt_merge *merge = hrt_merges_find(&model->merges, left->id, right->id);
    if (!merge) return true;
    const uint64_t first = (uint64_t)(uint32_t)merge->rank << 32 | (uint32_t)place;
    return push(words, (struct candidate){first, merge->id});
}

static bool add_symbol(struct hrt_words *words, int32_t id) {
    if (!hrt_tokenizer_grow(&words->symbol, &words->symbol_room, words->symbols + 1,
                            sizeof *words->symbol))
        return false;
    words->symbol[words->symbols] =
        (struct symbol){id, (int32_t)words->symbols - 1, (int32_t)words->symbols + 1};
    words->symbols++;
    return true;
}

// The symbols of a character that the vocabulary does not have: its bytes, if it has them all.
static bool add_unknown(struct hrt_words *words, const struct hrt_model *model, const char *at,
                        size_t bytes, bool *fuses) {
    bool known = model->byte_fallback;
    for (size_t i = 0; i < bytes; i++) known &= model->byte[(unsigned char)at[i]] >= 0;
    for (size_t i = 0; known && i < bytes; i++) {
        if (!add_symbol(words, model->byte[(unsigned char)at[i]])) return false;
    }
    if (known || model->unknown < 0 || (*fuses && model->fuse_unknown)) return true;
    *fuses = true;
    return add_symbol(words, model->unknown);
}

static bool add_symbols(struct hrt_words *words, const struct hrt_model *model, const char *word,
                        size_t bytes) {
    bool fuses = false, sound;
    for (size_t at = 0, length; at < bytes; at += length) {
        length = model->byte_level ? 1 : hrt_tokenizer_utf8_length(word + at, bytes - at, &sound);
        const int32_t id = model->byte_level || length == 1
                               ? model->single[(unsigned char)word[at]]
                               : hrt_tokenizer_names_find(&model->names, word + at, length);
        const bool known = id >= 0;
        if (known && !add_symbol(words, id)) return false;
        if (known) fuses = false;
        if (!known && !add_unknown(words, model, word + at, length, &fuses)) return false;
    }
    if (words->symbols) words->symbol[words->symbols - 1].next = -1;
    return true;
}

static bool merge_pairs(struct hrt_words *words, const struct hrt_model *model) {
    words->heaped = 0;
    for (size_t i = 0; i + 1 < words->symbols; i++) {
        if (!consider(words, model, (int32_t)i)) return false;
    }
    while (words->heaped) {
        const struct candidate best = pop(words);
        const int32_t place = (int32_t)(uint32_t)best.first;
        struct symbol *left = &words->symbol[place];
        if (left->id < 0 || left->next < 0) continue;
        struct symbol *right = &words->symbol[left->next];
        // The symbol here may have merged into another since the pair was found.
        const struct hrt_merge *merge = hrt_merges_find(&model->merges, left->id, right->id);
        if (!merge || merge->id != best.id) continue;
        left->id = best.id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0) words->symbol[left->next].previous = place;
        if (!consider(words, model, left->previous) || !consider(words, model, place)) return false;
    }
    return true;
}

static bool append(struct hrt_ids *ids, int32_t id) {
    if (!hrt_tokenizer_grow(&ids->at, &ids->room, ids->count + 1, sizeof *ids->at)) return false;
    ids->at[ids->count++] = id;
    return true;
}

static bool encode(struct hrt_words *words, const struct hrt_model *model, const char *word,
                   size_t bytes, struct hrt_ids *ids) {
    const int32_t whole =
        model->whole_words ? hrt_tokenizer_names_find(&model->names, word, bytes) : -1;
    if (whole >= 0) return append(ids, whole);
    words->symbols = 0;
    if (!add_symbols(words, model, word, bytes) || !merge_pairs(words, model)) return false;
    for (int32_t i = words->symbols ? 0 : -1; i >= 0; i = words->symbol[i].next) {
        if (!append(ids, words->symbol[i].id)) return false;
    }
    return true;
}

// Keeps what a word has become. When there is no room, all that was kept is forgotten.
static void keep(struct hrt_words *words, uint64_t hash, const char *word, size_t bytes,
                 const int32_t *id, size_t ids) {
    const uint32_t wanted = (uint32_t)(ids + (bytes + 3) / 4);
    if (words->used + wanted > KEPT_IDS_ROOM) {
        memset(words->kept, 0, sizeof words->kept);
        words->used = 0;
    }
    words->kept[hash % SLOTS] = (struct kept){.hash = (uint32_t)(hash >> 32),
                                              .at = words->used,
                                              .bytes = (uint16_t)bytes,
                                              .ids = (uint16_t)ids};
    memcpy(words->room + words->used, id, ids * sizeof *id);
    memcpy(words->room + words->used + ids, word, bytes);
    words->used += wanted;
}

static bool encode_kept(struct hrt_words *words, const struct hrt_model *model, const char *word,
                        size_t bytes, struct hrt_ids *ids) {
    if (bytes > KEPT_BYTES) return encode(words, model, word, bytes, ids);
    const uint64_t hash = hrt_experts_hash(word, bytes);
    const struct kept *kept = &words->kept[hash % SLOTS];
    const int32_t *id = words->room + kept->at;
    const size_t before = ids->count;
    if (kept->bytes == bytes && kept->hash == (uint32_t)(hash >> 32) &&
        memcmp(id + kept->ids, word, bytes) == 0) {
        if (!hrt_tokenizer_grow(&ids->at, &ids->room, before + kept->ids, sizeof *id)) return false;
        for (size_t i = 0; i < kept->ids; i++) ids->at[before + i] = id[i];
        ids->count += kept->ids;
        return true;
    }
    if (!encode(words, model, word, bytes, ids)) return false;
    keep(words, hash, word, bytes, ids->at + before, ids->count - before);
    return true;
}

// Where the word that begins the text ends: between characters that no merge joins.
static size_t word_end(const struct hrt_model *model, const char *text, size_t bytes) {
    for (size_t at = 0;;) {
        const unsigned char first = (unsigned char)text[at];
        const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        const unsigned back = hrt_back_class(text + at, length);
        at += length;
        if (at >= bytes) return bytes;
        const unsigned front = hrt_front_class(text + at, bytes - at);
        if (!(model->joins[back][front / 64] >> front % 64 & 1)) return at;
    }
}

bool hrt_tokenizer_words_encode(struct hrt_words *words, const struct hrt_model *model,
                                const char *word, size_t bytes, struct hrt_ids *ids) {
    if (!model->cuts) return encode_kept(words, model, word, bytes, ids);
    for (size_t at = 0, length; at < bytes; at += length) {
        length = word_end(model, word + at, bytes - at);
        if (!encode_kept(words, model, word + at, length, ids)) return false;
    }
    return true;
}
