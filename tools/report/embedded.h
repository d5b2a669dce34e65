// Files of page/ as they are, which the build writes into C (embed.cmake).
#ifndef HECATE_TOOLS_REPORT_EMBEDDED_H
#define HECATE_TOOLS_REPORT_EMBEDDED_H

#include <stddef.h>

extern const unsigned char report_style[], report_script[];
extern const size_t report_style_bytes, report_script_bytes;

#endif
