// Changes of text that keep most of it well formed: bytes changed at random rarely get past a parser.
// Words are replaced by words, numbers by numbers, lines are dropped, repeated and exchanged.
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

struct text {
    uint8_t *data;
    size_t size, room;
    uint64_t random;
};

struct piece {
    size_t at, length;
};

static uint64_t draw(struct text *t, uint64_t count) { // splitmix64
    uint64_t z = t->random += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % count;
}

static bool is_word(int c) {
    return isalnum(c) || c == '_' || c == '.';
}

// Some word of the text, of digits (`number`) or not; length 0 when luck does not find one.
static struct piece find_word(struct text *t, bool number) {
    for (int tries = 0; tries < 20; tries++) {
        size_t at = draw(t, t->size);
        if (!is_word(t->data[at])) continue;
        while (at > 0 && is_word(t->data[at - 1])) at--;
        if (!isdigit(t->data[at]) == number) continue;
        size_t length = 0;
        while (at + length < t->size && is_word(t->data[at + length])) length++;
        return (struct piece){at, length};
    }
    return (struct piece){0, 0};
}

static struct piece find_line(struct text *t) {
    size_t at = draw(t, t->size), length = 0;
    while (at > 0 && t->data[at - 1] != '\n') at--;
    while (at + length < t->size && t->data[at + length] != '\n') length++;
    return (struct piece){at, length + (at + length < t->size)};
}

static void replace(struct text *t, struct piece piece, const void *with, size_t length) {
    if (t->size - piece.length + length > t->room) return;
    uint8_t *at = t->data + piece.at;
    memmove(at + length, at + piece.length, t->size - piece.at - piece.length);
    memcpy(at, with, length);
    t->size += length - piece.length;
}

// Puts a copy of `from` in the place of `to`.
static void copy(struct text *t, struct piece to, struct piece from) {
    uint8_t kept[512];
    if (from.length > sizeof kept) return;
    memcpy(kept, t->data + from.at, from.length);
    replace(t, to, kept, from.length);
}

static void change_number(struct text *t) {
    static const char *const numbers[] = {
        "0",   "1", "2",   "3",    "7",   "16",  "63",         "64",         "65",
        "255", "1", "256", "4096", "1Ki", "1Mi", "4611686018", "2147483648", "1000000007"};
    static const char *const rare[] = {"9223372036854775807",
                                       "9223372036854775808",
                                       "18446744073709551616",
                                       "4294967296",
                                       "1e308",
                                       "1e-320",
                                       "0.5",
                                       "1Ti",
                                       "00",
                                       "1e"};
    const struct piece to = find_word(t, true);
    if (!to.length) return;
    const char *number = numbers[draw(t, sizeof numbers / sizeof *numbers)];
    if (draw(t, 8) == 0) number = rare[draw(t, sizeof rare / sizeof *rare)];
    replace(t, to, number, strlen(number));
}

static void change(struct text *t) {
    const struct piece line = find_line(t);
    struct piece to, from;
    switch (draw(t, 8)) {
    case 0:
    case 1:
        change_number(t);
        break;
    case 2:
    case 3:
        to = find_word(t, false);
        from = find_word(t, false);
        if (to.length && from.length) copy(t, to, from);
        break;
    case 4:
        to = find_word(t, true);
        from = find_word(t, draw(t, 4) != 0);
        if (to.length && from.length) copy(t, to, from);
        break;
    case 5:
        replace(t, line, "", 0);
        break;
    case 6: // Once more, or somewhere else, too.
        to = find_line(t);
        copy(t, (struct piece){to.at, 0}, line);
        break;
    default:
        copy(t, find_line(t), line);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    struct text t = {data, size, room, seed};
    if (size < 16 || draw(&t, 4) == 0) return LLVMFuzzerMutate(data, size, room);
    for (uint64_t left = 1 + draw(&t, 3); left && t.size > 1; left--) change(&t);
    return t.size;
}
