/* Gates of float32 in AVX-512's forms of sigmoid and tanh: what recurrent_kernel.h says by elements, a register at a time. `n` units follow each other
 * in memory; the sums of a tile fill whole registers. */
#ifndef RECURRENT_LANES_H
#define RECURRENT_LANES_H
#include "vector_math_avx512.h"

enum { UNITS = LANES_f32 };

KERNEL_INLINE lanes_f32 gate_sum(const f32* gates, const f32* sums, int64_t n) { return read_f32(gates, n) + read_f32(sums, UNITS); }

KERNEL_INLINE void lstm_units_f32(const f32* restrict sums, f32* restrict gates, int64_t hidden, const f32* restrict before, f32* restrict cell, f32* restrict out, int64_t n) {
    lanes_f32 i = sigmoid_lanes_f32(gate_sum(gates, sums, n)), f = sigmoid_lanes_f32(gate_sum(gates + hidden, sums + UNITS, n));
    lanes_f32 g = tanh_lanes_f32(gate_sum(gates + 2 * hidden, sums + 2 * UNITS, n)), o = sigmoid_lanes_f32(gate_sum(gates + 3 * hidden, sums + 3 * UNITS, n));
    lanes_f32 c = f * read_f32(before, n) + i * g;
    write_f32(gates, i, n);
    write_f32(gates + hidden, f, n);
    write_f32(gates + 2 * hidden, g, n);
    write_f32(gates + 3 * hidden, o, n);
    write_f32(cell, c, n);
    write_f32(out, o * tanh_lanes_f32(c), n);
}

KERNEL_INLINE void gru_units_f32(const f32* restrict sums, f32* restrict gates, int64_t hidden, const f32* restrict addend, const f32* restrict before, f32* restrict out, int64_t n) {
    lanes_f32 r = sigmoid_lanes_f32(read_f32(gates, n) + gate_sum(addend, sums, n));
    lanes_f32 z = sigmoid_lanes_f32(read_f32(gates + hidden, n) + gate_sum(addend + hidden, sums + UNITS, n));
    lanes_f32 h = gate_sum(addend + 2 * hidden, sums + 2 * UNITS, n), x = tanh_lanes_f32(read_f32(gates + 2 * hidden, n) + r * h);
    write_f32(gates, r, n);
    write_f32(gates + hidden, z, n);
    write_f32(gates + 2 * hidden, x, n);
    write_f32(gates + 3 * hidden, h, n);
    write_f32(out, (read_f32(before, n) - x) * z + x, n);
}

KERNEL_INLINE void tanh_units_f32(const f32* restrict sums, f32* restrict out, int64_t n) {
    for (int64_t j = 0; j < n; j += UNITS) write_f32(out + j, tanh_lanes_f32(gate_sum(out + j, sums + j, n - j)), n - j);
}

KERNEL_INLINE void lstm_gradients_f32(const f32* restrict gates, int64_t hidden, const f32* restrict cell, const f32* restrict before, const f32* restrict dh,
                                      f32* restrict dc, f32* restrict dgates) {
    for (int64_t j = 0; j < hidden; j += UNITS) {
        int64_t n = hidden - j;
        lanes_f32 i = read_f32(gates + j, n), f = read_f32(gates + hidden + j, n), g = read_f32(gates + 2 * hidden + j, n), o = read_f32(gates + 3 * hidden + j, n);
        lanes_f32 t = tanh_lanes_f32(read_f32(cell + j, n)), d = read_f32(dh + j, n);
        lanes_f32 of_cell = read_f32(dc + j, n) + d * o * (1 - t * t);
        write_f32(dc + j, of_cell * f, n);
        write_f32(dgates + j, of_cell * g * (i * (1 - i)), n);
        write_f32(dgates + hidden + j, of_cell * read_f32(before + j, n) * (f * (1 - f)), n);
        write_f32(dgates + 2 * hidden + j, of_cell * i * (1 - g * g), n);
        write_f32(dgates + 3 * hidden + j, d * t * (o * (1 - o)), n);
    }
}
#endif
