// The page of a report: one file that needs no other, and no network.
#ifndef HECATE_TOOLS_REPORT_PAGE_H
#define HECATE_TOOLS_REPORT_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/report/log.h"

enum { REPORT_POINTS = 2000 }; // Points of a curve, about.

// Writes the page of one run, or of several side by side. `watched`: it loads itself anew every few seconds.
// False: errno says why not.
bool report_page(FILE *out, const struct report_log *log, int logs, bool watched);

#endif
