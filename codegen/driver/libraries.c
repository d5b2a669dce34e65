// Whether libraries have the symbol of this hecatec's headers (files/interface.cmake): read from the index of symbols that an archive begins with,
// names ended by zeros.
#define _GNU_SOURCE // memmem
#include "codegen/driver/libraries.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/base/status.h"
#include "files/files.h"
#include "files/interface.h"

#define TEXT(word) #word
#define TEXT_OF(macro) TEXT(macro)

// An archive's first bytes: its magic, and the head of its first member.
struct head {
    char magic[8];
    char name[16], date[12], user[6], group[6], mode[8], size[10], end[2];
};
enum { INDEX_MOST = 1 << 28 };

static bool is_index(const struct head *head) {
    return strncmp(head->name, "/ ", 2) == 0 || strncmp(head->name, "/SYM64/ ", 8) == 0;
}

static bool has_symbol(FILE *archive, const char *symbol) {
    struct head head;
    char size[sizeof head.size + 1] = "";
    if (fread(&head, sizeof head, 1, archive) != 1 || !is_index(&head)) return false;
    memcpy(size, head.size, sizeof head.size);
    const long bytes = strtol(size, NULL, 10);
    if (bytes < 1 || bytes > INDEX_MOST) return false;
    char *names = hec_checked(malloc((size_t)bytes));
    const bool found = fread(names, (size_t)bytes, 1, archive) == 1 &&
                       memmem(names, (size_t)bytes, symbol, strlen(symbol) + 1) != NULL;
    free(names);
    return found;
}

static bool check(struct hec_arena *arena, const char *prefix, const char *name) {
    const char *path = hec_arena_format(arena, "%s/lib/lib%s.a", prefix, name);
    const char *symbol = hec_arena_format(arena, "%s_of_" TEXT_OF(HECATE_INTERFACE), name);
    const char *why;
    FILE *archive = hf_input(path, false, &why);
    if (!archive) return hec_fail("cannot link with '%s': %s", path, why);
    const bool ours = has_symbol(archive, symbol);
    fclose(archive);
    if (ours) return true;
    fprintf(stderr,
            "hecatec: error: cannot link with %s: it was built with other headers than hecatec\n"
            "  build all of it again, or install all of it\n",
            path);
    return false;
}

bool hec_check_libraries(const struct hec_command *command, const char *prefix) {
    static const char flag[] = "-lhecate_";
    for (int i = 0; i < command->word.count; i++) {
        const char *word = command->word.item[i];
        if (strncmp(word, flag, strlen(flag)) == 0 && !check(command->arena, prefix, word + 2))
            return false;
    }
    return true;
}
