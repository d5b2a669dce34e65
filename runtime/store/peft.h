// Folders of adapters as Hugging Face's PEFT writes them: adapter_config.json and adapter_model.safetensors.
#ifndef HECATE_RUNTIME_STORE_PEFT_H
#define HECATE_RUNTIME_STORE_PEFT_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/program.h"
#include "runtime/store/hf_rules.h"

#define HRT_PEFT_WEIGHTS "adapter_model.safetensors"
#define HRT_PEFT_CONFIG "adapter_config.json"

// Checks the config of a folder against the program's adapters: LoRA of the same rank and alpha, and nothing else that
// changes the computation. False: `error` names the key.
bool hrt_store_peft_check(const char *folder, const struct hrt_program *program,
                          struct hrt_error *error);

// Writes the config of the program's adapters into a folder. `base` is the folder of the base model; NULL: unknown.
bool hrt_store_peft_write_config(const char *folder, const struct hrt_program *program,
                                 const struct hrt_hf_family *family, const char *base,
                                 struct hrt_error *error);

#endif
