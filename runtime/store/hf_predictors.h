// The layer of a folder that predicts a token after the next one (multi-token prediction, arXiv:2412.19437): its
// tensors that a program does not ask for.
#ifndef HECATE_RUNTIME_STORE_HF_PREDICTORS_H
#define HECATE_RUNTIME_STORE_HF_PREDICTORS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/store/hf_folder.h"
#include "runtime/store/hf_names.h"

// For a program without such a layer: takes from `left`, an object of names that nothing has asked for, those of layers
// that predict. Returns how many.
size_t hrt_store_hf_pass_over(struct json_t *left);

// For a program with one: takes its copies of the embedding and the head from `left`. False: one is not the same as
// its original, or cannot be read; the folder's error tells which. Not collective; reads both.
bool hrt_store_hf_check_copies(const struct hrt_hf_folder *folder,
                               const struct hrt_hf_family *family,
                               const struct hrt_program *program, struct json_t *left);

#endif
