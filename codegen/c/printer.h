// Target cpu: operations as C that calls the kernels of this machine, or as loops.
#ifndef HECATE_CODEGEN_C_PRINTER_H
#define HECATE_CODEGEN_C_PRINTER_H

#include "codegen/host/printer.h"

extern const struct hec_printer hec_c_printer;

#endif
