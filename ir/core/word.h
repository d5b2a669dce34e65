// The words of a signature in ops.def. Knows nothing of MLIR: the generator of accessors reads them, too.
#ifndef HECATE_IR_CORE_WORD_H
#define HECATE_IR_CORE_WORD_H

// One word of operands, results or attributes: name[:kind][?|*].
struct hec_word {
    char name[40];
    char kind[12]; // Empty: a ranked tensor.
    char repeat;   // '?', '*' or 0.
};

// Reads the word at `at`. Returns the text behind it, NULL at the end.
const char *hec_next_word(const char *at, struct hec_word *word);

#endif
