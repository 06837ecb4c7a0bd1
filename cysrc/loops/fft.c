/* Fourier transforms: plans (factors, twiddle factors) and the transforms of strided arrays, groups of lines at a time. fft_real.h holds
 * the arithmetic. Compiled once per instruction set (ISA): a plan belongs to the one that made it. */
#include <immintrin.h>
#include <math.h>
#include <stdlib.h>
#include "fft.h"
#include "kernel_base.h"

enum {
    FFT_LARGEST_PRIME = 31, /* of a pass; beyond, Bluestein's convolution is cheaper */
    FFT_SHORTEST_SPLIT = 64,
    FFT_CELL_BYTES = 2 * VECTOR_BYTES,
    FFT_TOGETHER = 8, /* groups at most that are run side by side, */
    FFT_TOGETHER_BYTES = 1 << 13, /* in two buffers of as much each, */
    FFT_TOGETHER_LENGTH = 32, /* of lines of this length at most: below the least prime that needs a convolution, which runs one group at a time */
    FFT_COLUMNS_TOGETHER = 32, FFT_COLUMNS_BYTES = 1 << 16, /* the same of far columns of a matrix, */
    FFT_COLUMNS_SHORTEST = 13, FFT_COLUMNS_LONGEST = 256, /* whose runs of memory are long enough then to need no fetching */
    FFT_FETCH_BYTES = 1 << 14, /* of the lines of a group at most that are fetched while the one before it is computed, */
    FFT_NEAR_BYTES = 1 << 19, FFT_MIDDLE_BYTES = 1 << 21, /* arrays of up to so many bytes need none of that, or their input alone */
    FFT_NEAREST_BYTES = 1 << 16,
    FFT_CACHE_BYTES = 1 << 18, /* of the two buffers of a group of contiguous lines: beyond, a line by itself */
};

struct FftPlan {
    int64_t n, room;         /* room: cells of each of the two buffers of a group */
    int is_double, passes;
    int radix[FFT_MAX_PASSES];
    void *twiddles[FFT_MAX_PASSES];
    struct FftPlan *wide;    /* Bluestein: the convolution's length, */
    void *chirp, *spectrum;  /* exp(-i pi k^2 / n), and the transform of its conjugate over the length */
    struct FftPlan *half;    /* of real lines of even length: n / 2, */
    void *quarter;           /* exp(-2 pi i k / n) for k <= n / 2 */
    struct FftPlan *columns, *rows; /* of a line by itself: n = columns->n * rows->n, */
    void *twist;             /* exp(-2 pi i j k / n), a cell for V columns j, row k */
};

/* exp(-2 pi i k / n), accurate to the last bit or two: the angle is reduced to an eighth of the circle by integers. */
static void unit_root(int64_t k, int64_t n, double *re, double *im)
{
    const double pi = 3.14159265358979323846;
    k %= n;
    int64_t eighth = 8 * k / n; /* n < 2^60 */
    double c, s;
    switch (eighth) {
    case 0: c = cos(2 * pi * k / n), s = sin(2 * pi * k / n); break;
    case 1: c = sin(2 * pi * ((n - 4 * k) / 4.0) / n), s = cos(2 * pi * ((n - 4 * k) / 4.0) / n); break;
    case 2: c = -sin(2 * pi * ((4 * k - n) / 4.0) / n), s = cos(2 * pi * ((4 * k - n) / 4.0) / n); break;
    case 3: c = -cos(2 * pi * ((n - 2 * k) / 2.0) / n), s = sin(2 * pi * ((n - 2 * k) / 2.0) / n); break;
    case 4: c = -cos(2 * pi * ((2 * k - n) / 2.0) / n), s = -sin(2 * pi * ((2 * k - n) / 2.0) / n); break;
    case 5: c = -sin(2 * pi * ((3 * n - 4 * k) / 4.0) / n), s = -cos(2 * pi * ((3 * n - 4 * k) / 4.0) / n); break;
    case 6: c = sin(2 * pi * ((4 * k - 3 * n) / 4.0) / n), s = -cos(2 * pi * ((4 * k - 3 * n) / 4.0) / n); break;
    default: c = cos(2 * pi * (n - k) / n), s = -sin(2 * pi * (n - k) / n);
    }
    *re = c;
    *im = -s;
}

static void put_root(const FftPlan *plan, void *to, int64_t at, double re, double im)
{
    if (plan->is_double) {
        ((double *)to)[2 * at] = re;
        ((double *)to)[2 * at + 1] = im;
    } else {
        ((float *)to)[2 * at] = (float)re;
        ((float *)to)[2 * at + 1] = (float)im;
    }
}

static void *new_complex(const FftPlan *plan, int64_t count)
{
    return aligned_alloc(64, (size_t)((count > 0 ? count : 1) * (plan->is_double ? 16 : 8) + 63) & ~(size_t)63);
}

/* A line among a->lines: its indices along the other dimensions, its offsets in elements. */
typedef struct { int64_t index[FFT_MAX_DIMS], x, y; } Cursor;

static void place(const FftArgs *a, int64_t line, Cursor *at)
{
    at->x = at->y = 0;
    for (int d = a->dims - 1; d >= 0; d--) {
        at->index[d] = line % a->size[d];
        line /= a->size[d];
        at->x += at->index[d] * a->x_strides[d];
        at->y += at->index[d] * a->y_strides[d];
    }
}

/* `by` lines on, at most to the end of the innermost dimension. */
static void advance(const FftArgs *a, Cursor *at, int64_t by)
{
    for (int d = a->dims - 1; d >= 0; d--, by = 1) {
        at->index[d] += by;
        at->x += by * a->x_strides[d];
        at->y += by * a->y_strides[d];
        if (at->index[d] < a->size[d])
            break;
        at->x -= at->index[d] * a->x_strides[d];
        at->y -= at->index[d] * a->y_strides[d];
        at->index[d] = 0;
    }
}

#define EACH2(f, h) f(0, h), f(1, h)
#define EACH4(f, h) EACH2(f, h), f(2, h), f(3, h)
#define EACH8(f, h) EACH4(f, h), f(4, h), f(5, h), f(6, h), f(7, h)
#define EACH16(f, h) EACH8(f, h), f(8, h), f(9, h), f(10, h), f(11, h), f(12, h), f(13, h), f(14, h), f(15, h)
/* Lanes that a shuffle of two vectors takes: of each 16 bytes, Q numbers, or of 16 bytes as wholes. */
#define Q_ ((int)(16 / sizeof(REAL)))
#define INSIDE(j, odd) ((j) % Q_ < Q_ / 2 ? (j) / Q_ * Q_ + (j) % Q_ * 2 + (odd) : LANES + (j) / Q_ * Q_ + (j) % Q_ * 2 - Q_ + (odd))
#define WHOLE(j, odd) (((j) / Q_ * 2 + (odd)) * Q_ + (j) % Q_)
#define EVEN_INSIDE(j, h) INSIDE(j, 0)
#define ODD_INSIDE(j, h) INSIDE(j, 1)
#define EVEN_WHOLE(j, h) WHOLE(j, 0)
#define ODD_WHOLE(j, h) WHOLE(j, 1)
#define NEXT_OF(j, h) (((j) + (h)) % LANES)
#define BACK_OF(j, h) (LANES - 1 - (j))
#define EVEN_OF(j, h) (2 * (j))
#define ODD_OF(j, h) (2 * (j) + 1)
#define FIRST_OF(j, h) ((j) & 1 ? LANES + (j) / 2 : (j) / 2)
#define SECOND_OF(j, h) ((j) & 1 ? LANES + LANES / 2 + (j) / 2 : LANES / 2 + (j) / 2)

#define REAL float
#define INDEX int32_t
#define F(name) name##_f32
#if VECTOR_BYTES == 64
#define LANES 16
#define EACH_LANE EACH16
#elif VECTOR_BYTES == 32
#define LANES 8
#define EACH_LANE EACH8
#else
#define LANES 4
#define EACH_LANE EACH4
#endif
#include "fft_real.h"

#define REAL double
#define INDEX int64_t
#define F(name) name##_f64
#if VECTOR_BYTES == 64
#define LANES 8
#define EACH_LANE EACH8
#elif VECTOR_BYTES == 32
#define LANES 4
#define EACH_LANE EACH4
#else
#define LANES 2
#define EACH_LANE EACH2
#endif
#include "fft_real.h"

static int fft_lanes(int is_double) { return VECTOR_BYTES / (is_double ? 8 : 4); }

/* ---- plans ----------------------------------------------------------------------------------------------------------------- */

static int64_t largest_prime(int64_t n)
{
    int64_t largest = 1;
    for (int64_t p = 2; p * p <= n; p++)
        for (; n % p == 0; n /= p)
            largest = p;
    return n > 1 ? n : largest;
}

/* The least 2^a 3^b 5^c that is no smaller. */
static int64_t convenient_length(int64_t n)
{
    int64_t best = 1;
    while (best < n)
        best *= 2;
    for (int64_t five = 1; five < best; five *= 5)
        for (int64_t three = five; three < best; three *= 3) {
            int64_t length = three;
            while (length < n)
                length *= 2;
            if (length < best)
                best = length;
        }
    return best;
}

void ISA_NAME(fft_plan_free)(FftPlan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->passes; i++)
        free(plan->twiddles[i]);
    free(plan->chirp);
    free(plan->spectrum);
    free(plan->quarter);
    free(plan->twist);
    ISA_NAME(fft_plan_free)(plan->wide);
    ISA_NAME(fft_plan_free)(plan->half);
    ISA_NAME(fft_plan_free)(plan->columns);
    ISA_NAME(fft_plan_free)(plan->rows);
    free(plan);
}

static int add_pass(FftPlan *plan, int radix, int64_t length)
{
    int64_t m = length / radix, odd = radix > 8 ? radix : 0;
    void *w = new_complex(plan, odd + m * (radix - 1));
    if (!w)
        return 0;
    plan->radix[plan->passes] = radix;
    plan->twiddles[plan->passes++] = w;
    double re, im;
    for (int j = 0; j < odd; j++) { /* cosines, then sines, in place of as many complex numbers */
        unit_root(j, radix, &re, &im);
        if (plan->is_double) {
            ((double *)w)[j] = re;
            ((double *)w)[radix + j] = -im;
        } else {
            ((float *)w)[j] = (float)re;
            ((float *)w)[radix + j] = (float)-im;
        }
    }
    for (int64_t p = 0; p < m; p++)
        for (int k = 1; k < radix; k++) {
            unit_root(p * k, length, &re, &im);
            put_root(plan, w, odd + p * (radix - 1) + k - 1, re, im);
        }
    return 1;
}

static int add_passes(FftPlan *plan)
{
    int64_t length = plan->n;
    /* eight inputs and their sums fit in 32 registers; in 16 they pay where nothing is multiplied */
    for (; VECTOR_BYTES == 64 ? length % 8 == 0 && length != 16 : length == 8; length /= 8)
        if (!add_pass(plan, 8, length))
            return 0;
    for (; length % 4 == 0; length /= 4)
        if (!add_pass(plan, 4, length))
            return 0;
    for (int64_t p = 2; length > 1; p++)
        for (; length % p == 0; length /= p)
            if (!add_pass(plan, (int)p, length))
                return 0;
    return 1;
}

static int64_t line_room(const FftPlan *plan)
{
    int64_t lanes = fft_lanes(plan->is_double);
    if (plan->wide)
        return (2 * plan->wide->n + 2 * lanes - 1) / (2 * lanes) + 1 + line_room(plan->wide);
    if (!plan->columns)
        return 2 * plan->n;
    int64_t n1 = plan->columns->n, n2 = plan->rows->n;
    return (n2 + lanes - 1) / lanes * n1 + lanes + 2 * (n1 > n2 ? n1 : n2);
}

static FftPlan *make_plan(int64_t n, int is_double, int is_real, int by_lines);

static int add_chirp(FftPlan *plan, int by_lines)
{
    int64_t n = plan->n, length = convenient_length(2 * n - 1);
    double re, im, *b, *room = NULL;
    FftPlan *exact = make_plan(length, 1, 0, 1);
    plan->wide = make_plan(length, plan->is_double, 0, by_lines);
    plan->chirp = new_complex(plan, n);
    plan->spectrum = new_complex(plan, length);
    b = calloc(2 * length, sizeof(double));
    if (exact)
        room = aligned_alloc(64, line_room(exact) * FFT_CELL_BYTES);
    int made = exact && plan->wide && plan->chirp && plan->spectrum && b && room;
    if (made) {
        for (int64_t k = 0; k < n; k++) {
            unit_root((int64_t)((unsigned __int128)k * k % (2 * n)), 2 * n, &re, &im);
            put_root(plan, plan->chirp, k, re, im);
            b[2 * k] = re;
            b[2 * k + 1] = -im;
            if (k) {
                b[2 * (length - k)] = re;
                b[2 * (length - k) + 1] = -im;
            }
        }
        run_line_f64(exact, b, b, 0, 1.0 / length, (cell_f64 *)room);
        for (int64_t k = 0; k < length; k++)
            put_root(plan, plan->spectrum, k, b[2 * k], b[2 * k + 1]);
    }
    ISA_NAME(fft_plan_free)(exact);
    free(b);
    free(room);
    return made;
}

/* Rows of the matrix of a line by itself: as near to a square as its length lets it be. */
static int64_t rows_by_line(int64_t n)
{
    int64_t rows = 1;
    for (int64_t d = 2; d * d <= n; d++)
        if (n % d == 0)
            rows = d;
    return n < FFT_SHORTEST_SPLIT ? 1 : rows;
}

/* Rows of the matrix of a line among others, whose columns are a vector's lanes; 1: no such matrix. */
static int64_t rows_of_lanes(int64_t n, int is_double)
{
    int64_t lanes = fft_lanes(is_double), rows = n / lanes;
    return VECTOR_BYTES == 64 && n % lanes == 0 && (rows == 4 || rows == 8 || rows == 16) ? rows : 1;
}

/* Whether a line by itself fills its vectors, along columns and along rows, where a group of lines would leave the nearest cache. */
static int fills_vectors(int64_t n, int is_double)
{
    int64_t lanes = fft_lanes(is_double), rows = rows_by_line(n);
    return VECTOR_BYTES == 64 && rows % lanes == 0 && n / rows % lanes == 0 && 2 * n * FFT_CELL_BYTES >= FFT_NEAREST_BYTES && rows_of_lanes(n, is_double) == 1;
}

static int add_split(FftPlan *plan, int64_t n1)
{
    int64_t n = plan->n, lanes = fft_lanes(plan->is_double);
    double re, im;
    if (n1 < 4)
        return 1;
    int64_t n2 = n / n1, groups = (n2 + lanes - 1) / lanes;
    plan->columns = make_plan(n1, plan->is_double, 0, 0);
    plan->rows = make_plan(n2, plan->is_double, 0, 0);
    plan->twist = aligned_alloc(64, groups * n1 * FFT_CELL_BYTES);
    if (!plan->columns || !plan->rows || !plan->twist)
        return 0;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t k = 0; k < n1; k++)
            for (int64_t lane = 0; lane < lanes; lane++) {
                unit_root((g * lanes + lane) * k, n, &re, &im);
                int64_t at = (g * n1 + k) * 2 * lanes + lane;
                if (plan->is_double) {
                    ((double *)plan->twist)[at] = re;
                    ((double *)plan->twist)[at + lanes] = im;
                } else {
                    ((float *)plan->twist)[at] = (float)re;
                    ((float *)plan->twist)[at + lanes] = (float)im;
                }
            }
    return 1;
}

static FftPlan *make_plan(int64_t n, int is_double, int is_real, int by_lines)
{
    FftPlan *plan = calloc(1, sizeof(FftPlan));
    int made = plan != NULL;
    if (!made)
        return NULL;
    plan->n = plan->room = n;
    plan->is_double = is_double;
    if (is_real && n % 2 == 0) {
        /* the transform is that of half the length; the whole length's passes are never run */
        double re, im;
        plan->half = make_plan(n / 2, is_double, 0, by_lines);
        plan->quarter = new_complex(plan, n / 2 + 1);
        made = plan->half && plan->quarter;
        if (made) {
            plan->room = plan->half->room > n ? plan->half->room : n;
            for (int64_t k = 0; k <= n / 2; k++) {
                unit_root(k, n, &re, &im);
                put_root(plan, plan->quarter, k, re, im);
            }
        }
    } else if (largest_prime(n) > FFT_LARGEST_PRIME) {
        made = add_chirp(plan, by_lines);
        if (made)
            plan->room = plan->wide->n;
    } else
        made = add_passes(plan) && add_split(plan, by_lines ? rows_by_line(n) : rows_of_lanes(n, is_double));
    if (!made) {
        ISA_NAME(fft_plan_free)(plan);
        return NULL;
    }
    return plan;
}

FftPlan *ISA_NAME(fft_plan)(int64_t n, int is_double, int is_real, int by_lines) { return make_plan(n, is_double, is_real, by_lines); }

/* The length that a complex line is transformed in: its own, or that of the convolution. */
int64_t ISA_NAME(fft_length)(const FftPlan *plan) { return plan->wide ? plan->wide->n : plan->n; }

/* For kernels of devices: exp(-2 pi i k / fft_length), and of a convolution the chirp and its spectrum. */
void ISA_NAME(fft_tables)(const FftPlan *plan, void *roots, void *chirp, void *spectrum)
{
    int64_t length = ISA_NAME(fft_length)(plan);
    size_t item = plan->is_double ? 16 : 8;
    double re, im;
    for (int64_t k = 0; k < length; k++) {
        unit_root(k, length, &re, &im);
        put_root(plan, roots, k, re, im);
    }
    if (plan->wide) {
        memcpy(chirp, plan->chirp, plan->n * item);
        memcpy(spectrum, plan->spectrum, length * item);
    }
}

/* ---- runs ------------------------------------------------------------------------------------------------------------------ */

/* Chooses how the lines are run (by shape and strides alone, so that bits depend on nothing else) and counts the groups. */
void ISA_NAME(fft_prepare)(FftArgs *a)
{
    int lanes = fft_lanes(a->is_double);
    int contiguous = a->x_stride == 1 || a->y_stride == 1;
    int64_t core = a->kind != FFT_C2C && a->n % 2 == 0 ? a->n / 2 : a->n;
    a->by_lines = core >= FFT_SHORTEST_SPLIT && (2 * a->lines <= lanes || 2 * core * FFT_CELL_BYTES > FFT_CACHE_BYTES * (contiguous ? 1 : 8));
    const int by_halves = a->kind != FFT_C2C && a->n % 2 == 0;
    /* contiguous complex results hold the line meanwhile, but for the half spectrum of an odd number of reals */
    const int in_result = a->y_stride == 1 && (a->kind == FFT_C2C || (a->kind == FFT_R2C && (by_halves || a->twosided)));
    const int64_t numbers = in_result ? 0 : by_halves ? a->n + 2 : 2 * a->n + 2;
    a->line_cells = (numbers + 2 * lanes - 1) / (2 * lanes);
    int64_t line_bytes = (a->kind == FFT_C2C ? 2 : 1) * a->n * (a->is_double ? 8 : 4);
    a->far = lanes * line_bytes > FFT_FETCH_BYTES || a->lines * line_bytes <= FFT_NEAR_BYTES ? 0 : a->lines * line_bytes <= FFT_MIDDLE_BYTES ? 1 : 2;
    a->together = core > FFT_TOGETHER_LENGTH ? 1 : (int)min_i64(FFT_TOGETHER, FFT_TOGETHER_BYTES / FFT_CELL_BYTES / core);
    int columns = a->x_stride != 1 && a->y_stride != 1 && a->dims && a->x_strides[a->dims - 1] == 1 && a->y_strides[a->dims - 1] == 1;
    a->by_rows = columns && a->far && core >= FFT_COLUMNS_SHORTEST && core <= FFT_COLUMNS_LONGEST && largest_prime(core) <= FFT_LARGEST_PRIME;
    if (a->by_rows) {
        a->far = 0;
        a->together = (int)max_i64(min_i64(FFT_COLUMNS_TOGETHER, FFT_COLUMNS_BYTES / FFT_CELL_BYTES / core), 1);
    }
    const int contiguous_lines = a->kind == FFT_C2C && a->x_stride == 1 && a->y_stride == 1;
    const int real_lines = a->kind != FFT_C2C && a->n % 2 == 0 && a->x_stride == 1 && a->y_stride == 1;
    a->by_lines |= (contiguous_lines || real_lines) && fills_vectors(core, a->is_double);
    const int of_two_passes = VECTOR_BYTES == 64 && (a->n == 10 || a->n == 12 || a->n == 15 || a->n == 16 || (a->n == 32 && !a->is_double));
    a->short_lines = contiguous_lines && !a->by_lines && ((a->n > 1 && a->n < 9 && a->n != 6) || of_two_passes);
    a->split_lines = (contiguous_lines || real_lines) && !a->by_lines && rows_of_lanes(core, a->is_double) > 1;
    a->group_lines = a->by_lines ? 1 : a->split_lines ? max_i64(lanes / rows_of_lanes(core, a->is_double), 1) : lanes;
    a->groups = (a->lines + a->group_lines - 1) / a->group_lines;
}

/* Bytes of scratch a worker. */
int64_t ISA_NAME(fft_scratch)(const FftArgs *a)
{
    const FftPlan *plan = a->plan, *core = a->kind != FFT_C2C && plan->half ? plan->half : plan;
    int64_t lanes = fft_lanes(a->is_double);
    int64_t cells = a->by_lines ? a->line_cells + line_room(core) : 2 * plan->room * a->together;
    return (cells + lanes) * FFT_CELL_BYTES; /* stores read whole groups of V cells */
}

/* Workers [begin, end), each its share of the groups. */
void ISA_NAME(fft_lines)(void *context, int64_t begin, int64_t end)
{
    FftArgs a = *(const FftArgs *)context;
    char *scratch = a.scratch;
    for (int64_t worker = begin; worker < end; worker++) {
        int64_t first = worker * a.groups / a.workers, last = (worker + 1) * a.groups / a.workers;
        a.scratch = scratch + worker * a.worker_bytes;
        if (a.short_lines) {
            if (a.is_double)
                run_short_f64(&a, first, last);
            else
                run_short_f32(&a, first, last);
#if VECTOR_BYTES == 64
        } else if (a.split_lines) {
            if (a.is_double)
                run_split_f64(&a, first, last);
            else
                run_split_f32(&a, first, last);
#endif
        } else if (!a.by_lines) {
            if (a.is_double)
                run_groups_f64(&a, first, last);
            else
                run_groups_f32(&a, first, last);
        } else
            for (int64_t line = first; line < last; line++) {
                if (a.is_double)
                    run_by_line_f64(&a, line);
                else
                    run_by_line_f32(&a, line);
            }
    }
}
