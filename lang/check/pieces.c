// A learning rate in pieces: `schedule = pieces([warmup(2000), constant, linear(0.2, to = 0)])`. Each piece is checked
// by itself, and all lengths together; programs also check where a piece begins (runtime/train/rate_pieces.c).
#include <math.h>
#include <string.h>

#include "lang/check/settings.h"

static const char words[] = HEC_WORDS(RATE_PIECE);
static const char *const arguments[] = {"steps", "to", "from"};

enum { STEPS, TO, FROM, ARGUMENTS };
enum { PIECES_MOST = 64 };
static const double steps_most = 1e12;

struct piece {
    const char *word;
    const struct hec_expr *expr;
    bool given[ARGUMENTS];
    double value[ARGUMENTS];
};

static bool is(const struct piece *piece, const char *word) {
    return !strcmp(piece->word, word);
}

static bool fits(struct hec_checker *checker, const struct hec_expr *expr, int which,
                 double value) {
    const char *text = hec_number_text(checker->arena, value);
    if (which != STEPS && !(value >= 0 && value <= 1))
        return hec_error(checker, expr->at, "`%s` of a piece is a share of lr, 0 to 1, not %s",
                         arguments[which], text);
    const bool share = value > 0 && value < 1;
    if (which == STEPS && !share && !(value >= 1 && value <= steps_most && value == floor(value)))
        return hec_error(checker, expr->at,
                         "a piece has a whole number of steps, 1 to 1e12, or a share of all, below "
                         "1, not %s",
                         text);
    return true;
}

// Which argument is meant; ARGUMENTS after reporting that there is none.
static int find_argument(struct hec_checker *checker, const struct piece *piece,
                         const struct hec_argument *argument, int position) {
    if (!argument->name && position < FROM) return position;
    for (int i = 0; argument->name && i < ARGUMENTS; i++) {
        if (!strcmp(arguments[i], argument->name)) return i;
    }
    if (argument->name)
        hec_unknown_of(checker, argument->at, "number", argument->name, piece->word, arguments,
                       ARGUMENTS);
    else
        hec_error(checker, argument->at, "`%s` takes no further number without a name",
                  piece->word);
    return ARGUMENTS;
}

static bool read_arguments(struct hec_checker *checker, struct piece *piece) {
    bool good = true;
    for (int i = 0, position = 0; i < piece->expr->arguments.count; i++) {
        const struct hec_argument *argument = &piece->expr->arguments.item[i];
        const int which = find_argument(checker, piece, argument, position);
        position += !argument->name;
        struct hec_constant constant;
        if (which == ARGUMENTS || !hec_constant_of(checker, NULL, argument->value, &constant)) {
            good = false;
        } else if (piece->given[which]) {
            good = hec_error(checker, argument->at, "`%s` is set twice", arguments[which]);
        } else if (constant.kind != HEC_CONSTANT_NUMBER || constant.number.measure != HEC_PLAIN) {
            good = hec_error(checker, argument->value->at, "`%s` of a piece is a number, not `%s`",
                             arguments[which], hec_expr_text(checker->arena, argument->value));
        } else {
            piece->given[which] = true;
            piece->value[which] = constant.number.value;
            good = fits(checker, argument->value, which, piece->value[which]) && good;
        }
    }
    return good;
}

// Whether the piece has the numbers that its form needs, and no others.
static bool check_form(struct hec_checker *checker, const struct piece *piece) {
    const struct hec_span at = piece->expr->at;
    const bool needs = !is(piece, "warmup") && !is(piece, "constant") && !is(piece, "inverse_sqrt");
    if (needs && !piece->given[TO])
        return hec_error(checker, at, "`%s` needs `to`, the share of lr that it ends with",
                         piece->word);
    if (is(piece, "constant") && piece->given[FROM])
        return hec_error(checker, at, "`constant` has one share of lr: `to`");
    const bool divides = is(piece, "exponential") || is(piece, "inverse_sqrt");
    if (divides && ((piece->given[TO] && piece->value[TO] == 0) ||
                    (piece->given[FROM] && piece->value[FROM] == 0)))
        return hec_error(checker, at, "`%s` never is 0", piece->word);
    return true;
}

static void unknown_piece(struct hec_checker *checker, const struct hec_setting_row *row,
                          const struct hec_expr *expr) {
    const char *known[16], *list = "";
    int count = 0;
    for (const char *at = words; *at && count < 16; count++) {
        const size_t length = strcspn(at, "|");
        known[count] = hec_intern(&checker->names, at, length);
        list = hec_arena_format(checker->arena, "%s%s%s", list, *list ? ", " : "", known[count]);
        at += length + (at[length] == '|');
    }
    const bool named = expr->kind == HEC_EXPR_NAME || expr->kind == HEC_EXPR_CALL;
    const char *text = named ? expr->text : hec_expr_text(checker->arena, expr);
    hec_unknown_of(checker, expr->at, "piece", text, row->key, known, count);
    hec_detail(checker, "it is one of %s", list);
}

static bool read_piece(struct hec_checker *checker, const struct hec_setting_row *row,
                       const struct hec_expr *expr, struct piece *piece) {
    const bool call = expr->kind == HEC_EXPR_CALL && !expr->label;
    *piece = (struct piece){.word = expr->text, .expr = expr};
    if ((!call && expr->kind != HEC_EXPR_NAME) || !hec_setting_lists(words, expr->text)) {
        unknown_piece(checker, row, expr);
        return false;
    }
    return read_arguments(checker, piece) && check_form(checker, piece);
}

// "linear(0.2, to = 0)"
static const char *piece_text(struct hec_checker *checker, const struct piece *piece) {
    const char *list = "";
    for (int i = 0; i < ARGUMENTS; i++) {
        if (!piece->given[i]) continue;
        list = hec_arena_format(checker->arena, "%s%s%s%s%s", list, *list ? ", " : "",
                                i == STEPS ? "" : arguments[i], i == STEPS ? "" : " = ",
                                hec_number_text(checker->arena, piece->value[i]));
    }
    return *list ? hec_arena_format(checker->arena, "%s(%s)", piece->word, list) : piece->word;
}

const char *hec_read_pieces(struct hec_checker *checker, const struct hec_setting_row *row,
                            const struct hec_expr *list) {
    const struct hec_arguments *items = &list->arguments;
    if (list->kind != HEC_EXPR_LIST || items->count == 0 || items->count > PIECES_MOST) {
        hec_error(checker, list->at,
                  "`%s` is a list of 1 to %d pieces, as in [warmup(2000), cosine(to = 0.1)], not "
                  "`%s`",
                  row->key, PIECES_MOST, hec_expr_text(checker->arena, list));
        return NULL;
    }
    const char *text = "[";
    bool good = true;
    for (int i = 0, open = 0; i < items->count; i++) {
        struct piece piece;
        const bool read = read_piece(checker, row, items->item[i].value, &piece);
        good = good && read;
        if (!read) continue;
        open += !piece.given[STEPS];
        if (open >= 2 && !piece.given[STEPS])
            good = hec_error(checker, piece.expr->at,
                             "another piece without a length: one of them takes the rest of the "
                             "steps");
        text = hec_arena_format(checker->arena, "%s%s%s", text, i ? ", " : "",
                                piece_text(checker, &piece));
    }
    return good ? hec_arena_format(checker->arena, "%s]", text) : NULL;
}

void hec_check_pieces(struct hec_checker *checker, const struct hec_setting_values *values,
                      int64_t steps) {
    const struct hec_setting *setting = &values->value[HEC_KEY_train_schedule_pieces];
    const struct hec_expr *list = values->expr[HEC_KEY_train_schedule_pieces];
    const struct hec_setting *schedule = &values->value[HEC_KEY_train_schedule];
    if (!list && !strcmp(schedule->value, "pieces"))
        hec_error(checker, schedule->at,
                  "`train.schedule = pieces` needs its list: `pieces([warmup(2000), cosine(to = "
                  "0.1)])`");
    if (!list || !*setting->value || steps == 0) return; // Not given, reported, or the run's.
    double sum = 0;
    bool open = false;
    for (int i = 0; i < list->arguments.count; i++) {
        struct piece piece;
        if (!read_piece(checker, hec_setting_row(setting->key), list->arguments.item[i].value,
                        &piece))
            return;
        const double own = piece.value[STEPS];
        sum += own >= 1 || own == 0 ? own : fmax(round(own * (double)steps), 1);
        open = open || !piece.given[STEPS];
    }
    if (sum + open > (double)steps)
        hec_error(checker, setting->at,
                  "the pieces of the learning rate take %.0f steps%s, but "
                  "train.steps is %lld",
                  sum, open ? " and a rest" : "", (long long)steps);
    else if (!open && sum < (double)steps)
        hec_error(checker, setting->at,
                  "the pieces of the learning rate take %.0f steps, but train.steps is %lld: a "
                  "piece without a length takes the rest",
                  sum, (long long)steps);
}
