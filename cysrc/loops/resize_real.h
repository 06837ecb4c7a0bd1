/* Resampling in REAL (float or double) arithmetic; included by resize.c once for each, with F naming the functions. */

/* ---- tables ------------------------------------------------------------------------------------------------------- */

INL REAL F(cubic)(REAL x, REAL a)
{
    x = x < 0 ? -x : x;
    return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* sinc(x) * sinc(x / 3) */
INL REAL F(lanczos)(REAL x)
{
    REAL angle = (REAL)3.14159265358979323846 * x;
    if (x == 0)
        return 1;
    return x > -3 && x < 3 ? F_SIN(angle) / angle * (F_SIN(angle / 3) / (angle / 3)) : 0;
}

/* The source that a coordinate lies in: whatever the scale (given numbers may be anything), one that exists. */
INL i64 F(inside)(REAL x, i64 in)
{
    i64 j = x > 0 && x < (REAL)in ? (i64)x : x > 0 ? in - 1 : 0;
    return j < in - 1 ? j : in - 1;
}

/* The taps of result i: their sources and weights, as many as are returned (at most `room`, which resize_taps bounds). */
static i64 F(taps)(const ResizeRule *r, i64 i, i32 *index, REAL *weight)
{
    i64 in = r->in;
    int nearest = r->kind <= RESIZE_NEAREST_EXACT;
    REAL scale = r->align_corners && !nearest ? (r->out > 1 ? (REAL)(in - 1) / (r->out - 1) : 0)
               : r->scale > 0 ? (REAL)(1.0 / r->scale) : (REAL)in / r->out;
    if (nearest) {
        i64 at = F(inside)(r->kind == RESIZE_NEAREST ? i * scale : (i + (REAL)0.5) * scale, in);
        if (r->kind == RESIZE_NEAREST && (r->out == in || r->out == 2 * in))
            at = r->out == in ? i : i / 2; /* whatever the rounding of a given scale says */
        index[0] = (i32)at;
        weight[0] = 1;
        return 1;
    }
    if (r->antialias) {
        REAL reach = r->kind == RESIZE_LINEAR ? 1 : r->kind == RESIZE_CUBIC ? 2 : 3, support = scale >= 1 ? reach * scale : reach;
        REAL centre = scale * (i + (REAL)0.5), inverse = scale >= 1 ? 1 / scale : 1, total = 0;
        i64 first = (i64)(centre - support + (REAL)0.5), last = (i64)(centre + support + (REAL)0.5), m = 0;
        first = first > 0 ? first : 0;
        last = last < in ? last : in;
        for (i64 j = first; j < last; j++, m++) {
            REAL x = (j - centre + (REAL)0.5) * inverse, distance = x < 0 ? -x : x;
            weight[m] = r->kind == RESIZE_LINEAR ? (distance < 1 ? 1 - distance : 0)
                      : r->kind == RESIZE_CUBIC ? F(cubic)(x, (REAL)-0.5) : F(lanczos)(x);
            index[m] = (i32)j;
            total += weight[m];
        }
        for (i64 k = 0; k < m && total != 0; k++)
            weight[k] /= total;
        return m;
    }
    REAL at = r->align_corners ? scale * i : scale * (i + (REAL)0.5) - (REAL)0.5;
    if (r->kind == RESIZE_LINEAR) {
        at = at > 0 ? at : 0;
        i64 low = F(inside)(at, in);
        REAL t = at - low;
        t = t > 1 ? 1 : t;
        index[0] = (i32)low;
        index[1] = (i32)(low < in - 1 ? low + 1 : low);
        weight[0] = 1 - t;
        weight[1] = t;
        return 2;
    }
    REAL whole = F_FLOOR(at), t = at - whole;
    for (i64 k = 0; k < 4; k++) {
        index[k] = (i32)F(inside)(whole - 1 + k, in);
        weight[k] = F(cubic)(t + 1 - k, (REAL)-0.75);
    }
    return 4;
}

/* Fill the table of a rule, or of its transpose; returns the number of taps. start has a number more than results. */
static i64 F(table)(const ResizeRule *r, int transposed, i64 *start, i32 *index, REAL *weight)
{
    i64 m = 0;
    if (!transposed) {
        for (i64 i = 0; i < r->out; i++) {
            start[i] = m;
            m += F(taps)(r, i, index + m, weight + m);
        }
        start[r->out] = m;
        return m;
    }
    i32 *one = index + r->out * resize_room(r);
    REAL *few = weight + r->out * resize_room(r);
    memset(start, 0, (r->in + 1) * sizeof(i64));
    for (i64 i = 0; i < r->out; i++)
        for (i64 k = 0, count = F(taps)(r, i, one, few); k < count; k++)
            start[one[k] + 1]++;
    for (i64 j = 0; j < r->in; j++)
        start[j + 1] += start[j];
    for (i64 i = 0; i < r->out; i++)
        for (i64 k = 0, count = F(taps)(r, i, one, few); k < count; k++) {
            i64 place = start[one[k]]++;
            index[place] = (i32)i;
            weight[place] = few[k];
            m++;
        }
    for (i64 j = r->in; j > 0; j--)
        start[j] = start[j - 1];
    start[0] = 0;
    return m;
}

/* ---- planes ------------------------------------------------------------------------------------------------------- */

static void F(load)(int dtype, const char *x, REAL *restrict out, i64 n)
{
    switch (dtype) {
    case DT_u8: for (i64 i = 0; i < n; i++) out[i] = ((const u8 *)x)[i]; break;
    case DT_f16: for (i64 i = 0; i < n; i++) out[i] = ld_f16(((const f16 *)x)[i]); break;
    case DT_bf16: for (i64 i = 0; i < n; i++) out[i] = ld_bf16(((const bf16 *)x)[i]); break;
    default: memcpy(out, x, n * sizeof(REAL));
    }
}

static void F(store)(int dtype, const REAL *restrict x, char *y, i64 n)
{
    switch (dtype) {
    case DT_u8:
        for (i64 i = 0; i < n; i++) {
            REAL v = x[i] + (REAL)0.5;
            ((u8 *)y)[i] = (u8)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
        break;
    case DT_f16: for (i64 i = 0; i < n; i++) ((f16 *)y)[i] = st_f16(x[i]); break;
    case DT_bf16: for (i64 i = 0; i < n; i++) ((bf16 *)y)[i] = st_bf16(x[i]); break;
    default: memcpy(y, x, n * sizeof(REAL));
    }
}

/* A row through the width's table. */
static void F(row)(const ResizeAxis *t, const REAL *restrict x, REAL *restrict y, i64 inner)
{
    const i64 *start = t->start;
    const i32 *index = t->index;
    const REAL *weight = t->weight;
    if (inner == 1 && t->taps == 1) {
        for (i64 i = 0; i < t->out; i++)
            y[i] = weight[i] * x[index[i]];
    } else if (inner == 1 && t->taps == 2) {
        for (i64 i = 0; i < t->out; i++)
            y[i] = weight[2 * i] * x[index[2 * i]] + weight[2 * i + 1] * x[index[2 * i + 1]];
    } else if (inner == 1) {
        for (i64 i = 0; i < t->out; i++) {
            REAL sum = 0;
            for (i64 k = start[i]; k < start[i + 1]; k++)
                sum += weight[k] * x[index[k]];
            y[i] = sum;
        }
    } else {
        for (i64 i = 0; i < t->out; i++) {
            REAL *to = y + i * inner;
            i64 k = start[i], stop = start[i + 1];
            if (stop - k == 2) {
                const REAL *a = x + index[k] * inner, *b = x + index[k + 1] * inner;
                REAL p = weight[k], q = weight[k + 1];
                for (i64 c = 0; c < inner; c++)
                    to[c] = p * a[c] + q * b[c];
                continue;
            }
            for (i64 c = 0; c < inner; c++)
                to[c] = 0;
            for (; k < stop; k++) {
                const REAL *from = x + index[k] * inner;
                REAL w = weight[k];
                for (i64 c = 0; c < inner; c++)
                    to[c] += w * from[c];
            }
        }
    }
}

/* The weighted sum of rows of n; a single row of weight 1 is returned as it is. Row j lies at ring + j % size * n. */
static const REAL *F(blend)(const ResizeAxis *t, i64 i, const REAL *ring, i64 size, REAL *restrict y, i64 n)
{
    const i32 *index = t->index;
    const REAL *w = t->weight;
    i64 k = t->start[i], stop = t->start[i + 1];
#define ROW(j) (ring + index[j] % size * n)
    if (stop - k == 1 && w[k] == 1)
        return ROW(k);
    i64 count = stop - k, whole = count & ~(i64)3;
    if (count == 2) {
        const REAL *a = ROW(k), *b = ROW(k + 1);
        REAL p = w[k], q = w[k + 1];
        for (i64 e = 0; e < n; e++)
            y[e] = p * a[e] + q * b[e];
        return y;
    }
    if (count < 4)
        memset(y, 0, n * sizeof(REAL));
    for (i64 m = 0; m < whole; m += 4, k += 4) {
        const REAL *a = ROW(k), *b = ROW(k + 1), *c = ROW(k + 2), *d = ROW(k + 3);
        REAL p = w[k], q = w[k + 1], r = w[k + 2], s = w[k + 3];
        if (m == 0)
            for (i64 e = 0; e < n; e++)
                y[e] = p * a[e] + q * b[e] + r * c[e] + s * d[e];
        else
            for (i64 e = 0; e < n; e++)
                y[e] += p * a[e] + q * b[e] + r * c[e] + s * d[e];
    }
    for (; k < stop; k++) {
        const REAL *a = ROW(k);
        REAL p = w[k];
        for (i64 e = 0; e < n; e++)
            y[e] += p * a[e];
    }
#undef ROW
    return y;
}

static void F(resize_lines)(const ResizeArgs *a, i64 begin, i64 end, char *scratch)
{
    const ResizeAxis *depth = &a->axis[0], *height = &a->axis[1], *width = &a->axis[2];
    static const int items[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
    i64 item = items[a->dtype], in_row = width->in * a->inner, out_row = width->out * a->inner, out_plane = out_row * height->out;
    int real = a->dtype == DT_f32 || a->dtype == DT_f64;
    if (real && depth->in == 1 && depth->out == 1 && height->in == 1 && height->out == 1) { /* nothing but rows */
        for (i64 p = begin; p < end; p++)
            F(row)(width, (const REAL *)a->x + p * in_row, (REAL *)a->y + p * out_row, a->inner);
        return;
    }
    REAL *in = (REAL *)scratch, *out = in + in_row, *rows = out + out_plane, *slices = rows + height->span * out_row;
    for (i64 p = begin; p < end; p++) {
        const char *x = a->x + p * depth->in * height->in * in_row * item;
        char *y = a->y + p * depth->out * out_plane * item;
        i64 slice = 0;
        for (i64 z = 0; z < depth->out; z++) {
            i64 last_slice = -1;
            for (i64 k = depth->start[z]; k < depth->start[z + 1]; k++)
                last_slice = depth->index[k] > last_slice ? depth->index[k] : last_slice;
            for (; slice <= last_slice; slice++) {
                if (!depth->used[slice])
                    continue;
                i64 row = 0;
                for (i64 h = 0; h < height->out; h++) {
                    i64 last = -1;
                    for (i64 k = height->start[h]; k < height->start[h + 1]; k++)
                        last = height->index[k] > last ? height->index[k] : last;
                    for (; row <= last; row++) {
                        if (!height->used[row])
                            continue;
                        const char *from = x + (slice * height->in + row) * in_row * item;
                        if (!real)
                            F(load)(a->dtype, from, in, in_row);
                        REAL *resized = rows + row % height->span * out_row;
                        F(row)(width, real ? (const REAL *)from : in, resized, a->inner);
                        if (a->dtype == DT_u8) /* bytes between the dimensions too, as PyTorch has it */
                            for (i64 i = 0; i < out_row; i++)
                                resized[i] = (u8)(resized[i] < 0 ? 0 : resized[i] > 255 ? 255 : resized[i] + (REAL)0.5);
                    }
                    REAL *to = slices + slice % depth->span * out_plane + h * out_row;
                    if (depth->out == 1 && depth->in == 1) { /* no depth to blend: straight to the result */
                        char *place = y + h * out_row * item;
                        const REAL *r = F(blend)(height, h, rows, height->span, real ? (REAL *)place : out, out_row);
                        if (!real || r != (const REAL *)place)
                            F(store)(a->dtype, r, place, out_row);
                    } else {
                        const REAL *r = F(blend)(height, h, rows, height->span, to, out_row);
                        if (r != to)
                            memcpy(to, r, out_row * sizeof(REAL));
                    }
                }
            }
            if (depth->out == 1 && depth->in == 1)
                continue;
            F(store)(a->dtype, F(blend)(depth, z, slices, depth->span, out, out_plane), y + z * out_plane * item, out_plane);
        }
    }
}

/* ---- grids -------------------------------------------------------------------------------------------------------- */

/* A pixel coordinate inside [0, size - 1], by padding; *slope is multiplied by the derivative. */
INL REAL F(clipped)(REAL x, i64 size, const GridArgs *a, REAL *slope)
{
    if (a->padding == GRID_REFLECTION) {
        REAL low = a->align_corners ? 0 : (REAL)-0.5, span = a->align_corners ? size - 1 : size;
        if (span <= 0) {
            *slope = 0;
            return 0;
        }
        REAL distance = x - low;
        if (distance < 0) {
            distance = -distance;
            *slope = -*slope;
        }
        REAL flips = F_FLOOR(distance / span), extra = distance - flips * span;
        if (flips - 2 * F_FLOOR(flips / 2) != 0) {
            extra = span - extra;
            *slope = -*slope;
        }
        x = extra + low;
    }
    if (!(x > 0)) {
        *slope = 0;
        return 0;
    }
    if (x >= size - 1) {
        *slope = 0;
        return size - 1;
    }
    return x;
}

/* Where a coordinate in [-1, 1] lies in pixels, after padding; *slope is its derivative. */
INL REAL F(place)(REAL g, i64 size, const GridArgs *a, REAL *slope)
{
    REAL x = a->align_corners ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
    *slope = a->align_corners ? (REAL)(size - 1) / 2 : (REAL)size / 2;
    return a->padding == GRID_ZEROS ? x : F(clipped)(x, size, a, slope);
}

/* The taps of `count` <= GRID_BLOCK positions: tap k of position p reads at[k][p] (-1: nothing) with weight w[k][p], whose
 * derivatives by the coordinates are dw[axis][k][p]. */
typedef struct {
    i32 at[GRID_TAPS][GRID_BLOCK];
    REAL w[GRID_TAPS][GRID_BLOCK], dw[3][GRID_TAPS][GRID_BLOCK];
} F(Taps);

/* In three dimensions; bilinear is trilinear there. */
static int F(grid_taps)(const GridArgs *a, const REAL *grid, i64 count, int derive, F(Taps) *t)
{
    int nd = a->dims, per_axis = a->mode == GRID_NEAREST ? 1 : 2, taps = 1;
    for (int d = 0; d < nd; d++)
        taps *= per_axis;
    for (i64 p = 0; p < count; p++) {
        i64 at[3][2];
        REAL w[3][2], dw[3][2];
        for (int d = 0; d < nd; d++) { /* the grid's first number is the last dimension's */
            i64 size = a->size[3 - nd + d];
            REAL slope, x = F(place)(grid[p * nd + nd - 1 - d], size, a, &slope);
            if (!(x > -1e9 && x < 1e9))
                x = -100; /* NaN and what no integer holds: outside */
            if (a->mode == GRID_NEAREST) {
                at[d][0] = (i64)F_NEARBY(x);
                w[d][0] = 1;
                dw[d][0] = 0;
            } else {
                REAL whole = F_FLOOR(x), f = x - whole;
                at[d][0] = (i64)whole;
                at[d][1] = (i64)whole + 1;
                w[d][0] = 1 - f;
                w[d][1] = f;
                dw[d][0] = -slope;
                dw[d][1] = slope;
            }
            for (int k = 0; k < per_axis; k++)
                if (at[d][k] < 0 || at[d][k] >= size)
                    at[d][k] = -1;
        }
        for (int k = 0; k < taps; k++) {
            int rest = k, part[3];
            i64 offset = 0;
            REAL weight = 1;
            for (int d = nd - 1; d >= 0; d--) {
                part[d] = rest % per_axis;
                rest /= per_axis;
            }
            for (int d = 0; d < nd; d++) {
                offset = offset < 0 || at[d][part[d]] < 0 ? -1 : offset * a->size[3 - nd + d] + at[d][part[d]];
                weight *= w[d][part[d]];
            }
            t->at[k][p] = (i32)offset;
            t->w[k][p] = offset < 0 ? 0 : weight;
            for (int d = 0; derive && d < nd; d++) {
                REAL slope = dw[d][part[d]];
                for (int e = 0; e < nd; e++)
                    slope *= e == d ? 1 : w[e][part[e]];
                t->dw[d][k][p] = offset < 0 ? 0 : slope;
            }
        }
    }
    return taps;
}

/* grid_taps in two dimensions, in loops over the positions that vectorise. */
static int F(image_taps)(const GridArgs *a, const REAL *grid, i64 count, int derive, F(Taps) *t)
{
    i32 at[2][4][GRID_BLOCK];
    REAL w[2][4][GRID_BLOCK], dw[2][4][GRID_BLOCK];
    const i32 height = (i32)a->size[1], width = (i32)a->size[2];
    const int per_axis = a->mode == GRID_NEAREST ? 1 : a->mode == GRID_BILINEAR ? 2 : 4;
    for (int d = 0; d < 2; d++) {
        REAL place[GRID_BLOCK], slope[GRID_BLOCK];
        const i64 size = a->size[1 + d];
        const REAL *g = grid + 1 - d, last = (REAL)(size - 1);
        if (a->align_corners)
            for (i64 p = 0; p < count; p++) {
                place[p] = (g[2 * p] + 1) / 2 * last;
                slope[p] = last / 2;
            }
        else
            for (i64 p = 0; p < count; p++) {
                place[p] = ((g[2 * p] + 1) * size - 1) / 2;
                slope[p] = (REAL)size / 2;
            }
        if (a->mode != GRID_BICUBIC && a->padding == GRID_BORDER)
            for (i64 p = 0; p < count; p++) {
                REAL x = place[p];
                slope[p] = (x > 0) & (x < last) ? slope[p] : 0;
                place[p] = x > 0 ? x < last ? x : last : 0;
            }
        for (i64 p = 0; p < count && a->mode != GRID_BICUBIC && a->padding == GRID_REFLECTION; p++)
            place[p] = F(clipped)(place[p], size, a, &slope[p]);
        for (i64 p = 0; p < count; p++) /* NaN and what no integer holds: outside */
            place[p] = (place[p] > (REAL)-1e9) & (place[p] < (REAL)1e9) ? place[p] : -100;
        if (a->mode == GRID_NEAREST)
            for (i64 p = 0; p < count; p++) {
                at[d][0][p] = (i32)F_NEARBY(place[p]);
                w[d][0][p] = 1;
                dw[d][0][p] = 0;
            }
        else if (a->mode == GRID_BILINEAR)
            for (i64 p = 0; p < count; p++) {
                REAL whole = F_FLOOR(place[p]), f = place[p] - whole;
                at[d][0][p] = (i32)whole;
                at[d][1][p] = (i32)whole + 1;
                w[d][0][p] = 1 - f;
                w[d][1][p] = f;
                dw[d][0][p] = -slope[p];
                dw[d][1][p] = slope[p];
            }
        for (int k = 0; k < 4 && a->mode == GRID_BICUBIC; k++) {
            for (i64 p = 0; p < count; p++) {
                REAL whole = F_FLOOR(place[p]), u = place[p] - whole + 1 - k, v = u < 0 ? -u : u, sign = u < 0 ? -slope[p] : slope[p];
                at[d][k][p] = (i32)whole - 1 + k;
                w[d][k][p] = F(cubic)(u, (REAL)-0.75);
                dw[d][k][p] = sign * (v < 1 ? ((REAL)3.75 * v - (REAL)4.5) * v : v < 2 ? (REAL)-0.75 * ((3 * v - 10) * v + 8) : 0);
            }
            REAL ignored;
            for (i64 p = 0; p < count && a->padding != GRID_ZEROS; p++)
                at[d][k][p] = (i32)F(clipped)((REAL)at[d][k][p], size, a, &ignored);
        }
    }
    for (int k = 0; k < per_axis * per_axis; k++) {
        const int i = k / per_axis, j = k % per_axis;
        for (i64 p = 0; p < count; p++) {
            i32 y = at[0][i][p], x = at[1][j][p];
            int inside = (y >= 0) & (y < height) & (x >= 0) & (x < width);
            t->at[k][p] = inside ? y * width + x : -1;
            t->w[k][p] = inside ? w[0][i][p] * w[1][j][p] : 0;
        }
        for (i64 p = 0; p < count && derive; p++) {
            t->dw[0][k][p] = t->at[k][p] < 0 ? 0 : dw[0][i][p] * w[1][j][p];
            t->dw[1][k][p] = t->at[k][p] < 0 ? 0 : w[0][i][p] * dw[1][j][p];
        }
    }
    return per_axis * per_axis;
}

static int F(taps_of)(const GridArgs *a, const REAL *grid, i64 count, int derive, F(Taps) *t)
{
    return (a->dims == 2 ? F(image_taps) : F(grid_taps))(a, grid, count, derive, t);
}

/* What tap k of position p reads of a plane, 0 where that is outside. */
INL REAL F(tapped)(const F(Taps) *t, int k, i64 p, const REAL *x)
{
    i32 at = t->at[k][p];
    REAL v = x[at < 0 ? 0 : at];
    return at < 0 ? 0 : v;
}

/* Every channel's taps of positions [from, count): y = sum over taps of w times what they read. */
INL void F(weigh)(const F(Taps) *t, int taps, const REAL *x, i64 plane, REAL *y, i64 row, i64 channels, i64 from, i64 count)
{
    for (i64 c = 0; c < channels; c++, x += plane, y += row)
        for (i64 p = from; p < count; p++) {
            REAL sum = 0;
            for (int k = 0; k < taps; k++)
                sum += t->w[k][p] * F(tapped)(t, k, p, x);
            y[p] = sum;
        }
}

/* The adjoint by tap: over channels, the gradient times what the tap read. */
INL void F(tap_sums)(const F(Taps) *t, int taps, const REAL *x, i64 plane, const REAL *g, i64 row, i64 channels, i64 from, i64 count,
                     REAL sums[GRID_TAPS][GRID_BLOCK])
{
    for (i64 c = 0; c < channels; c++, x += plane, g += row)
        for (int k = 0; k < taps; k++)
            for (i64 p = from; p < count; p++)
                sums[k][p] += t->at[k][p] < 0 ? 0 : g[p] * F(tapped)(t, k, p, x);
}

#ifdef GATHERED
/* The first positions, a vector of them through all channels, so that few taps stay in registers; returns how many. */
INL i64 F(weigh_vectors)(const F(Taps) *t, int taps, const REAL *x, i64 plane, REAL *y, i64 row, i64 channels, i64 count)
{
    i64 p = 0;
    for (; p + 8 <= count; p += 8) {
        __m256i at[GRID_TAPS];
        __m256 w[GRID_TAPS], inside[GRID_TAPS];
        for (int k = 0; k < taps; k++) {
            at[k] = _mm256_loadu_si256((const __m256i *)(t->at[k] + p));
            w[k] = _mm256_loadu_ps(t->w[k] + p);
            inside[k] = _mm256_castsi256_ps(~at[k]); /* by the sign */
        }
        for (i64 c = 0; c < channels; c++) {
            __m256 sum = _mm256_setzero_ps();
            for (int k = 0; k < taps; k++)
                sum = _mm256_fmadd_ps(w[k], _mm256_mask_i32gather_ps(_mm256_setzero_ps(), x + c * plane, at[k], inside[k], 4), sum);
            _mm256_storeu_ps(y + c * row + p, sum);
        }
    }
    return p;
}

static i64 F(tap_sum_vectors)(const F(Taps) *t, const REAL *x, i64 plane, const REAL *g, i64 row, i64 channels, i64 count, REAL sums[GRID_TAPS][GRID_BLOCK])
{
    i64 p = 0;
    for (; p + 8 <= count; p += 8) {
        __m256i at[4];
        __m256 sum[4], inside[4];
        for (int k = 0; k < 4; k++) {
            at[k] = _mm256_loadu_si256((const __m256i *)(t->at[k] + p));
            sum[k] = _mm256_setzero_ps();
            inside[k] = _mm256_castsi256_ps(~at[k]);
        }
        for (i64 c = 0; c < channels; c++) {
            __m256 v = _mm256_loadu_ps(g + c * row + p);
            for (int k = 0; k < 4; k++)
                sum[k] = _mm256_fmadd_ps(v, _mm256_mask_i32gather_ps(_mm256_setzero_ps(), x + c * plane, at[k], inside[k], 4), sum[k]);
        }
        for (int k = 0; k < 4; k++)
            _mm256_storeu_ps(sums[k] + p, _mm256_blendv_ps(_mm256_setzero_ps(), sum[k], inside[k]));
    }
    return p;
}

/* Bilinear taps of eight positions of an image in registers, as image_taps has them: with few channels, storing them was most of the time. */
typedef struct {
    __m256i at[4];
    __m256 w[4], inside[4], part[2][2], slope[2]; /* part: the weights of one dimension; slope: their derivative */
} bilinear_taps;

INL int F(has_bilinear_vectors)(const GridArgs *a) { return a->dims == 2 && a->mode == GRID_BILINEAR && a->padding != GRID_REFLECTION; }

INL __m256i F(first_lanes)(i64 n) { return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }

INL __m256 F(load_first)(const float *p, i64 n) { return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, F(first_lanes)(n)); }
INL void F(store_first)(float *p, i64 n, __m256 v)
{
    if (n >= 8) _mm256_storeu_ps(p, v);
    else _mm256_maskstore_ps(p, F(first_lanes)(n), v);
}

/* Of the first n <= 8 positions that grid points to; the others lie outside. */
INL void F(bilinear_taps_of)(const GridArgs *a, const float *grid, i64 n, bilinear_taps *t)
{
    const __m256 low = F(load_first)(grid, 2 * n), high = n > 4 ? F(load_first)(grid + 8, 2 * n - 8) : _mm256_setzero_ps();
    const __m256 one = _mm256_set1_ps(1), zero = _mm256_setzero_ps(), lanes = n < 8 ? _mm256_castsi256_ps(F(first_lanes)(n)) : zero;
    __m256i whole[2];
    __m256 in[2][2];
    UNROLL for (int d = 0; d < 2; d++) { /* the grid's first number is the last dimension's */
        __m256 g = d ? _mm256_shuffle_ps(low, high, 0x88) : _mm256_shuffle_ps(low, high, 0xdd);
        const float size = (float)a->size[1 + d], last = (float)(a->size[1 + d] - 1);
        g = _mm256_add_ps(_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(g), 0xd8)), one);
        __m256 half = _mm256_set1_ps(0.5f), x, slope = _mm256_set1_ps(a->align_corners ? last / 2 : size / 2);
        if (a->align_corners) x = _mm256_mul_ps(_mm256_mul_ps(g, half), _mm256_set1_ps(last));
        else x = _mm256_mul_ps(_mm256_sub_ps(_mm256_mul_ps(g, _mm256_set1_ps(size)), one), half);
        if (a->padding == GRID_BORDER) {
            const __m256 above = _mm256_cmp_ps(x, zero, _CMP_GT_OQ), below = _mm256_cmp_ps(x, _mm256_set1_ps(last), _CMP_LT_OQ);
            slope = _mm256_and_ps(slope, _mm256_and_ps(above, below));
            x = _mm256_and_ps(above, _mm256_blendv_ps(_mm256_set1_ps(last), x, below));
        }
        /* NaN and what no integer holds: outside */
        const __m256 held = _mm256_and_ps(_mm256_cmp_ps(x, _mm256_set1_ps(-1e9f), _CMP_GT_OQ), _mm256_cmp_ps(x, _mm256_set1_ps(1e9f), _CMP_LT_OQ));
        x = _mm256_blendv_ps(_mm256_set1_ps(-100), x, held);
        const __m256 floor = _mm256_floor_ps(x);
        const __m256i end = _mm256_set1_epi32((int)a->size[1 + d]), before = _mm256_set1_epi32(-1), next = _mm256_sub_epi32(_mm256_cvttps_epi32(floor), before);
        whole[d] = _mm256_add_epi32(next, before);
        t->part[d][1] = _mm256_sub_ps(x, floor);
        t->part[d][0] = _mm256_sub_ps(one, t->part[d][1]);
        t->slope[d] = slope;
        in[d][0] = _mm256_castsi256_ps(_mm256_and_si256(_mm256_cmpgt_epi32(whole[d], before), _mm256_cmpgt_epi32(end, whole[d])));
        in[d][1] = _mm256_castsi256_ps(_mm256_and_si256(_mm256_cmpgt_epi32(next, before), _mm256_cmpgt_epi32(end, next)));
    }
    const __m256i width = _mm256_set1_epi32((int)a->size[2]), at = _mm256_add_epi32(_mm256_mullo_epi32(whole[0], width), whole[1]);
    UNROLL for (int k = 0; k < 4; k++) {
        t->at[k] = _mm256_add_epi32(k < 2 ? at : _mm256_add_epi32(at, width), _mm256_set1_epi32(k & 1));
        t->inside[k] = _mm256_and_ps(in[0][k >> 1], in[1][k & 1]);
        if (n < 8) t->inside[k] = _mm256_and_ps(lanes, t->inside[k]);
        t->w[k] = _mm256_and_ps(t->inside[k], _mm256_mul_ps(t->part[0][k >> 1], t->part[1][k & 1]));
    }
}
INL __m256 F(gather)(const bilinear_taps *t, int k, const float *x) { return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, t->at[k], t->inside[k], 4); }

INL void F(bilinear_forward_of)(const GridArgs *a, const float *grid, const float *x, i64 plane, float *y, i64 n)
{
    bilinear_taps t;
    F(bilinear_taps_of)(a, grid, n, &t);
    for (i64 c = 0; c < a->channels; c++, x += plane, y += a->positions) {
        __m256 sum = _mm256_setzero_ps();
        UNROLL for (int k = 0; k < 4; k++)
            sum = _mm256_fmadd_ps(t.w[k], F(gather)(&t, k, x), sum);
        F(store_first)(y, n, sum);
    }
}
static void F(bilinear_forward)(const GridArgs *a, const float *grid, const float *x, i64 plane, float *y, i64 count)
{
    i64 p = 0;
    for (; p + 8 <= count; p += 8)
        F(bilinear_forward_of)(a, grid + 2 * p, x, plane, y + p, 8);
    if (p < count)
        F(bilinear_forward_of)(a, grid + 2 * p, x, plane, y + p, count - p);
}

INL void F(bilinear_backward_grid_of)(const GridArgs *a, const float *grid, const float *x, i64 plane, const float *g, float *ggrid, i64 n)
{
    bilinear_taps t;
    F(bilinear_taps_of)(a, grid, n, &t);
    __m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    for (i64 c = 0; c < a->channels; c++, x += plane, g += a->positions) {
        const __m256 v = F(load_first)(g, n);
        UNROLL for (int k = 0; k < 4; k++)
            sum[k] = _mm256_fmadd_ps(v, F(gather)(&t, k, x), sum[k]);
    }
    /* where a tap is outside, an infinite gradient has no part in it either */
    UNROLL for (int k = 0; k < 4; k++)
        sum[k] = _mm256_and_ps(sum[k], t.inside[k]);
    const __m256 down[2] = {_mm256_sub_ps(sum[2], sum[0]), _mm256_sub_ps(sum[3], sum[1])}, right[2] = {_mm256_sub_ps(sum[1], sum[0]), _mm256_sub_ps(sum[3], sum[2])};
    const __m256 dy = _mm256_mul_ps(t.slope[0], _mm256_fmadd_ps(down[1], t.part[1][1], _mm256_mul_ps(down[0], t.part[1][0])));
    const __m256 dx = _mm256_mul_ps(t.slope[1], _mm256_fmadd_ps(right[1], t.part[0][1], _mm256_mul_ps(right[0], t.part[0][0])));
    const __m256 even = _mm256_unpacklo_ps(dx, dy), odd = _mm256_unpackhi_ps(dx, dy);
    F(store_first)(ggrid, 2 * n, _mm256_permute2f128_ps(even, odd, 0x20));
    if (n > 4)
        F(store_first)(ggrid + 8, 2 * n - 8, _mm256_permute2f128_ps(even, odd, 0x31));
}
static void F(bilinear_backward_grid)(const GridArgs *a, const float *grid, const float *x, i64 plane, const float *g, float *ggrid, i64 count)
{
    i64 p = 0;
    for (; p + 8 <= count; p += 8)
        F(bilinear_backward_grid_of)(a, grid + 2 * p, x, plane, g + p, ggrid + 2 * p, 8);
    if (p < count)
        F(bilinear_backward_grid_of)(a, grid + 2 * p, x, plane, g + p, ggrid + 2 * p, count - p);
}
#else
INL i64 F(weigh_vectors)(const F(Taps) *t, int taps, const REAL *x, i64 plane, REAL *y, i64 row, i64 channels, i64 count) { return 0; }
INL i64 F(tap_sum_vectors)(const F(Taps) *t, const REAL *x, i64 plane, const REAL *g, i64 row, i64 channels, i64 count, REAL sums[GRID_TAPS][GRID_BLOCK])
{
    return 0;
}
#endif

static void F(grid_forward)(const GridArgs *a, i64 begin, i64 end)
{
    i64 blocks = (a->positions + GRID_BLOCK - 1) / GRID_BLOCK, plane = a->size[0] * a->size[1] * a->size[2];
    F(Taps) t;
    for (i64 b = begin; b < end; b++) {
        i64 n = b / blocks, first = b % blocks * GRID_BLOCK, count = a->positions - first < GRID_BLOCK ? a->positions - first : GRID_BLOCK;
        const REAL *x = (const REAL *)a->x + n * a->channels * plane, *grid = (const REAL *)a->grid + (n * a->positions + first) * a->dims;
        REAL *y = (REAL *)a->y + n * a->channels * a->positions + first;
#ifdef GATHERED
        if (F(has_bilinear_vectors)(a)) {
            F(bilinear_forward)(a, grid, x, plane, y, count);
            continue;
        }
#endif
        int taps = F(taps_of)(a, grid, count, 0, &t);
        switch (taps) {
#define WEIGH(n) F(weigh)(&t, n, x, plane, y, a->positions, a->channels, F(weigh_vectors)(&t, n, x, plane, y, a->positions, a->channels, count), count)
        case 1: WEIGH(1); break;
        case 4: WEIGH(4); break;
        case 16: WEIGH(16); break;
        default: WEIGH(8);
#undef WEIGH
        }
    }
}

/* gx, over planes: additions to a pixel are in the order of positions. */
static void F(grid_backward_input)(const GridArgs *a, i64 begin, i64 end)
{
    i64 plane = a->size[0] * a->size[1] * a->size[2];
    F(Taps) t;
    for (i64 from = begin; from < end;) {
        i64 n = from / a->channels, to = (n + 1) * a->channels < end ? (n + 1) * a->channels : end;
        for (i64 first = 0; first < a->positions; first += GRID_BLOCK) {
            i64 count = a->positions - first < GRID_BLOCK ? a->positions - first : GRID_BLOCK;
            int taps = F(taps_of)(a, (const REAL *)a->grid + (n * a->positions + first) * a->dims, count, 0, &t);
            for (i64 c = from; c < to; c++) {
                const REAL *g = (const REAL *)a->gy + c * a->positions + first;
                REAL *x = (REAL *)a->gx + c * plane;
                for (i64 p = 0; p < count; p++)
                    for (int k = 0; k < taps; k++)
                        if (t.at[k][p] >= 0)
                            x[t.at[k][p]] += t.w[k][p] * g[p];
            }
        }
        from = to;
    }
}

static void F(grid_backward_grid)(const GridArgs *a, i64 begin, i64 end)
{
    i64 blocks = (a->positions + GRID_BLOCK - 1) / GRID_BLOCK, plane = a->size[0] * a->size[1] * a->size[2];
    F(Taps) t;
    if (a->mode == GRID_NEAREST)
        return; /* the caller's zeros */
    for (i64 b = begin; b < end; b++) {
        i64 n = b / blocks, first = b % blocks * GRID_BLOCK, count = a->positions - first < GRID_BLOCK ? a->positions - first : GRID_BLOCK;
        const REAL *x = (const REAL *)a->x + n * a->channels * plane, *g = (const REAL *)a->gy + n * a->channels * a->positions + first;
        const REAL *grid = (const REAL *)a->grid + (n * a->positions + first) * a->dims;
#ifdef GATHERED
        if (F(has_bilinear_vectors)(a)) {
            F(bilinear_backward_grid)(a, grid, x, plane, g, (REAL *)a->ggrid + (n * a->positions + first) * 2, count);
            continue;
        }
#endif
        REAL sums[GRID_TAPS][GRID_BLOCK] = {{0}}; /* over channels, of the gradient times what each tap read */
        int taps = F(taps_of)(a, grid, count, 1, &t);
        i64 done = taps == 4 ? F(tap_sum_vectors)(&t, x, plane, g, a->positions, a->channels, count, sums) : 0;
        F(tap_sums)(&t, taps, x, plane, g, a->positions, a->channels, done, count, sums);
        for (i64 p = 0; p < count; p++)
            for (int d = 0; d < a->dims; d++) {
                REAL sum = 0;
                for (int k = 0; k < taps; k++)
                    sum += t.dw[d][k][p] * sums[k][p];
                ((REAL *)a->ggrid)[(n * a->positions + first + p) * a->dims + a->dims - 1 - d] = sum;
            }
    }
}

#undef REAL
#undef F
#undef F_FLOOR
#undef F_NEARBY
