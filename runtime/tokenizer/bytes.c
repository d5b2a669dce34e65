// Source of the order: Radford et al. 2019, the encoder of GPT-2: bytes that can be seen stand for themselves, the
// others are U+0100 and on, in their order.
#include "runtime/tokenizer/bytes.h"

#include <stdlib.h>

static bool seen(unsigned byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// The byte of a character; -1: none.
static int byte_of(unsigned character) {
    if (character < 256) return seen(character) ? (int)character : -1;
    unsigned next = 256;
    for (unsigned byte = 0; byte < 256; byte++) {
        if (!seen(byte) && next++ == character) return (int)byte;
    }
    return -1;
}

bool hrt_tokenizer_bytes_read(const char *written, size_t length, struct hrt_text *out,
                              bool *known) {
    const size_t before = out->bytes;
    *known = true;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        bool sound;
        bytes = hrt_tokenizer_utf8_length(written + at, length - at, &sound);
        const unsigned char *c = (const unsigned char *)written + at;
        const unsigned character = bytes == 1   ? c[0]
                                   : bytes == 2 ? (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu)
                                                : UINT32_MAX;
        const int byte = character == UINT32_MAX ? -1 : byte_of(character);
        *known = byte >= 0;
        if (!*known) {
            out->bytes = before;
            return true;
        }
        if (!hrt_tokenizer_text_append(out, &(char){(char)byte}, 1)) return false;
    }
    return true;
}

int hrt_tokenizer_byte_named(const struct hrt_text *written) {
    char *end;
    if (written->bytes != 6 || memcmp(written->at, "<0x", 3) != 0) return -1;
    const long byte = strtol(written->at + 3, &end, 16);
    return end == written->at + 5 && *end == '>' ? (int)byte : -1;
}
