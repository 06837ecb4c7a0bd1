# The CPU generator as other compiled modules see it: `state_of(generator)` gives the C state that every fill of
# random_streams.h takes first. The pointer lives as long as the generator object (None: the default one, as long as
# no other is installed), and the GIL must be held from state_of to the last draw; without one, `lock_state` around the draws.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "random_streams.h" nogil:
    ctypedef struct rs_state:
        pass

    ctypedef enum rs_dtype:
        RS_BOOL
        RS_UINT8
        RS_INT8
        RS_INT16
        RS_INT32
        RS_INT64
        RS_FLOAT16
        RS_BFLOAT16
        RS_FLOAT32
        RS_FLOAT64
        RS_UINT16
        RS_UINT32
        RS_UINT64

    ctypedef enum rs_state_status:
        RS_STATE_OK
        RS_STATE_WRONG_SIZE
        RS_STATE_INVALID

    enum:
        RS_STATE_BYTES

    void rs_manual_seed(rs_state *s, uint64_t seed)
    void rs_get_state(const rs_state *s, uint8_t *bytes)
    rs_state_status rs_set_state(rs_state *s, const uint8_t *bytes, size_t size)
    uint64_t rs_initial_seed(const rs_state *s)

    uint32_t rs_random32(rs_state *s)
    uint64_t rs_random64(rs_state *s)
    float rs_next_u24(rs_state *s)
    double rs_next_u53(rs_state *s)
    double rs_next_normal(rs_state *s)

    int64_t rs_item_size(rs_dtype dtype)
    void rs_uniform(rs_state *s, rs_dtype dtype, void *out, int64_t n, double low, double high)
    void rs_normal(rs_state *s, rs_dtype dtype, void *out, int64_t n, double mean, double std)
    void rs_normal_fill(rs_state *s, rs_dtype dtype, void *out, int64_t n, double mean, double std)
    void rs_normal_serial(rs_state *s, rs_dtype dtype, void *out, int64_t n, double mean, double std)
    void rs_log_normal(rs_state *s, rs_dtype dtype, void *out, int64_t n, double mean, double std)
    void rs_random(rs_state *s, rs_dtype dtype, void *out, int64_t n)
    void rs_random_from_to(rs_state *s, rs_dtype dtype, void *out, int64_t n, int64_t low, uint64_t range)
    void rs_random_full64(rs_state *s, rs_dtype dtype, void *out, int64_t n)
    void rs_bernoulli(rs_state *s, rs_dtype dtype, void *out, int64_t n, double p)
    void rs_bernoulli_f32(rs_state *s, rs_dtype dtype, void *out, int64_t n, const float *p)
    void rs_bernoulli_f64(rs_state *s, rs_dtype dtype, void *out, int64_t n, const double *p)
    void rs_exponential(rs_state *s, rs_dtype dtype, void *out, int64_t n, double lambd)
    void rs_geometric(rs_state *s, rs_dtype dtype, void *out, int64_t n, double p)
    void rs_cauchy(rs_state *s, rs_dtype dtype, void *out, int64_t n, double median, double sigma)
    void rs_randperm(rs_state *s, int64_t *out, int64_t n)
    void rs_narrow_range(rs_dtype dtype, int64_t *low, int64_t *high)

    ctypedef enum rs_row_status:
        RS_ROW_OK
        RS_ROW_NEGATIVE
        RS_ROW_NOT_FINITE
        RS_ROW_SUM_ZERO

    rs_row_status rs_multinomial_f32(
        rs_state *s, const float *p, int64_t n, float *cumulative, int64_t *out, int64_t samples
    )
    rs_row_status rs_multinomial_f64(
        rs_state *s, const double *p, int64_t n, double *cumulative, int64_t *out, int64_t samples
    )

    enum:
        RS_MAX_DIMS

    ctypedef enum rs_fill_kind:
        RS_FILL_UNIFORM
        RS_FILL_NORMAL
        RS_FILL_LOG_NORMAL
        RS_FILL_CAUCHY
        RS_FILL_EXPONENTIAL
        RS_FILL_GEOMETRIC
        RS_FILL_BERNOULLI
        RS_FILL_RANDOM
        RS_FILL_RANDOM_FROM_TO
        RS_FILL_RANDOM_FULL64

    # `from` is a Python keyword; the C member is named low here.
    ctypedef struct rs_fill:
        rs_fill_kind kind
        double a
        double b
        int64_t low "from"
        uint64_t range

    void rs_fill_tensor(
        rs_state *s, const rs_fill *fill, rs_dtype dtype, void *data, int ndim, const int64_t *sizes,
        const int64_t *strides
    )
    void rs_bernoulli_tensor(
        rs_state *s, rs_dtype dtype, void *data, rs_dtype p_dtype, const void *p, int ndim, const int64_t *sizes,
        const int64_t *strides, const int64_t *p_strides
    )


cdef class GeneratorBase:
    cdef rs_state state
    cdef readonly str device


cdef rs_state *state_of(object generator) except NULL
cdef void lock_state(rs_state* state) noexcept
cdef void unlock_state(rs_state* state) noexcept
cdef GeneratorBase generator_on(object generator, int device_type, int index)
