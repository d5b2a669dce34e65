// ldmatrix and mma.sync, for the whole warp at once.
#include "matrix.h"

#include <string.h>

#include "warp.h"

namespace simt {

struct load_t {
    uint32_t *to; // [4]
    const unsigned char *row;
};

static uint16_t value_at(const load_t &row, int column) {
    uint16_t value;
    memcpy(&value, row.row + column * 2, sizeof value);
    return value;
}

static void load_all(load_t **all, bool transposed) {
    for (int matrix = 0; matrix < 4; matrix++) {
        for (int lane = 0; lane < LANES; lane++) {
            load_t **rows = all + matrix * 8;
            const int line = lane / 4, pair = lane % 4 * 2;
            const uint16_t low =
                transposed ? value_at(*rows[pair], line) : value_at(*rows[line], pair);
            const uint16_t high =
                transposed ? value_at(*rows[pair + 1], line) : value_at(*rows[line], pair + 1);
            all[lane]->to[matrix] = low | (uint32_t)high << 16;
        }
    }
}

void load_matrices(uint32_t (&r)[4], uint32_t from, bool transposed, site_t site) {
    load_t mine = {r, shared_pointer(from, 16, "ldmatrix")};
    touch(mine.row, 16, READ);
    collect(
        "ldmatrix", ~0u, mine, [=](load_t **all) { load_all(all, transposed); }, site);
}

typedef float row_t __attribute__((vector_size(32)));

struct product_t {
    float *d;          // [4]
    const uint32_t *a; // [4]
    uint32_t b[2];
};

static float half_of(uint32_t pair, int which) {
    const uint32_t bits = which ? pair & 0xffff0000u : pair << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void multiply_all(product_t **all) {
    float a[16][16];
    row_t b[16], d[16];
    for (int lane = 0; lane < LANES; lane++) {
        const product_t &p = *all[lane];
        const int g = lane / 4, t = lane % 4 * 2;
        for (int i = 0; i < 8; i++) {
            a[g + i / 2 % 2 * 8][t + i / 4 * 8 + i % 2] = half_of(p.a[i / 2], i % 2);
        }
        for (int i = 0; i < 4; i++) b[t + i / 2 * 8 + i % 2][g] = half_of(p.b[i / 2], i % 2);
        for (int i = 0; i < 4; i++) d[g + i / 2 * 8][t + i % 2] = p.d[i];
    }
    for (int i = 0; i < 16; i++) {
        for (int k = 0; k < 16; k++) d[i] += a[i][k] * b[k];
    }
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < 4; i++) all[lane]->d[i] = d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
    }
}

void multiply_matrices(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                       site_t site) {
    product_t mine = {d, a, {b0, b1}};
    collect("mma.sync", ~0u, mine, multiply_all, site);
}

} // namespace simt
