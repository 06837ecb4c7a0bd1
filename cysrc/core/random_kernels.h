/* The table of loops/random_kernels.c: one plain C source that becomes baseline, AVX2 and AVX-512 code. */
#ifndef RANDOM_KERNELS_H
#define RANDOM_KERNELS_H
#include <stdint.h>
#include "isa.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define RS_BIG_ENDIAN 1
#else
#define RS_BIG_ENDIAN 0
#endif

enum { RS_WORDS = 624, RS_STAGE = 256 };

typedef struct {
    void (*next_block)(uint32_t *, uint32_t *);
    void (*pair_words)(const uint32_t *, uint64_t *, int);
    void (*uniform_f32)(const uint32_t *, float *, int, float, float);
    void (*u53)(const uint64_t *, double *, int);
    void (*uniform_f64)(const uint64_t *, double *, int, double, double);
    void (*below)(const uint64_t *, uint8_t *, int, int64_t);
    void (*remainder)(const uint32_t *, uint32_t *, int, uint32_t);
    void (*normal_blocks_f32)(float *, int, float, float);
    void (*normal_pairs)(const uint64_t *, double *, int);
    void (*scale_f64)(double *, int, double, double);
    void (*exp_block)(double *, int);
    void (*exponential)(const uint64_t *, double *, int, double);
    void (*geometric)(const uint64_t *, double *, int, double);
    void (*cauchy)(const uint64_t *, double *, int, double, double);
} rs_kernels;

#endif
