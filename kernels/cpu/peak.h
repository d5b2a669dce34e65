// peak: independent multiply-adds in registers, the limit that products are held against.
#ifndef HECATE_KERNELS_CPU_PEAK_H
#define HECATE_KERNELS_CPU_PEAK_H

// Runs for some tenths of a millisecond on all threads, with vectors as wide as the kernels use;
// returns how many operations that were (a multiply-add is two), for the caller to time. `sink` is
// read and written so that nothing can be left out; it must be finite.
double hk_multiply_adds_f32(float *sink);
double hk_multiply_adds_f64(double *sink);

#endif
