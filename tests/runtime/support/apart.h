// A device with separate memory, on the host: tests the code for devices without a GPU. The host may not touch its
// memory (it ends by a signal), and work is done as late as it may be: when somebody waits.
#ifndef HECATE_TESTS_RUNTIME_SUPPORT_APART_H
#define HECATE_TESTS_RUNTIME_SUPPORT_APART_H

#include "runtime/device/device.h"

extern const struct hrt_device_backend test_device_apart;

// Blocks that were taken and not given back.
int test_apart_blocks(void);

#endif
