// The scanner's state, shared by scan.l (words), layout.c (automatic `;`) and parse.y.
#ifndef HECATE_LANG_SCAN_H
#define HECATE_LANG_SCAN_H

#include <stdbool.h>

#include "lang/base/diag.h"
#include "lang/base/str.h"
#include "lang/tree.h"

// One token with its value.
struct hec_token {
    int kind;
    const char *text; // Name, literal as written, string's content.
    struct hec_number number;
    struct hec_span at;
    bool automatic; // A `;` nobody wrote.
};

struct hec_scan {
    struct hec_arena *arena;
    struct hec_names *names;
    struct hec_diag *diag;
    const struct hec_source *source;
    void *flex;
    uint32_t line, column; // Place of the next character.

    int depth;             // Open ( and [.
    bool ends;             // The last token can end a statement.
    struct hec_token last; // Handed out last, and the one before it.
    struct hec_token previous;
    bool has_pending;
    struct hec_token pending; // Comes after the `;` just handed out.
};

// Starts at byte `offset` of `source`.
void hec_scan_open(struct hec_scan *scan, const struct hec_source *source, uint32_t offset);
void hec_scan_close(struct hec_scan *scan);

// The next word of the text, newlines included (HEC_WORD_NEWLINE). 0 at the end.
struct hec_token hec_scan_word(struct hec_scan *scan);

// The next token of the grammar.
struct hec_token hec_scan_token(struct hec_scan *scan);

enum { HEC_WORD_NEWLINE = 1 }; // No token has this number.

// Reads "4Ki", "80GB", "450GB/s". Returns false when the unit is unknown.
bool hec_number_read(const char *text, struct hec_number *number);
// The same for a whole number, with any unit or none, up to 2^53: reads the counts among the settings.
bool hec_count_read(const char *text, int64_t *count);

// Whole numbers in digits, others as short as they read back to the same.
const char *hec_number_text(struct hec_arena *arena, double value);

// The units a number may carry, for messages.
extern const char *const hec_units_text;

#endif
