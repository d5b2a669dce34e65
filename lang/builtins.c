// The table of builtin functions.
#include "lang/builtins.h"

// clang-format off
const struct hec_builtin_row hec_builtin_rows[] = {
    {"silu", "silu(x)", "x * sigmoid(x)"},
    {"gelu", "gelu(x)", "0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))"},
    {"gelu_erf", "gelu_erf(x)", "0.5 x (1 + erf(x / sqrt(2)))"},
    {"relu", "relu(x)", "the larger of x and 0"},
    {"sigmoid", "sigmoid(x)", "1 / (1 + exp(-x))"},
    {"tanh", "tanh(x)", "hyperbolic tangent"},
    {"exp", "exp(x)", "e^x"},
    {"sqrt", "sqrt(x)", "square root"},
    {"minimum", "minimum(x, y)", "the smaller of each pair"},
    {"maximum", "maximum(x, y)", "the larger of each pair"},
    {"rmsnorm", "rmsnorm(x, eps = 1e-5, over = [last dim], gain = true)",
     "x / sqrt(mean(x^2) + eps), times a gain of its own"},
    {"layernorm", "layernorm(x, eps = 1e-5, over = [last dim], gain = true, bias = true)",
     "(x - mean(x)) / sqrt(variance(x) + eps), times a gain, plus a bias"},
    {"rope", "rope(x, theta = 10000, scaling = none)", "rotates the halves of each head of x[T, heads, A] by position"},
    {"sdpa", "sdpa(q, k, v, causal = true | false, window = 0, scale = 1 / sqrt(A))",
     "softmax(q k^T scale) v for q[T, H, A], k[T, G, A], v[T, G, U]"},
};
// clang-format on
const int hec_builtin_rows_count = sizeof hec_builtin_rows / sizeof *hec_builtin_rows;

void hec_builtins_print(FILE *out) {
    for (int i = 0; i < hec_builtin_rows_count; i++) {
        fprintf(out, "%-75s %s\n", hec_builtin_rows[i].call, hec_builtin_rows[i].text);
    }
}
