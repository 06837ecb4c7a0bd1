/* Images of 16-bit elements from NCHW to channels_last, and back. */
#ifndef TRT_CONV_LAYOUT_TURNS_H
#define TRT_CONV_LAYOUT_TURNS_H
#include <stdint.h>

/* A batch of matrices (down, across), which become (across, down). */
typedef struct {
    const char* from;
    char* to;
    int64_t down, across;
} conv_turn;
typedef struct {
    void (*turn)(void* call, int64_t begin, int64_t end);
} conv_turns;

#endif
