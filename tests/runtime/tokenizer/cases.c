// cases check TOKENIZER CASES: every line of CASES is a text, its ids, and their decoded text, of bytes in
// hexadecimal; encoding and decoding must give these, twice.
// cases encode TOKENIZER: the ids of each line of standard input. cases time TOKENIZER FILE: MB/s of user time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/tokenizer/tokenizer.h"

static struct hrt_error error;

static _Noreturn void stop(const char *what) {
    fprintf(stderr, "%s %s\n", what, error.text);
    exit(1);
}

// Bytes of hexadecimal, in place.
static size_t read_hex(char *text) {
    size_t bytes = 0;
    if (strcmp(text, "-") == 0) return 0;
    for (; text[2 * bytes]; bytes++) {
        const char pair[] = {text[2 * bytes], text[2 * bytes + 1], '\0'};
        text[bytes] = (char)strtol(pair, NULL, 16);
    }
    return bytes;
}

static void print_ids(const struct hrt_ids *ids, FILE *out) {
    if (ids->count == 0) fputs("-", out);
    for (size_t i = 0; i < ids->count; i++) fprintf(out, "%s%d", i ? "," : "", ids->at[i]);
}

static void check_ids(int line, const struct hrt_ids *ids, const char *wanted) {
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    print_ids(ids, out);
    fclose(out);
    if (strcmp(text, wanted) != 0) {
        fprintf(stderr, "line %d: %s\n wanted: %s\n", line, text, wanted);
        exit(1);
    }
    free(text);
}

// Decoded bytes, against the library's text, in which bytes that are no UTF-8 are U+FFFD.
static void check_text(int line, const struct hrt_tokenizer *tokenizer, const struct hrt_ids *ids,
                       const char *wanted, size_t bytes) {
    size_t at = 0;
    if (memmem(wanted, bytes, "\xef\xbf\xbd", 3)) return;
    for (size_t i = 0; i < ids->count; i++) {
        const struct hrt_piece piece = hrt_tokenizer_decode(tokenizer, ids->at[i], i == 0);
        if (ids->at[i] >= hrt_tokenizer_size(tokenizer)) stop("an id is too large");
        if (piece.special && hrt_tokenizer_find(tokenizer, piece.text) != ids->at[i])
            stop("a special token is not found by its name");
        if (at + piece.bytes > bytes || memcmp(piece.text, wanted + at, piece.bytes) != 0) {
            fprintf(stderr, "line %d: id %d is decoded to '%.*s'\n", line, ids->at[i],
                    (int)piece.bytes, piece.text);
            exit(1);
        }
        at += piece.bytes;
    }
    if (at != bytes) stop("a text is decoded to something shorter");
}

static void check(const struct hrt_tokenizer *tokenizer, struct hrt_encoder *encoder, FILE *cases) {
    struct hrt_ids ids = {0};
    char *line = NULL;
    size_t room = 0;
    int lines = 0;
    while (getline(&line, &room, cases) > 0) {
        char *save, *text = strtok_r(line, " \n", &save), *wanted = strtok_r(NULL, " \n", &save),
                    *decoded = strtok_r(NULL, " \n", &save);
        if (!decoded) stop("a case has three words");
        const size_t bytes = read_hex(text), length = read_hex(decoded);
        lines++;
        for (int again = 0; again < 2; again++) { // Words are remembered.
            ids.count = 0;
            if (!hrt_tokenizer_encode(encoder, text, bytes, true, &ids, &error)) stop("encode:");
            check_ids(lines, &ids, wanted);
        }
        check_text(lines, tokenizer, &ids, decoded, length);
    }
    printf("%d texts\n", lines);
    free(line);
    free(ids.at);
}

static void encode(struct hrt_encoder *encoder) {
    struct hrt_ids ids = {0};
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        line[strcspn(line, "\n")] = '\0';
        ids.count = 0;
        if (!hrt_tokenizer_encode(encoder, line, read_hex(line), true, &ids, &error))
            stop("encode:");
        print_ids(&ids, stdout);
        puts("");
    }
    free(line);
    free(ids.at);
}

static void measure(struct hrt_encoder *encoder, FILE *file) {
    struct hrt_ids ids = {0};
    char *text = NULL;
    size_t room = 0;
    const ssize_t bytes = getdelim(&text, &room, -1, file); // All of it.
    const clock_t before = clock();
    if (bytes < 0) stop("cannot read");
    for (char *at = text; at < text + bytes;) {
        char *end = memmem(at, (size_t)(text + bytes - at), "\n\n", 2);
        if (!end) end = text + bytes;
        ids.count = 0;
        if (!hrt_tokenizer_encode(encoder, at, (size_t)(end - at), true, &ids, &error))
            stop("encode:");
        at = end + 2;
    }
    printf("%.1f\n", (double)bytes / ((double)(clock() - before) / CLOCKS_PER_SEC) / 1e6);
    free(text);
    free(ids.at);
}

int main(int argc, char **argv) {
    if (argc < 3) stop("usage: cases check|encode|time TOKENIZER [FILE]");
    struct hrt_tokenizer *tokenizer = hrt_tokenizer_load(argv[2], &error);
    struct hrt_encoder *encoder =
        tokenizer ? hrt_tokenizer_encoder_create(tokenizer, &error) : NULL;
    if (!encoder) stop("load:");
    FILE *file = argc > 3 ? fopen(argv[3], "r") : NULL;
    if (strcmp(argv[1], "check") == 0 && file)
        check(tokenizer, encoder, file);
    else if (strcmp(argv[1], "time") == 0 && file)
        measure(encoder, file);
    else
        encode(encoder);
    if (file) fclose(file);
    hrt_tokenizer_encoder_free(encoder);
    hrt_tokenizer_free(tokenizer);
    return 0;
}
