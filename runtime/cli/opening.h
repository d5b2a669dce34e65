// The lines that a training run prints before its first step: its data, devices, and the size of a step.
#ifndef HECATE_RUNTIME_CLI_OPENING_H
#define HECATE_RUNTIME_CLI_OPENING_H

#include "runtime/data/data.h"
#include "runtime/train/trainer.h"

// Both print to standard output. The trainer has its state.
void hrt_cli_opening_data(const struct hrt_data *data);
void hrt_cli_opening_run(const struct hrt_trainer *trainer);

// Prints the pieces of a learning rate, and a newline: "warmup to 0.001 until step 20, cosine to 0 until step 300".
void hrt_cli_opening_rates(const struct hrt_rates *rates);

// Warns of settings whose combination is probably unwanted.
void hrt_cli_opening_warnings(const struct hrt_trainer *trainer);

#endif
