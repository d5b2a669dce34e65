#include "runtime/base/format.h"

#include <stdio.h>

void hrt_format_bytes(char *out, size_t out_bytes, double bytes) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int i = 0;
    for (; bytes >= 1024 && i < 4; i++) bytes /= 1024;
    snprintf(out, out_bytes, i == 0 ? "%.0f %s" : "%.1f %s", bytes, unit[i]);
}
