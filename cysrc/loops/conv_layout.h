/* Moving images between their layout and rows of channels, for an element type T (included once per type). */

/* out[j] = the lanes src[i * src_row + j], zero beyond `rows`; j < cols, both at most a vector's lanes. */
KERNEL_INLINE void FN(conv_turned)(const T* src, int64_t src_row, int64_t rows, int64_t cols, VECTOR* out) {
    enum { W = VECTOR_BYTES / sizeof(T) };
    if (rows == W && cols == W) {
        FN(conv_square)(src, src_row, (T*)out, W);
        return;
    }
    VECTOR in[W];
    for (int64_t i = 0; i < W; i++) in[i] = i < rows ? FN(conv_load)(src + i * src_row, cols) : (VECTOR){0};
    FN(conv_square)((const T*)in, W, (T*)out, W);
}

/* dst[j * dst_row + i] = src[i * src_row + j] for i < rows, j < cols; `whole`: dst has room for rows in whole vectors, which
 * are filled with zeros. */
KERNEL_ONCE void FN(conv_transpose)(const T* src, int64_t src_row, T* dst, int64_t dst_row, int64_t rows, int64_t cols, int whole) {
    enum { W = VECTOR_BYTES / sizeof(T) };
    for (int64_t i = 0; i < rows; i += W)
        for (int64_t j = 0; j < cols; j += W) {
            VECTOR out[W];
            int64_t m = min_i64(W, rows - i), n = min_i64(W, cols - j);
            T* to = dst + j * dst_row + i;
            if (m == W && n == W) {
                FN(conv_square)(src + i * src_row + j, src_row, to, dst_row);
                continue;
            }
            FN(conv_turned)(src + i * src_row + j, src_row, m, n, out);
            for (int64_t k = 0; k < n; k++) FN(conv_store)(to + k * dst_row, out[k], whole ? W : m);
        }
}

/* An image of one sample, `channels` of its channels from the first that `data` points to. */
typedef struct {
    T* data;
    int64_t last, height, width, all_channels, channels;
} FN(conv_image);

KERNEL_INLINE FN(conv_image) FN(conv_image_of)(const void* data, int64_t last, int64_t sample, int64_t height, int64_t width, int64_t all,
                                               int64_t first, int64_t channels) {
    T* start = (T*)data + sample * all * height * width + first * (last ? 1 : height * width);
    return (FN(conv_image)){start, last, height, width, all, channels};
}

/* Whether rows of an image are so short that a transposed square holds several: then all rows of a strip are transposed together. */
KERNEL_INLINE int FN(conv_is_narrow)(const FN(conv_image)* x) { return !x->last && x->width <= LANES / 2; }
enum { FN(CONV_NARROW_ROWS) = 6 };

/* strip[row][col][LANES] = channels c.. at (h + row, w + col), zero outside the image and beyond its channels */
KERNEL_ONCE void FN(conv_load_strip)(const FN(conv_image)* x, int64_t c, int64_t h, int64_t w, int64_t rows, int64_t cols, T* strip) {
    enum { W = VECTOR_BYTES / sizeof(T) };
    int64_t n = min_i64(W, x->channels - c), lo = 0, hi = cols, plane = x->height * x->width;
    conv_range(w, 1, x->width, &lo, &hi);
    T together[FN(CONV_NARROW_ROWS) * W / 2 * W];
    const int narrow = FN(conv_is_narrow)(x) && rows <= FN(CONV_NARROW_ROWS);
    const T* pixels = together + (w + lo) * W;
    if (narrow) {
        int64_t top = max_i64(h, 0), bottom = min_i64(h + rows, x->height);
        if (bottom > top) FN(conv_transpose)(x->data + c * plane + top * x->width, plane, together, W, n, (bottom - top) * x->width, 1);
    }
    for (int64_t row = 0; row < rows; row++, strip += cols * W) {
        int64_t inside = h + row >= 0 && h + row < x->height && hi > lo, from = inside ? lo : cols, to = inside ? hi : cols;
        for (int64_t col = 0; col < from; col++) *(VECTOR_U*)(strip + col * W) = (VECTOR){0};
        for (int64_t col = to; col < cols; col++) *(VECTOR_U*)(strip + col * W) = (VECTOR){0};
        if (!inside) continue;
        int64_t pixel = (h + row) * x->width + w + lo;
        if (narrow) {
            for (int64_t col = 0; col < hi - lo; col++) *(VECTOR_U*)(strip + (lo + col) * W) = *(const VECTOR_U*)(pixels + col * W);
            pixels += x->width * W;
        } else if (!x->last) {
            FN(conv_transpose)(x->data + c * plane + pixel, plane, strip + lo * W, W, n, hi - lo, 1);
        } else if (n == W) {
            const T* p = x->data + c + pixel * x->all_channels;
            for (int64_t col = lo; col < hi; col++, p += x->all_channels) *(VECTOR_U*)(strip + col * W) = *(const VECTOR_U*)p;
        } else {
            const T* p = x->data + c + pixel * x->all_channels;
            for (int64_t col = lo; col < hi; col++, p += x->all_channels) *(VECTOR_U*)(strip + col * W) = FN(conv_load)(p, n);
        }
    }
}

/* The inverse, of what lies inside the image; rows of the strip are `strip_row` elements apart. */
KERNEL_ONCE void FN(conv_store_strip)(const FN(conv_image)* y, int64_t c, int64_t h, int64_t w, int64_t rows, int64_t cols, const T* strip,
                                      int64_t strip_row) {
    enum { W = VECTOR_BYTES / sizeof(T) };
    int64_t n = min_i64(W, y->channels - c), plane = y->height * y->width;
    rows = min_i64(rows, y->height - h), cols = min_i64(cols, y->width - w);
    if (FN(conv_is_narrow)(y) && cols == y->width && rows <= FN(CONV_NARROW_ROWS)) {
        T together[FN(CONV_NARROW_ROWS) * W / 2 * W];
        for (int64_t row = 0; row < rows; row++)
            for (int64_t col = 0; col < cols; col++) *(VECTOR_U*)(together + (row * cols + col) * W) = *(const VECTOR_U*)(strip + row * strip_row + col * W);
        FN(conv_transpose)(together, W, y->data + c * plane + h * cols, plane, rows * cols, n, 0);
        return;
    }
    for (int64_t row = 0; row < rows; row++, strip += strip_row) {
        int64_t pixel = (h + row) * y->width + w;
        if (!y->last) {
            FN(conv_transpose)(strip, W, y->data + c * plane + pixel, plane, cols, n, 0);
        } else {
            T* p = y->data + c + pixel * y->all_channels;
            for (int64_t col = 0; col < cols; col++, p += y->all_channels) FN(conv_store)(p, *(const VECTOR_U*)(strip + col * W), n);
        }
    }
}
