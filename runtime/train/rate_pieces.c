// The pieces of a learning rate, from their text: "[warmup(2000), constant, linear(0.2, to = 0)]".
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/suggest.h"
#include "runtime/train/learning_rate.h"

enum { STEPS, TO, FROM, NUMBERS };
static const char *const names[] = {"steps", "to", "from"};
static const char words[] = HEC_WORDS(RATE_PIECE);
static const double steps_most = 1e12;

struct reader {
    const char *at;
    int number; // The piece that is read, from 1.
    struct hrt_error *error;
};

struct numbers {
    bool given[NUMBERS];
    double value[NUMBERS];
};

const char *hrt_train_rate_word(enum hrt_rate_form form) {
#define HRT_COMMA ,
    static const char *const word[] = {HEC_LIST_RATE_PIECE(HEC_WORD_TEXT, HRT_COMMA)};
#undef HRT_COMMA
    return word[form];
}

static void skip_spaces(struct reader *reader) {
    reader->at += strspn(reader->at, " \t\n");
}

static bool take(struct reader *reader, char sign) {
    skip_spaces(reader);
    if (*reader->at != sign) return false;
    reader->at++;
    skip_spaces(reader);
    return true;
}

#define FAIL(reader, format, ...)                                                                  \
    hrt_fail_usage((reader)->error, "piece %d of train.schedule.pieces " format, (reader)->number, \
                   __VA_ARGS__)

// Letters of a name, at most 31 of them.
static void take_name(struct reader *reader, char name[32]) {
    const size_t length = strspn(reader->at, "abcdefghijklmnopqrstuvwxyz_"
                                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    const size_t kept = length < 31 ? length : 31;
    memcpy(name, reader->at, kept);
    name[kept] = 0;
    reader->at += length;
}

static bool fits(const struct reader *reader, int which, double value) {
    if (which != STEPS && !(value >= 0 && value <= 1))
        return FAIL(reader, "has %s = %g; it is a share of lr, 0 to 1", names[which], value);
    const bool share = value > 0 && value < 1;
    const bool whole = value >= 1 && value <= steps_most && value == floor(value);
    return which != STEPS || share || whole ||
           FAIL(reader, "has %g steps; it is a whole number, 1 to 1e12, or a share of all, below 1",
                value);
}

static bool take_number(struct reader *reader, int *position, struct numbers *numbers) {
    char name[32];
    int which = *position;
    take_name(reader, name);
    if (*name) {
        for (which = 0; which < NUMBERS && strcmp(names[which], name) != 0;) which++;
        if (which == NUMBERS || !take(reader, '='))
            return FAIL(reader, "has '%s'; its numbers are steps, to and from", name);
    } else if (++*position > FROM) {
        return FAIL(reader, "has too many numbers without a name: steps, to%s", "");
    }
    if (numbers->given[which]) return FAIL(reader, "has %s twice", names[which]);
    char *end;
    const double value = strtod(reader->at, &end);
    if (end == reader->at || strpbrk(reader->at, "xX") == reader->at + 1)
        return FAIL(reader, "needs a number for %s, not '%.20s'", names[which], reader->at);
    reader->at = end;
    skip_spaces(reader);
    numbers->given[which] = true;
    numbers->value[which] = value;
    return fits(reader, which, value);
}

static bool take_numbers(struct reader *reader, struct numbers *numbers) {
    if (!take(reader, '(')) return true;
    for (int position = 0; !take(reader, ')');) {
        if (!take_number(reader, &position, numbers)) return false;
        if (!take(reader, ',') && *reader->at != ')')
            return FAIL(reader, "needs ')' before '%.20s'", reader->at);
    }
    return true;
}

static bool take_form(struct reader *reader, enum hrt_rate_form *form) {
    char name[32];
    take_name(reader, name);
    struct hrt_suggestion suggestion = {.typed = name};
    for (int i = 0; i <= HRT_RATE_exponential; i++) {
        *form = (enum hrt_rate_form)i;
        if (strcmp(name, hrt_train_rate_word(*form)) == 0) return true;
        hrt_base_suggest(&suggestion, hrt_train_rate_word(*form));
    }
    if (!*name) return FAIL(reader, "has no name at '%.20s'; it is one of %s", reader->at, words);
    if (suggestion.best) return FAIL(reader, "is '%s'; did you mean '%s'?", name, suggestion.best);
    return FAIL(reader, "is '%s'; it is one of %s", name, words);
}

// How many steps a piece has; 0: the rest.
static int64_t steps_of(const struct numbers *numbers, int64_t steps) {
    const double own = numbers->value[STEPS];
    if (!numbers->given[STEPS]) return 0;
    return (int64_t)(own >= 1 ? own : fmax(round(own * (double)steps), 1));
}

// Where a piece begins and ends, given the rate that is before it.
static bool settle(const struct reader *reader, const struct numbers *numbers, double before,
                   struct hrt_rate_piece *piece) {
    const char *word = hrt_train_rate_word(piece->form);
    const bool rises = piece->form == HRT_RATE_warmup, stays = piece->form == HRT_RATE_constant,
               own_end = piece->form == HRT_RATE_inverse_sqrt;
    const bool divides = own_end || piece->form == HRT_RATE_exponential;
    if (reader->number == 1) before = rises ? 0 : 1;
    piece->falls = 1;
    piece->jumps = numbers->given[FROM];
    piece->from = numbers->given[FROM] ? numbers->value[FROM] : before;
    piece->to = numbers->given[TO] ? numbers->value[TO] : stays ? before : 1;
    if (stays && numbers->given[FROM])
        return FAIL(reader, "is %s, which has one share of lr: to", word);
    if (!numbers->given[TO] && !rises && !stays && !own_end)
        return FAIL(reader, "is %s, which needs the share of lr that it ends with: to", word);
    if (own_end && !numbers->given[TO] && piece->begin == 0)
        return FAIL(reader,
                    "is %s; without steps before it it needs the share that it ends with: to",
                    word);
    if (own_end && !numbers->given[TO])
        piece->to =
            piece->from / sqrt(1 + (double)(piece->steps - piece->jumps) / (double)piece->begin);
    if (divides && (piece->from == 0 || piece->to == 0))
        return FAIL(reader, "is %s, which never is 0", word);
    return !own_end || piece->to <= piece->from ||
           FAIL(reader, "is %s, which does not rise: from %g to %g", word, piece->from, piece->to);
}

// Checks that the lengths fit the run; gives the rest to the piece without one.
static bool share_out(struct hrt_rates *rates, int64_t steps, struct hrt_error *error) {
    struct hrt_rate_piece *rest = NULL;
    int64_t sum = 0;
    for (int i = 0; i < rates->count; i++) {
        struct hrt_rate_piece *piece = &rates->piece[i];
        sum += piece->steps;
        if (piece->steps == 0 && rest)
            return hrt_fail_usage(error,
                                  "pieces %d and %d of train.schedule.pieces have no "
                                  "length: one of them takes the rest of the steps",
                                  (int)(rest - rates->piece) + 1, i + 1);
        if (piece->steps == 0) rest = piece;
    }
    if (sum + (rest != NULL) > steps)
        return hrt_fail_usage(error,
                              "the pieces of train.schedule.pieces take %" PRId64
                              " steps%s, but the run has %" PRId64,
                              sum, rest ? " and a rest" : "", steps);
    if (!rest && sum < steps)
        return hrt_fail_usage(error,
                              "the pieces of train.schedule.pieces take %" PRId64
                              " steps, but the run has %" PRId64
                              ": a piece without a length takes the rest",
                              sum, steps);
    if (rest) rest->steps = steps - sum;
    for (int i = 1; i < rates->count; i++)
        rates->piece[i].begin = rates->piece[i - 1].begin + rates->piece[i - 1].steps;
    return true;
}

bool hrt_train_rate_pieces(struct hrt_rates *rates, const char *text, int64_t steps,
                           struct hrt_error *error) {
    struct reader reader = {.at = text ? text : "", .error = error};
    struct numbers numbers[HRT_RATE_PIECES_MOST] = {0};
    const bool list = take(&reader, '[');
    skip_spaces(&reader);
    if (!*reader.at)
        return hrt_fail_usage(error, "train.schedule = pieces needs train.schedule.pieces, as in "
                                     "[warmup(2000), cosine(to = 0.1)]");
    do {
        reader.number = rates->count + 1;
        if (rates->count == HRT_RATE_PIECES_MOST)
            return hrt_fail_usage(error, "train.schedule.pieces has more than %d pieces",
                                  HRT_RATE_PIECES_MOST);
        struct hrt_rate_piece *piece = &rates->piece[rates->count];
        if (!take_form(&reader, &piece->form) || !take_numbers(&reader, &numbers[rates->count]))
            return false;
        piece->steps = steps_of(&numbers[rates->count++], steps);
    } while (take(&reader, ','));
    if ((list && !take(&reader, ']')) || *reader.at)
        return FAIL(&reader, "ends before '%.20s'; pieces have ',' between them", reader.at);
    if (!share_out(rates, steps, error)) return false;
    for (int i = 0; i < rates->count; i++) {
        reader.number = i + 1;
        const double before = i ? rates->piece[i - 1].to : 0;
        if (!settle(&reader, &numbers[i], before, &rates->piece[i])) return false;
    }
    return true;
}
