// peak: independent multiply-adds in registers, the limit that GEMMs are held against.
#ifndef HECATE_KERNELS_CPU_PEAK_H
#define HECATE_KERNELS_CPU_PEAK_H

// Operations per nanosecond (a multiply-add is two) of all threads together, with vectors as wide as
// the kernels use. Takes a tenth of a second. Threads run at the same time, each is measured by its
// own processor time and counts with its fastest tenth of runs: other work of the machine changes
// little, nor does a clock that loses time now and then.
double hk_peak_f32(void);
double hk_peak_f64(void);

// For GEMMs with bf16 operands; those of floats where the processor has none of its own.
double hk_peak_bf16(void);

#endif
