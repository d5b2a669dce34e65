// Gradients against central differences, for programs of double precision.
#ifndef HECATE_RUNTIME_TRAIN_CHECK_GRAD_H
#define HECATE_RUNTIME_TRAIN_CHECK_GRAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/params/state.h"

// Compares the gradient of `draws` elements of every trainable parameter and layer (in a set: of
// random experts) with differences of the loss on random tokens, and prints the worst relative
// error of each parameter. Difference: four points at +-h and +-2h. h is 3e-4; where one of the
// points would route tokens to other experts the loss has a step, so h is cut to 3e-5 and 3e-6, and
// then another element is drawn. A bad comparison is also made again with a smaller h.
//
// Relative error: |difference - gradient| / the largest of |difference|, |gradient|, 1e-3 of the
// root mean square gradient, and 1e6 times the rounding error of the difference (so rounding alone
// stays near 1e-6). Fails when one is above 1e-5. Collective on several ranks, whose losses and gradients
// are those of all their tokens: the lines are those of one rank with a microbatch of as many tokens.
bool hrt_train_check_grad(struct hrt_state *state, int64_t draws, uint64_t seed, FILE *out,
                          struct hrt_error *error);

#endif
