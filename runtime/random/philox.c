// The round function of the paper's section 4.3, unrolled by the compiler.
#include "runtime/random/philox.h"

enum { ROUNDS = 10 };
static const uint32_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
static const uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85; // Added to the key between rounds.

struct hrt_philox hrt_philox4x32(struct hrt_philox counter, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t product0 = (uint64_t)multiplier0 * counter.word[0];
        const uint64_t product1 = (uint64_t)multiplier1 * counter.word[2];
        counter = (struct hrt_philox){{
            (uint32_t)(product1 >> 32) ^ counter.word[1] ^ key0,
            (uint32_t)product1,
            (uint32_t)(product0 >> 32) ^ counter.word[3] ^ key1,
            (uint32_t)product0,
        }};
        key0 += weyl0;
        key1 += weyl1;
    }
    return counter;
}
