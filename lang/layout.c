// Layout: a newline ends a statement, as in Go. Inserts a `;` after a token that can end one,
// outside ( ) and [ ], before `}` and at the end of the file.
//
// Inside brackets a newline means nothing, so a bracket that was never closed would swallow the
// rest of the file. Two things tell that it was lost: a statement's keyword, and a line that begins
// with a word right behind a token that ends an expression, which no expression allows.
#include "lang/grammar.h"
#include "lang/scan.h"

static bool can_end(int kind) {
    return kind == HEC_T_NAME || kind == HEC_T_NUMBER || kind == HEC_T_STRING ||
           kind == HEC_T_TRUE || kind == HEC_T_FALSE || kind == ')' || kind == ']';
}

static bool is_statement_keyword(int kind) {
    switch (kind) {
    case HEC_T_DIM:
    case HEC_T_LET:
    case HEC_T_IMPORT:
    case HEC_T_BLOCK:
    case HEC_T_MOE:
    case HEC_T_MODEL:
    case HEC_T_PARAM:
    case HEC_T_LOSS:
    case HEC_T_REPEAT:
    case HEC_T_IF:
    case HEC_T_ELSE:
    case HEC_T_RETURN:
        return true;
    default:
        return false;
    }
}

static bool begins_operand(int kind) {
    return kind == HEC_T_NAME || kind == HEC_T_NUMBER || kind == HEC_T_STRING ||
           kind == HEC_T_TRUE || kind == HEC_T_FALSE;
}

static void count_brackets(struct hec_scan *scan, int kind) {
    if (kind == '(' || kind == '[') scan->depth++;
    if ((kind == ')' || kind == ']') && scan->depth > 0) scan->depth--;
    if (kind == '{' || kind == '}') scan->depth = 0;
}

static struct hec_token hand_out(struct hec_scan *scan, struct hec_token token) {
    count_brackets(scan, token.kind);
    scan->ends = can_end(token.kind);
    scan->previous = scan->last;
    scan->last = token;
    return token;
}

// A `;` that stands just behind the last token; `next` follows it, unless it is a newline.
static struct hec_token end_statement(struct hec_scan *scan, const struct hec_token *next) {
    if (next) {
        scan->pending = *next;
        scan->has_pending = true;
    }
    struct hec_token end = {.kind = ';', .automatic = true, .at = hec_span_after(scan->last.at)};
    return hand_out(scan, end);
}

struct hec_token hec_scan_token(struct hec_scan *scan) {
    if (scan->has_pending) {
        scan->has_pending = false;
        return hand_out(scan, scan->pending);
    }
    bool newline = false;
    struct hec_token word = hec_scan_word(scan);
    while (word.kind == HEC_WORD_NEWLINE) {
        if (scan->ends && scan->depth == 0) return end_statement(scan, NULL);
        newline = true;
        word = hec_scan_word(scan);
    }
    const bool lost = scan->depth > 0 && (is_statement_keyword(word.kind) ||
                                          (newline && scan->ends && begins_operand(word.kind)));
    if (lost) scan->depth = 0;
    const bool closes = lost || word.kind == '}' || word.kind == 0;
    if (scan->ends && closes) return end_statement(scan, &word);
    return hand_out(scan, word);
}
