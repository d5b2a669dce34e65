// Compressed inputs: gzip, zstd, xz, bzip2.
#ifndef HECATE_TOOLS_PREPARE_DECOMPRESS_H
#define HECATE_TOOLS_PREPARE_DECOMPRESS_H

#include <stdio.h>

#include "runtime/base/error.h"

// Where `*file`, open at its beginning, is compressed, replaces it by a stream of its plain bytes, which owns it and
// seeks nowhere but to its beginning. A read of that stream that fails says why in `fault`, which is borrowed, as
// `path` is, until the stream is closed. False: out of memory; `*file` stays.
bool decompress(FILE **file, const char *path, struct hrt_error *fault);

#endif
