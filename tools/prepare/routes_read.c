// Expert ids of engines: NumPy's arrays, base64 texts, lists of JSON.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/prepare/routes.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ids are little-endian");

enum { HEAD_MAX = 4096, DIMS_MIN = 3, DIMS_MAX = 4 };

void routes_free(struct routes *routes) {
    free(routes->id);
    *routes = (struct routes){0};
}

// ---- arrays of NumPy: a magic, two bytes of version, the length of the head, the head, which is text, and the numbers

struct npy {
    int64_t dim[DIMS_MAX];
    int dims, width;
    bool is_signed;
};

// The text behind 'KEY': in the head. NULL: it lacks it.
static const char *value_of(const char *head, const char *key) {
    const char *found = strstr(head, key);
    if (!found) return NULL;
    found += strlen(key);
    return found + strspn(found, ": ");
}

// The numbers: integers in the order of this machine.
static bool read_type(const char *head, struct npy *npy, struct hrt_error *error) {
    const char *type = value_of(head, "'descr'"), *order = value_of(head, "'fortran_order'");
    if (!type || !order) return hrt_fail(error, "the array's head has no type");
    if (strncmp(order, "False", 5) != 0)
        return hrt_fail(error, "the array is in Fortran's order; numpy.ascontiguousarray helps");
    const bool known = *type == '\'' && (type[1] == '<' || type[1] == '|') &&
                       (type[2] == 'i' || type[2] == 'u') && strchr("1248", type[3]) && type[3] &&
                       type[4] == '\'';
    if (!known)
        return hrt_fail(error, "the array has type %.*s, and integers are wanted, such as '<i4'",
                        (int)strcspn(type, ",}"), type);
    npy->width = type[3] - '0';
    npy->is_signed = type[2] == 'i';
    return true;
}

static bool read_dims(const char *head, struct npy *npy, struct hrt_error *error) {
    const char *shape = value_of(head, "'shape'");
    if (!shape || *shape != '(') return hrt_fail(error, "the array's head has no shape");
    for (shape++; npy->dims <= DIMS_MAX; npy->dims++) {
        shape += strspn(shape, ", ");
        if (*shape == ')') break;
        char *end;
        const long long dim = strtoll(shape, &end, 10);
        if (end == shape || dim < 0 || dim > INT32_MAX || npy->dims == DIMS_MAX) break;
        npy->dim[npy->dims] = dim;
        shape = end;
    }
    return (*shape == ')' && npy->dims >= DIMS_MIN) ||
           hrt_fail(error,
                    "the array's shape is %.*s, and (tokens, layers, top_k) is wanted, or "
                    "(sequences, tokens, layers, top_k)",
                    (int)strcspn(value_of(head, "'shape'"), ")") + 1, value_of(head, "'shape'"));
}

// The place of the numbers. 0: the head is broken.
static size_t read_head(const unsigned char *bytes, size_t count, char *head) {
    const bool is_long = count >= 8 && bytes[6] > 1;
    const size_t at = is_long ? 12 : 10;
    if (count < at) return 0;
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (is_long) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length >= HEAD_MAX || length > count - at) return 0;
    memcpy(head, bytes + at, length);
    head[length] = '\0';
    return at + length;
}

static bool is_npy(const unsigned char *bytes, size_t count) {
    return count >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0;
}

static int32_t number_at(const unsigned char *at, const struct npy *npy) {
    uint64_t raw = 0;
    memcpy(&raw, at, (size_t)npy->width);
    const int free_bits = 64 - 8 * npy->width;
    const int64_t number = npy->is_signed    ? (int64_t)(raw << free_bits) >> free_bits
                           : raw > INT64_MAX ? INT64_MAX
                                             : (int64_t)raw;
    return number < -1 || number > INT32_MAX ? INT32_MAX : (int32_t)number; // No expert, either.
}

static bool check_shape(int64_t layers, int64_t topk, int64_t wanted_layers, int64_t wanted_topk,
                        struct hrt_error *error) {
    return (layers == wanted_layers && topk == wanted_topk) ||
           hrt_fail(error,
                    "the routes have %" PRId64 " layers of %" PRId64 " experts a token, and "
                    "%" PRId64 " of %" PRId64 " are wanted (--layers, --dense, --topk)",
                    layers, topk, wanted_layers, wanted_topk);
}

bool routes_of_npy(const void *bytes, size_t count, int64_t layers, int64_t topk,
                   struct routes *routes, struct hrt_error *error) {
    char head[HEAD_MAX];
    struct npy npy = {0};
    *routes = (struct routes){0};
    if (!is_npy(bytes, count)) return hrt_fail(error, "it is no array of NumPy's .npy");
    const size_t at = read_head(bytes, count, head);
    if (!at) return hrt_fail(error, "the array's head is damaged");
    if (!read_type(head, &npy, error) || !read_dims(head, &npy, error)) return false;
    const int64_t *dim = npy.dim + npy.dims - DIMS_MIN;
    if (!check_shape(dim[1], dim[2], layers, topk, error)) return false;
    const int64_t sequences = npy.dims == DIMS_MAX ? npy.dim[0] : 1;
    // Each factor is below 2^31; layers and topk are those of the command line.
    const __int128 numbers = (__int128)sequences * dim[0] * (layers * topk);
    if (numbers * npy.width != (__int128)(count - at))
        return hrt_fail(error,
                        "the array's shape wants %" PRId64 " numbers of %d bytes, and it has "
                        "%zu bytes",
                        numbers > INT64_MAX ? INT64_MAX : (int64_t)numbers, npy.width, count - at);
    int32_t *id = malloc((size_t)numbers * sizeof *id + 1);
    if (!id) return hrt_fail(error, "out of memory");
    for (size_t i = 0; i < (size_t)numbers; i++)
        id[i] = number_at((const unsigned char *)bytes + at + i * (size_t)npy.width, &npy);
    *routes = (struct routes){sequences, dim[0], layers, topk, id};
    return true;
}

// ---- texts

static int digit_of(char sign) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = sign ? strchr(digits, sign) : NULL;
    return found ? (int)(found - digits) : -1;
}

// The bytes of a base64 text (RFC 4648), the caller's. NULL, with `error`: it is none.
static unsigned char *bytes_of(const char *text, size_t length, size_t *count,
                               struct hrt_error *error) {
    size_t digits = length;
    while (digits > 0 && length - digits < 2 && text[digits - 1] == '=') digits--;
    if (length % 4 != 0) {
        hrt_fail(error, "the text is no base64: its length is no multiple of 4");
        return NULL;
    }
    unsigned char *bytes = calloc(length / 4 * 3 + 1, 1);
    if (!bytes) hrt_fail(error, "out of memory");
    for (size_t i = 0; bytes && i < digits; i++) {
        const int digit = digit_of(text[i]);
        if (digit < 0) {
            hrt_fail(error, "the text is no base64 at byte %zu", i);
            free(bytes);
            return NULL;
        }
        // Six bits, from bit 6 i of the bytes on, the highest first.
        const size_t at = 6 * i / 8;
        const unsigned pair = (unsigned)digit << (10 - 6 * i % 8);
        bytes[at] |= (unsigned char)(pair >> 8);
        bytes[at + 1] |= (unsigned char)pair;
    }
    *count = length / 4 * 3 - (length - digits);
    return bytes;
}

// ---- values of records

// Little-endian int32 alone.
static bool of_raw(const unsigned char *bytes, size_t count, int64_t layers, int64_t topk,
                   struct routes *routes, struct hrt_error *error) {
    const size_t token = (size_t)(layers * topk) * sizeof(int32_t);
    if (count % token != 0)
        return hrt_fail(error,
                        "the text has %zu bytes, and a token of %" PRId64 " layers (--layers, "
                        "--dense) of %" PRId64 " experts (--topk) has %zu",
                        count, layers, topk, token);
    int32_t *id = malloc(count + 1);
    if (!id) return hrt_fail(error, "out of memory");
    memcpy(id, bytes, count);
    *routes = (struct routes){1, (int64_t)(count / token), layers, topk, id};
    return true;
}

static bool of_text(const char *text, size_t length, int64_t layers, int64_t topk,
                    struct routes *routes, struct hrt_error *error) {
    size_t count = 0;
    unsigned char *bytes = bytes_of(text, length, &count, error);
    if (!bytes) return false;
    const bool read = is_npy(bytes, count)
                          ? routes_of_npy(bytes, count, layers, topk, routes, error)
                          : of_raw(bytes, count, layers, topk, routes, error);
    free(bytes);
    return read;
}

// The experts of a token: lists [layers][topk] of integers.
static bool of_token(const json_t *token, int64_t layers, int64_t topk, int32_t *id,
                     struct hrt_error *error) {
    const json_t *first = json_array_get(token, 0);
    if (!json_is_array(first)) return hrt_fail(error, "it is no list [tokens][layers][top_k]");
    for (int64_t layer = 0; layer < layers; layer++) {
        const json_t *picks = json_array_get(token, (size_t)layer);
        if (!check_shape((int64_t)json_array_size(token), (int64_t)json_array_size(picks), layers,
                         topk, error))
            return false;
        for (int64_t k = 0; k < topk; k++) {
            const json_t *pick = json_array_get(picks, (size_t)k);
            const json_int_t number = json_integer_value(pick);
            if (!json_is_integer(pick)) return hrt_fail(error, "an expert is no whole number");
            *id++ = number < -1 || number > INT32_MAX ? INT32_MAX : (int32_t)number;
        }
    }
    return true;
}

static bool of_lists(const json_t *value, int64_t layers, int64_t topk, struct routes *routes,
                     struct hrt_error *error) {
    const size_t tokens = json_array_size(value);
    int32_t *id = calloc(tokens + 1, (size_t)(layers * topk) * sizeof *id);
    bool read = id || hrt_fail(error, "out of memory");
    for (size_t t = 0; read && t < tokens; t++)
        read = of_token(json_array_get(value, t), layers, topk, id + t * (size_t)(layers * topk),
                        error);
    if (!read) return free(id), false;
    *routes = (struct routes){1, (int64_t)tokens, layers, topk, id};
    return true;
}

static bool append(struct routes *routes, const struct routes *more, struct hrt_error *error) {
    const size_t token = (size_t)(more->layers * more->topk);
    const size_t had = (size_t)routes->tokens * token, added = (size_t)more->tokens * token;
    int32_t *grown = realloc(routes->id, (had + added + 1) * sizeof *grown);
    if (!grown) return hrt_fail(error, "out of memory");
    memcpy(grown + had, more->id, added * sizeof *grown);
    *routes = (struct routes){1, routes->tokens + more->tokens, more->layers, more->topk, grown};
    return true;
}

bool routes_add(struct routes *routes, const json_t *value, int64_t layers, int64_t topk,
                struct hrt_error *error) {
    struct routes more = {0};
    if (!json_is_string(value) && !json_is_array(value))
        return hrt_fail(error, "it is neither a base64 text, nor lists");
    if (!(json_is_array(value) ? of_lists(value, layers, topk, &more, error)
                               : of_text(json_string_value(value), json_string_length(value),
                                         layers, topk, &more, error)))
        return false;
    const bool added =
        more.sequences == 1
            ? append(routes, &more, error)
            : hrt_fail(error, "it has %" PRId64 " sequences, and a record has one", more.sequences);
    routes_free(&more);
    return added;
}
