// Shared by the fuzz targets: inputs as files and as lists of words. See README.md.
#ifndef HECATE_TESTS_FUZZ_FUZZ_H
#define HECATE_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

// libFuzzer calls it once per input.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Makes the bytes the content of an anonymous file. Returns its path, valid until the next call with
// the same `slot` (0 or 1).
const char *fuzz_file(int slot, const void *data, size_t size);

// A copy with a NUL behind it; the caller frees it.
char *fuzz_text(const uint8_t *data, size_t size);

// Splits `text` of `size` bytes in place, at newlines and NULs. Returns how many words.
enum { FUZZ_WORDS_MAX = 24 };
int fuzz_words(char *text, size_t size, char *word[FUZZ_WORDS_MAX]);

// Ends the process so that the fuzzer keeps the input: a promise of ours was broken.
_Noreturn void fuzz_broken(const char *promise);

// Sends standard output, and from standard error what the readers under test say, to nowhere: `stderr`
// becomes another stream; the fuzzer and the sanitizers write to the descriptor.
void fuzz_hush_errors(void);

#endif
