// All kernels: what an emitted program includes.
#ifndef HECATE_KERNELS_KERNELS_H
#define HECATE_KERNELS_KERNELS_H

#include "kernels/adamw/adamw.h"
#include "kernels/aux_loss/aux_loss.h"
#include "kernels/cpu/isa.h"
#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/fractions/fractions.h"
#include "kernels/gather/gather.h"
#include "kernels/grouped/grouped.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/limit/limit.h"
#include "kernels/matmul/matmul.h"
#include "kernels/mean_scores/mean_scores.h"
#include "kernels/noise/noise.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/rope/rope.h"
#include "kernels/route/route.h"
#include "kernels/router/router.h"
#include "kernels/scalar.h"
#include "kernels/sdpa/sdpa.h"
#include "kernels/spread/spread.h"
#include "kernels/sum/sum.h"
#include "kernels/sum_squares/sum_squares.h"
#include "kernels/z_loss/z_loss.h"

#endif
