// --from-hf=DIR: the model of a folder of Hugging Face's, as a .moe file.
#ifndef HECATE_CODEGEN_IMPORT_FROM_HF_H
#define HECATE_CODEGEN_IMPORT_FROM_HF_H

#include "codegen/base/options.h"

// Reads DIR/config.json and writes the model to -o, by default standard output. Returns the exit status.
int hec_from_hf(struct hec_arena *arena, const struct hec_options *options);

#endif
