/* The transposition of conv_layout_turns.h. */
#include "conv_common.h"
#include "conv_layout_turns.h"

/* Samples [begin, end). */
static void turn(void* call, int64_t begin, int64_t end) {
    const conv_turn* c = call;
    for (int64_t i = begin; i < end; i++) turn_halves((const half*)c->from + i * c->down * c->across, c->across, (half*)c->to + i * c->down * c->across, c->down, c->down, c->across);
}
const conv_turns ISA_NAME(trt_conv_turns) = {turn};
