# The argument blocks of loops/joining.c.
from libc.stdint cimport int64_t

cdef extern from "joining.h" nogil:
    enum:
        PIECE_CONSTANT
    ctypedef struct Piece:
        int64_t count, at
        int step
    ctypedef struct PieceArgs:
        int nd
        int64_t size[64]
        int64_t result[64]
        int64_t source[64]
        int pieces[64]
        Piece piece[64][3]
        char* to
        char* source_data "from"
        int64_t group
        int item, dtype, filled
        char constant[16]
    ctypedef struct CatArgs:
        int64_t n, row
        const char** part
        const int64_t* bytes
        char* out
