// Which tokens end a text, as a model's folder says.
#ifndef HECATE_RUNTIME_SAMPLE_ENDS_H
#define HECATE_RUNTIME_SAMPLE_ENDS_H

#include "runtime/tokenizer/tokenizer.h"

// Fills in `ends`, empty before, with `eos_token_id`, an id or several, of generation_config.json in the folder of
// `tokenizer`, a path; or of config.json, where the first is not there or says nothing. Neither may be there: then it
// stays empty. False: one of them is no JSON, or that is no id below `vocabulary`.
bool hrt_sample_ends_read(const char *tokenizer, int64_t vocabulary, struct hrt_ids *ends,
                          struct hrt_error *error);

#endif
