/* A result whose every dimension consists of pieces of its source's: runs forward, backward, of one element repeated, or
 * of a constant. Flips, rolls and margins are such results. Strides in bytes. Defined in joining.c, declared for Cython in ops/joining/loops.pxd. */
#ifndef TRT_JOINING_H
#define TRT_JOINING_H
#include <stdint.h>

enum { PIECE_DIMS = 64, MOST_PIECES = 3, PIECE_CONSTANT = 2 };

/* `count` positions: from `at` on by `step` (1, -1 or 0), or the constant where step is PIECE_CONSTANT. */
typedef struct { int64_t count, at; int step; } Piece;

typedef struct {
    int nd; /* at least 1, fastest last */
    int64_t size[PIECE_DIMS], result[PIECE_DIMS], source[PIECE_DIMS];
    int pieces[PIECE_DIMS];
    Piece piece[PIECE_DIMS][MOST_PIECES];
    char *to, *from;
    int64_t group; /* piece_sums: elements of the result that share no source element with others */
    int item, dtype, filled; /* filled: the constants are there already */
    char constant[16];
} PieceArgs;

/* Rows that consist of `n` parts: bytes[k] from part[k]. */
typedef struct {
    int64_t n, row; /* bytes of a row of the result */
    const char **part;
    const int64_t *bytes;
    char *out;
} CatArgs;
#endif
