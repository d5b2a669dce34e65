#include "planted.h"

#include <stdlib.h>

static int chosen() {
    const char *fault = getenv("SIMT_FAULT");
    return fault ? atoi(fault) : 0;
}

int simt_planted = chosen();
