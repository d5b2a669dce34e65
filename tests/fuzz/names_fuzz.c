// Rules of names of a page's, and a path that is looked up in them: the input is the path, a zero byte, and the rules.
//
// Promises: a refusal says why; a rule that is found has a name and matches no longer than the list.
#include <stdlib.h>
#include <string.h>

#include "runtime/store/hf_page.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *zero = memchr(data, 0, size);
    if (!zero) return 0;
    const size_t head = (size_t)(zero - data) + 1;
    char *text = calloc(1, size + 1), why[400] = "";
    memcpy(text, data, size);
    struct hrt_hf_page page;
    if (!hrt_store_hf_read_page(&page, size % 2 ? "" : "kimi_k2", text + head, why, sizeof why)) {
        if (!*why) fuzz_broken("a refusal says why");
    } else {
        const struct hrt_hf_rule *rule = hrt_store_hf_rule_of(&page.family, text);
        if (rule && !rule->layout[0].name) fuzz_broken("a rule has a name");
        int count = 0;
        rule = NULL;
        while ((rule = hrt_store_hf_next_rule(&page.family, rule))) count++;
        if (count > HRT_HF_PAGE_RULES + 100) fuzz_broken("lists of rules end");
        hrt_store_hf_free_page(&page);
    }
    free(text);
    return 0;
}
