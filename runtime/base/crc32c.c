// The state of a CRC is linear over GF(2) in what it began with and in the data. So long data are three stretches whose
// states the processor computes side by side, since its instruction takes three cycles and starts one in each. The
// state of a stretch is then moved over the length of those behind it, by tables.
#include "runtime/base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#ifdef __aarch64__
#include <sys/auxv.h>
#endif

enum { STRETCH = 1024, BYTES = 8 };
static const uint32_t polynomial = 0x82f63b78;

static struct {
    uint32_t of[BYTES]
               [256];      // [k][b]: the state that byte b leaves, with k bytes of zero behind it.
    uint32_t over[4][256]; // The state that byte k of a state leaves, behind a stretch of zeros.
    bool instruction;
} table;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t load(const unsigned char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

// ---- tables: eight bytes at a time

static uint32_t step_by_tables(uint32_t state, const unsigned char *at, size_t bytes) {
    for (; bytes >= BYTES; at += BYTES, bytes -= BYTES) {
        uint64_t word = load(at);
        if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) word = __builtin_bswap64(word);
        word ^= state;
        state = table.of[7][word & 255] ^ table.of[6][word >> 8 & 255] ^
                table.of[5][word >> 16 & 255] ^ table.of[4][word >> 24 & 255] ^
                table.of[3][word >> 32 & 255] ^ table.of[2][word >> 40 & 255] ^
                table.of[1][word >> 48 & 255] ^ table.of[0][word >> 56];
    }
    for (; bytes > 0; at++, bytes--) state = state >> 8 ^ table.of[0][(state ^ *at) & 255];
    return state;
}

static uint32_t move_over_stretch(uint32_t state) {
    return table.over[0][state & 255] ^ table.over[1][state >> 8 & 255] ^
           table.over[2][state >> 16 & 255] ^ table.over[3][state >> 24];
}

// ---- the instruction

#if defined __x86_64__
#define BY_INSTRUCTION __attribute__((target("sse4.2")))
#define STEP_WORD(state, word) ((uint32_t)__builtin_ia32_crc32di(state, word))
#define STEP_BYTE(state, byte) __builtin_ia32_crc32qi(state, byte)
static bool has_instruction(void) {
    return __builtin_cpu_supports("sse4.2");
}
#elif defined __aarch64__
#define BY_INSTRUCTION
#define STEP_WORD(state, word) step_word(state, word)
#define STEP_BYTE(state, byte) step_byte(state, byte)
static uint32_t step_word(uint32_t state, uint64_t word) {
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(word));
    return state;
}
static uint32_t step_byte(uint32_t state, unsigned char byte) {
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(byte));
    return state;
}
static bool has_instruction(void) {
    return getauxval(AT_HWCAP) >> 7 & 1; // HWCAP_CRC32
}
#else
#define BY_INSTRUCTION
#define STEP_WORD(state, word) ((void)(word), state)
#define STEP_BYTE(state, byte) ((void)(byte), state)
static bool has_instruction(void) {
    return false;
}
#endif

BY_INSTRUCTION static uint32_t step(uint32_t state, const unsigned char *at, size_t bytes) {
    for (; bytes >= 3 * STRETCH; at += 3 * STRETCH, bytes -= 3 * STRETCH) {
        uint32_t second = 0, third = 0;
        for (size_t i = 0; i < STRETCH; i += BYTES) {
            state = STEP_WORD(state, load(at + i));
            second = STEP_WORD(second, load(at + STRETCH + i));
            third = STEP_WORD(third, load(at + 2 * STRETCH + i));
        }
        state = move_over_stretch(move_over_stretch(state) ^ second) ^ third;
    }
    for (; bytes >= BYTES; at += BYTES, bytes -= BYTES) state = STEP_WORD(state, load(at));
    for (; bytes > 0; at++, bytes--) state = STEP_BYTE(state, *at);
    return state;
}

// ---- both

static void make_tables(void) {
    static const unsigned char zeros[STRETCH];
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t state = byte;
        for (int bit = 0; bit < 8; bit++) state = state >> 1 ^ (state & 1 ? polynomial : 0);
        table.of[0][byte] = state;
    }
    for (int k = 1; k < BYTES; k++) {
        for (int byte = 0; byte < 256; byte++) {
            const uint32_t before = table.of[k - 1][byte];
            table.of[k][byte] = before >> 8 ^ table.of[0][before & 255];
        }
    }
    uint32_t moved[32]; // Each bit of a state; several bits give the sum.
    for (int bit = 0; bit < 32; bit++)
        moved[bit] = step_by_tables(UINT32_C(1) << bit, zeros, STRETCH);
    for (int k = 0; k < 4; k++) {
        for (int byte = 0; byte < 256; byte++) {
            for (int bit = 0; bit < 8; bit++)
                table.over[k][byte] ^= byte >> bit & 1 ? moved[8 * k + bit] : 0;
        }
    }
    table.instruction = has_instruction();
}

uint32_t hrt_base_crc32c_by_tables(uint32_t sum, const void *data, size_t bytes) {
    pthread_once(&once, make_tables);
    return ~step_by_tables(~sum, data, bytes);
}

uint32_t hrt_base_crc32c(uint32_t sum, const void *data, size_t bytes) {
    pthread_once(&once, make_tables);
    return table.instruction ? ~step(~sum, data, bytes) : ~step_by_tables(~sum, data, bytes);
}
