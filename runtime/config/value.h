// Values as users write them: of options, of settings, of the settings a program was compiled with.
#ifndef HECATE_RUNTIME_CONFIG_VALUE_H
#define HECATE_RUNTIME_CONFIG_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"

enum { HRT_TEXTS_MAX = 64 };

struct hrt_texts { // A list of texts, borrowed.
    const char *text[HRT_TEXTS_MAX];
    int count;
};

enum hrt_value_kind {
    HRT_VALUE_FLAG,    // bool; takes no text
    HRT_VALUE_INTEGER, // int64_t; 1e6, and k M G T decimal and Ki Mi Gi Ti binary factors
    HRT_VALUE_REAL,    // double
    HRT_VALUE_PAIR,    // double[2]; "0.9, 0.95", with or without []
    HRT_VALUE_CHOICE,  // int, which of `words`
    HRT_VALUE_TEXT,    // const char *, borrowed
    HRT_VALUE_TEXTS,   // struct hrt_texts; every value given is added
};

struct hrt_value_rule {
    enum hrt_value_kind kind;
    double least, most; // Numbers; most 0: no bound, both 0: any.
    const char *words;  // Choices, separated by '|'.
    const char *zero;   // A word for 0 or for no text: "auto", "none"; NULL: there is none.
    bool bytes;         // An integer may end in B.
};

// Rules as the tables of options and settings write them.
// clang-format off
#define HRT_INTEGER(least, most) {HRT_VALUE_INTEGER, least, most, NULL, NULL, false}
#define HRT_BYTES(least, most) {HRT_VALUE_INTEGER, least, most, NULL, NULL, true}
#define HRT_INTEGER_OR(zero, least, most) {HRT_VALUE_INTEGER, least, most, NULL, zero, false}
#define HRT_REAL(least, most) {HRT_VALUE_REAL, least, most, NULL, NULL, false}
#define HRT_REAL_OR(zero, least, most) {HRT_VALUE_REAL, least, most, NULL, zero, false}
#define HRT_PAIR(least, most) {HRT_VALUE_PAIR, least, most, NULL, NULL, false}
#define HRT_CHOICE(words) {HRT_VALUE_CHOICE, 0, 0, words, NULL, false}
#define HRT_TEXT {HRT_VALUE_TEXT, 0, 0, NULL, NULL, false}
#define HRT_TEXT_OR(zero) {HRT_VALUE_TEXT, 0, 0, NULL, zero, false}
#define HRT_TEXTS {HRT_VALUE_TEXTS, 0, 0, NULL, NULL, false}
#define HRT_FLAG {HRT_VALUE_FLAG, 0, 0, NULL, NULL, false}
// clang-format on

// Word number `index` of a list separated by '|', whose length is set. NULL: there are fewer.
const char *hrt_config_word(const char *words, int index, int *length);

// Parses `text` by the rule and stores it in `out`. False: `error` (a usage error) says what is
// wrong with `name`; `out` is unchanged.
bool hrt_config_parse(const struct hrt_value_rule *rule, const char *name, const char *text,
                      void *out, struct hrt_error *error);

#endif
