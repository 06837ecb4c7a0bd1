/* Convolution kernels: the choice of the method, and their table (conv.h). T: the element type, BITS: the integer type of its width. */
#include "conv_common.h"

#define T f32
#define BITS i32
#include "gemm_kernel.h"
#include "conv_layout.h"
#include "conv_winograd.h"
#include "conv_planes.h"
#include "conv_lines.h"
#include "conv_last.h"
#include "conv_weight.h"
#include "conv_last_weight.h"
#include "conv_maps.h"
#include "conv_depthwise.h"
#include "conv_depthwise_block.h"
#define ELEMENT T
#include "conv_depthwise_last.h"
#undef ELEMENT
#undef T
#undef BITS
#define T f64
#define BITS i64
#include "gemm_kernel.h"
#include "conv_layout.h"
#include "conv_planes.h"
#include "conv_lines.h"
#include "conv_last.h"
#include "conv_weight.h"
#include "conv_last_weight.h"
#include "conv_maps.h"
#include "conv_depthwise.h"
#include "conv_depthwise_block.h"
#define ELEMENT T
#include "conv_depthwise_last.h"
#undef ELEMENT
#undef T
#undef BITS

#define T h32
#define ELEMENT bf16
#include "conv_depthwise_last.h"
#undef ELEMENT
#undef T

enum { COLUMNS, PLANES, LINES, PLANES_INPUT, LAST, LAST_INPUT, LAST_WEIGHT, WEIGHT, DEPTHWISE, DEPTHWISE_BLOCK, DEPTHWISE_LAST, WINOGRAD, WINOGRAD_NARROW, WINOGRAD_WEIGHT, WINOGRAD_WEIGHT_NARROW, MAPS, MAPS_WEIGHT, METHODS };

#define METHODS_OF(T)                                                                                \
    [COLUMNS] = {columns_plan_##T, columns_items_##T, columns_run_##T},                              \
    [PLANES] = {planes_plan_##T, planes_items_##T, planes_run_##T},                                  \
    [LINES] = {lines_plan_##T, lines_items_##T, lines_run_##T},                                      \
    [PLANES_INPUT] = {planes_plan_input_##T, planes_items_input_##T, planes_run_input_##T},          \
    [LAST] = {last_plan_##T, last_items_##T, last_run_##T},                                          \
    [LAST_INPUT] = {last_plan_input_##T, last_items_input_##T, last_run_input_##T},                  \
    [LAST_WEIGHT] = {last_weight_plan_##T, last_weight_items_##T, last_weight_run_##T},              \
    [WEIGHT] = {weight_plan_##T, weight_items_##T, weight_run_##T},                                  \
    [MAPS] = {maps_plan_##T, maps_items_##T, maps_run_##T},                                          \
    [MAPS_WEIGHT] = {maps_plan_weight_##T, maps_items_weight_##T, maps_run_weight_##T},              \
    [DEPTHWISE] = {depthwise_plan_##T, depthwise_items_##T, depthwise_run_##T},                      \
    [DEPTHWISE_BLOCK] = {depthwise_block_plan_##T, depthwise_block_items_##T, depthwise_block_run_##T}, \
    [DEPTHWISE_LAST] = {depthwise_last_plan_##T, depthwise_last_items_##T, depthwise_last_run_##T}
static const conv_kernels methods_f32[METHODS] = {METHODS_OF(f32), [WINOGRAD] = {wino_plan, wino_items, wino_run_forward},
                                                  [WINOGRAD_NARROW] = {wino_plan_narrow, wino_items_narrow, wino_run_narrow},
                                                  [WINOGRAD_WEIGHT] = {wino_plan_weight, wino_items_weight, wino_run_weight},
                                                  [WINOGRAD_WEIGHT_NARROW] = {wino_plan_weight_narrow, wino_items_weight_narrow, wino_run_weight_narrow}};
static const conv_kernels methods_f64[METHODS] = {METHODS_OF(f64)};

static int fits_lines(const conv_problem* s, int winograd) { return winograd ? lines_fits_f32(s) : lines_fits_f64(s); }
/* Winograd's transforms mix the values of a tile; narrow outputs of the reversed problem would leave lanes empty. */
static int method_of(const conv_problem* s, int64_t pass, int winograd) {
    if (pass == CONV_COLUMNS) return COLUMNS;
    if (conv_is_depthwise(s) && !s->last) return (winograd ? depthwise_block_fits_f32(s, pass) : depthwise_block_fits_f64(s, pass)) ? DEPTHWISE_BLOCK : DEPTHWISE;
    if (conv_is_depthwise(s) && s->c_out == s->c_in) return DEPTHWISE_LAST;
    if (pass == CONV_WEIGHT && !(winograd && wino_fits(s))) return last_weight_fits_f32(s) ? LAST_WEIGHT : WEIGHT;
    if (pass == CONV_WEIGHT) return wino_is_narrow_weight(s) ? WINOGRAD_WEIGHT_NARROW : WINOGRAD_WEIGHT;
    if (pass == CONV_INPUT) return s->last ? LAST_INPUT : PLANES_INPUT;
    if (winograd && wino_fits(s)) return wino_is_narrow(s) ? WINOGRAD_NARROW : WINOGRAD;
    if (fits_lines(s, winograd)) return LINES;
    return s->last ? LAST : PLANES;
}
/* Where tiles fit, they multiply least; but for few outputs the kernel's transform is most of the work. */
enum { FEW_OUTPUTS = 75 };
static int prefers_winograd(const conv_problem* s, int64_t pass) {
    if (!conv_is_reversible(s)) return 0;
    const conv_problem reversed = conv_reversed(s);
    return wino_fits(pass == CONV_INPUT ? &reversed : s) && s->samples * conv_pixels(s) > FEW_OUTPUTS;
}
/* Where lines fit, they multiply more than taps do, whose padding is left out, and empty lanes, at 1.7 times the rate. */
static int prefers_lines(const conv_problem* s, int winograd) {
    const int64_t lanes = winograd ? lines_lanes_f32(s) : lines_lanes_f64(s);
    const double inside = (double)conv_pairs(s->in_h, s->out_h, s->kernel_h, s->stride_h, s->pad_h, s->dilation_h) *
                          (double)conv_pairs(s->in_w, s->out_w, s->kernel_w, s->stride_w, s->pad_w, s->dilation_w) / (double)(s->out_h * lanes * conv_taps(s));
    return inside > 0.6;
}
static void plan(conv_work* work, const conv_kernels* methods, int winograd) {
    conv_problem* s = &work->s;
    const int reversible = work->pass == CONV_INPUT && conv_is_reversible(s) && !(conv_is_depthwise(s) && !s->last);
    const conv_problem forward = reversible ? conv_reversed(s) : *s;
    const int lines = (reversible || work->pass == CONV_FORWARD) && !(winograd && wino_fits(&forward)) && fits_lines(&forward, winograd);
    if (conv_suits_maps(s, work->pass) && !(winograd && prefers_winograd(s, work->pass)) && !(lines && prefers_lines(&forward, winograd))) {
        work->method = work->pass == CONV_WEIGHT ? MAPS_WEIGHT : MAPS;
        methods[work->method].plan(work);
        return;
    }
    enum { MANY_TAPS = 25 };
    /* few input channels would leave most of a tile empty: then rather all taps of a channel at once, added afterwards, unless they are many */
    int narrow = conv_taps(s) > 1 && conv_group_in(s) <= VECTOR_BYTES / 8 && s->groups == 1 && !(lines && conv_taps(s) >= MANY_TAPS);
    if (reversible && !narrow) {
        *s = forward;
        work->pass = CONV_FORWARD;
    }
    work->method = method_of(s, work->pass, winograd);
    methods[work->method].plan(work);
}
#define TABLE_OF(T, WINOGRAD)                                                                        \
    static void plan_##T(conv_work* work) { plan(work, methods_##T, WINOGRAD); }                     \
    static int64_t items_##T(const conv_work* work, int64_t phase) { return methods_##T[work->method].items(work, phase); } \
    static void run_##T(const conv_work* work, int64_t phase, char* workspace, int64_t begin, int64_t end) { \
        methods_##T[work->method].run(work, phase, workspace, begin, end);                           \
    }
TABLE_OF(f32, 1)
TABLE_OF(f64, 0)

/* depthwise, channels_last, with the pass that conv_reversed makes of a gradient of the input where it can */
static void plan_h32(conv_work* work) {
    if (work->pass == CONV_INPUT && conv_is_reversible(&work->s)) work->s = conv_reversed(&work->s), work->pass = CONV_FORWARD;
    depthwise_last_plan_h32(work);
}
const conv_kernels ISA_NAME(conv_table)[3] = {{plan_f32, items_f32, run_f32}, {plan_f64, items_f64, run_f64}, {plan_h32, depthwise_last_items_h32, depthwise_last_run_h32}};
