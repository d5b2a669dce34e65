// A command line of another program: built word by word, shown, run without a shell.
#ifndef HECATE_CODEGEN_BASE_COMMAND_H
#define HECATE_CODEGEN_BASE_COMMAND_H

#include <stdbool.h>

#include "lang/base/arena.h"
#include "lang/base/vec.h"

struct hec_command {
    struct hec_arena *arena;
    const char *below_mpicc; // The compiler that mpicc is to call, or NULL.
    const char
        *said; // Its output goes to this file, and it reads nothing; NULL: both are hecatec's own.
    bool spreads;     // It starts processes on other machines, too: their TMPDIR is the user's.
    unsigned seconds; // It may take so long; 0: as long as it likes.
    HEC_VEC(char *) word;
};

// Adds one word; the words that blanks divide `text` into.
void hec_command_add(struct hec_command *command, const char *text);
void hec_command_add_words(struct hec_command *command, const char *text);

// Prints it to standard error, as a shell would read it back.
void hec_command_show(const struct hec_command *command);

// Runs it and waits; a signal that ends hecatec meanwhile ends it, too. Its TMPDIR is a folder that is removed
// behind it. Returns its status as wait gives it, -1 with errno when it could not be started,
// HEC_COMMAND_NO_FOLDER after a complaint, or HEC_COMMAND_LATE when its time was over and it was ended.
enum { HEC_COMMAND_NO_FOLDER = -2, HEC_COMMAND_LATE = -3 };
int hec_command_run(struct hec_command *command);

// Complains that `what`, "the C compiler", could not be run or failed, as `status` of hec_command_run says; with -1
// errno says why, and of HEC_COMMAND_NO_FOLDER was complained already.
void hec_command_complain(const struct hec_command *command, const char *what, int status);

#endif
