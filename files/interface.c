// The symbol by which hecatec knows a library of its own headers (files/interface.cmake), such as hecate_runtime_of_0123456789abcdef.
#include "files/interface.h"

#define JOIN(library, interface) library##_of_##interface
#define NAME(library, interface) JOIN(library, interface)

extern const char NAME(HECATE_LIBRARY, HECATE_INTERFACE);
const char NAME(HECATE_LIBRARY, HECATE_INTERFACE) = 1;
