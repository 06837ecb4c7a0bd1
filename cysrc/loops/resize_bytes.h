/* Images of bytes, one to four channels a pixel, on AVX2; included by resize.c after the float functions, whose vertical pass it
 * shares. A gather of 32 bits brings four neighbouring bytes at once: four taps of a plane, or one tap of all channels of
 * channels_last. Between the two passes a row is planar, [channel][width], and rounded to bytes, as PyTorch has it. */

/* Tap k of result i is the pixel first[i] + k with weight[k * padded + i]; both are filled up with zeros to whole vectors. */
typedef struct {
    i64 taps, padded;
    i32 *first; /* in bytes */
    float *weight;
    u8 *row; /* a copy with room for gathers beyond its end */
} ByteTable;

INL i64 byte_taps(const ResizeAxis *t, i64 inner) { return inner == 1 ? (t->span + 3) & ~(i64)3 : t->span; }

/* Whether the taps of every result lie so close together that a table of their whole range is worth its weights. */
static int bytes_fit(const ResizeArgs *a)
{
    const ResizeAxis *depth = &a->axis[0], *width = &a->axis[2];
    return a->dtype == DT_u8 && a->inner <= 4 && depth->in == 1 && depth->out == 1 && width->in < INT32_MAX / 4 &&
           width->span * width->out <= 2 * width->start[width->out] + 64;
}

static i64 bytes_scratch(const ResizeArgs *a)
{
    const ResizeAxis *height = &a->axis[1], *width = &a->axis[2];
    i64 padded = (width->out + 7) & ~(i64)7, taps = byte_taps(width, a->inner);
    return 4 * padded * (taps + 1) + 4 * (height->span + 1) * width->out * a->inner + (width->in + taps) * a->inner + 192;
}

static char *byte_table(const ResizeAxis *t, i64 inner, ByteTable *b, char *scratch)
{
    b->taps = byte_taps(t, inner);
    b->padded = (t->out + 7) & ~(i64)7;
    b->first = (i32 *)scratch;
    b->weight = (float *)(b->first + b->padded);
    b->row = (u8 *)(b->weight + b->taps * b->padded);
    i64 row = (t->in + b->taps) * inner + 4;
    memset(scratch, 0, (char *)b->row + row - scratch);
    const float *weight = t->weight;
    for (i64 i = 0; i < t->out; i++) {
        i64 low = t->in;
        for (i64 k = t->start[i]; k < t->start[i + 1]; k++)
            low = t->index[k] < low ? t->index[k] : low;
        b->first[i] = low < t->in ? (i32)(low * inner) : 0;
        for (i64 k = t->start[i]; k < t->start[i + 1]; k++)
            b->weight[(t->index[k] - low) * b->padded + i] += weight[k];
    }
    return (char *)(((uintptr_t)(b->row + row) + 31) & ~(uintptr_t)31);
}

INL __m256 byte_of(__m256i g, int c) { return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(g, 8 * c), _mm256_set1_epi32(255))); }

INL void byte_row(const ByteTable *b, const u8 *x, float *y, i64 out, int inner)
{
    const __m256 most = _mm256_set1_ps(255), half = _mm256_set1_ps(0.5f);
    for (i64 i = 0; i < out; i += 8) {
        __m256i at = _mm256_loadu_si256((const __m256i *)(b->first + i));
        __m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
        const float *w = b->weight + i;
        if (inner == 1)
            for (i64 k = 0; k < b->taps; k += 4, w += 4 * b->padded) {
                __m256i g = _mm256_i32gather_epi32((const int *)(x + k), at, 1);
                for (int c = 0; c < 4; c++)
                    sum[0] = _mm256_fmadd_ps(byte_of(g, c), _mm256_loadu_ps(w + c * b->padded), sum[0]);
            }
        else
            for (i64 k = 0; k < b->taps; k++, w += b->padded) {
                __m256i g = _mm256_i32gather_epi32((const int *)(x + k * inner), at, 1);
                __m256 v = _mm256_loadu_ps(w);
                for (int c = 0; c < inner; c++)
                    sum[c] = _mm256_fmadd_ps(byte_of(g, c), v, sum[c]);
            }
        __m256i lanes = _mm256_cmpgt_epi32(_mm256_set1_epi32(out - i < 8 ? (int)(out - i) : 8), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        for (int c = 0; c < inner; c++) {
            __m256 v = _mm256_add_ps(_mm256_min_ps(_mm256_max_ps(sum[c], _mm256_setzero_ps()), most), half);
            _mm256_maskstore_ps(y + c * out + i, lanes, _mm256_cvtepi32_ps(_mm256_cvttps_epi32(v)));
        }
    }
}

INL void store_bytes(const float *restrict x, u8 *restrict y, i64 n, int inner)
{
    for (int c = 0; c < inner; c++)
        for (i64 i = 0; i < n; i++) {
            float v = x[c * n + i];
            v = (v < 0 ? 0 : v > 255 ? 255 : v) + 0.5f;
            y[i * inner + c] = (u8)(i32)v;
        }
}

static void resize_bytes(const ResizeArgs *a, i64 begin, i64 end, char *scratch)
{
    const ResizeAxis *height = &a->axis[1], *width = &a->axis[2];
    int inner = (int)a->inner;
    i64 in_row = width->in * inner, out_row = width->out * inner;
    ByteTable table;
    float *rows = (float *)byte_table(width, inner, &table, scratch), *blended = rows + height->span * out_row;
    for (i64 p = begin; p < end; p++) {
        const u8 *x = (const u8 *)a->x + p * height->in * in_row;
        u8 *y = (u8 *)a->y + p * height->out * out_row;
        i64 row = 0;
        for (i64 h = 0; h < height->out; h++, y += out_row) {
            i64 last = -1;
            for (i64 k = height->start[h]; k < height->start[h + 1]; k++)
                last = height->index[k] > last ? height->index[k] : last;
            for (; row <= last; row++) {
                if (!height->used[row])
                    continue;
                float *to = rows + row % height->span * out_row;
                memcpy(table.row, x + row * in_row, in_row);
                switch (inner) { /* constants, so that sums stay in registers */
                case 1: byte_row(&table, table.row, to, width->out, 1); break;
                case 2: byte_row(&table, table.row, to, width->out, 2); break;
                case 3: byte_row(&table, table.row, to, width->out, 3); break;
                default: byte_row(&table, table.row, to, width->out, 4);
                }
            }
            const float *from = blend_f32(height, h, rows, height->span, blended, out_row);
            switch (inner) {
            case 1: store_bytes(from, y, width->out, 1); break;
            case 2: store_bytes(from, y, width->out, 2); break;
            case 3: store_bytes(from, y, width->out, 3); break;
            default: store_bytes(from, y, width->out, 4);
            }
        }
    }
}
