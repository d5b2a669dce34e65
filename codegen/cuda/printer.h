// The target cuda: calls of launchers, and loops as kernels of their own.
#ifndef HECATE_CODEGEN_CUDA_PRINTER_H
#define HECATE_CODEGEN_CUDA_PRINTER_H

#include "codegen/host/printer.h"

extern const struct hec_printer hec_cuda_printer;

#endif
