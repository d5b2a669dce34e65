// Unit test of CRC-32C: by the processor's instruction and by tables.
#include "runtime/base/crc32c.h"

#include "tests/runtime/support/case.h"

// Values of RFC 3720, appendix B.4, and the check value that all catalogues have.
static void known_values(void **state) {
    (void)state;
    unsigned char data[32];
    assert_int_equal(hrt_base_crc32c(0, "", 0), 0);
    assert_int_equal(hrt_base_crc32c(0, "123456789", 9), 0xe3069283);
    memset(data, 0, sizeof data);
    assert_int_equal(hrt_base_crc32c(0, data, sizeof data), 0x8a9136aa);
    memset(data, 255, sizeof data);
    assert_int_equal(hrt_base_crc32c(0, data, sizeof data), 0x62a8ab43);
    for (unsigned char i = 0; i < sizeof data; i++) data[i] = i;
    assert_int_equal(hrt_base_crc32c(0, data, sizeof data), 0x46dd794e);
    assert_int_equal(hrt_base_crc32c_by_tables(0, data, sizeof data), 0x46dd794e);
}

static uint32_t bit_by_bit(const unsigned char *data, size_t bytes) {
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < bytes; i++) {
        sum ^= data[i];
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78 : 0);
    }
    return ~sum;
}

// All lengths, places and cuts.
static void all_ways_agree(void **state) {
    (void)state;
    enum { MOST = 10000 };
    static unsigned char data[MOST];
    uint32_t seed = 1;
    for (int i = 0; i < MOST; i++) data[i] = (unsigned char)((seed = seed * 1664525 + 9) >> 24);
    for (size_t bytes = 0; bytes < MOST - 8; bytes += bytes < 70 ? 1 : 997) {
        const unsigned char *at = data + bytes % 8;
        const size_t cut = bytes / 3;
        const uint32_t sum = bit_by_bit(at, bytes);
        assert_int_equal(hrt_base_crc32c(0, at, bytes), sum);
        assert_int_equal(hrt_base_crc32c_by_tables(0, at, bytes), sum);
        assert_int_equal(hrt_base_crc32c(hrt_base_crc32c(0, at, cut), at + cut, bytes - cut), sum);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(all_ways_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
