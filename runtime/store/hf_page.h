// Rules of names that a page brings itself, in the setting names.hf.rules, for families that are not compiled in:
//
//     layers.{}.*.router = model.layers.{}.mlp.router.weight turned, ...
//
// A rule has a pattern of our paths, the name there and the form (enum hrt_hf_form); then `all`, where all experts of a
// layer lie in the tensor; `1/2`, where ours is the first of two parts of it; `interleaved`, where elements of the
// parts take turns.
#ifndef HECATE_RUNTIME_STORE_HF_PAGE_H
#define HECATE_RUNTIME_STORE_HF_PAGE_H

#include <stddef.h>

#include "runtime/store/hf_rules.h"

enum { HRT_HF_PAGE_RULES = 128, HRT_HF_PAGE_NAME = 200 };

struct hrt_hf_page {
    struct hrt_hf_family family; // Valid while the page is; its rules count first.
    struct hrt_hf_rule rule[HRT_HF_PAGE_RULES + 1];
    char *text; // They point into it.
};

// Reads rules, which are not trusted. `like` is a family whose rules come behind them, or "". False: `why` says what is
// wrong, and there is nothing to free. Free it with hrt_store_hf_free_page.
bool hrt_store_hf_read_page(struct hrt_hf_page *page, const char *like, const char *rules,
                            char *why, size_t room);
void hrt_store_hf_free_page(struct hrt_hf_page *page);

#endif
