/* One line by its keys; included by sorting.c once for 4-byte and once for 8-byte keys (KEY, ELEMENT, F).
 *
 * A key is an unsigned integer that orders as the element does. An element carries its key, less the smallest, and its
 * position; equal keys keep the order of positions, so every result is unique, whatever the number of blocks. */

/* The order of up to 64 keys: element i goes to place rank[i], the number of elements before it. */
static void F(rank)(const KEY *keys, i64 n, ELEMENT *out)
{
    i64 e[64];
    i64 padded = (n + 15) & ~15;
    for (i64 i = 0; i < n; i++)
        e[i] = RANKED(keys[i], i);
    for (i64 i = n; i < padded; i++)
        e[i] = INT64_MAX;
    for (i64 base = 0; base < n; base += 16) {
        i64 r[16] = {0};
        for (i64 j = 0; j < n; j++) {
            i64 x = e[j];
            for (int q = 0; q < 16; q++)
                r[q] += RANKS_BEFORE(x, j, e[base + q], base + q);
        }
        for (i64 i = base; i < n && i < base + 16; i++)
            out[r[i - base]] = PACK(keys[i], i);
    }
}

/* The k-th of up to 64 keys. */
static KEY F(ranked)(const KEY *keys, i64 n, i64 k)
{
    ELEMENT order[64];
    F(rank)(keys, n, order);
    return KEY_OF(order[k]);
}

/* Whether a line is in order as it is. */
static int F(in_order)(const KEY *keys, i64 n)
{
    for (i64 i = 1; i < n; i += 32) {
        i64 stop = i + 32 < n ? i + 32 : n;
        int falls = 0;
        for (i64 j = i; j < stop; j++)
            falls |= keys[j] < keys[j - 1];
        if (falls)
            return 0;
    }
    return 1;
}

/* Merge two sorted runs of n elements from both ends at once; of equals, those of the first run come first. */
static void F(merge)(const ELEMENT *a, i64 n, ELEMENT *restrict out)
{
    const ELEMENT *b = a + n, *p = b - 1, *q = b + n - 1;
    ELEMENT *back = out + 2 * n - 1;
    for (i64 k = 0; k < n; k++) {
        int first = COMPARED(*a) <= COMPARED(*b), last = COMPARED(*p) > COMPARED(*q);
        *out++ = first ? *a : *b;
        a += first;
        b += !first;
        *back-- = last ? *p : *q;
        p -= last;
        q -= !last;
    }
}

/* Ranked blocks of equal size, padded with the largest key, merged in pairs; l->a is the result. */
static void F(merge_sort)(Line *l)
{
    i64 n = l->n, parts = 2;
    while ((n + parts - 1) / parts > 64)
        parts *= 2;
    i64 size = (n + parts - 1) / parts, total = size * parts;
    KEY *keys = (KEY *)l->keys;
    ELEMENT *a = (ELEMENT *)l->a, *b = (ELEMENT *)l->b;
    for (i64 i = n; i < total; i++)
        keys[i] = ~(KEY)0;
    for (i64 begin = 0; begin < total; begin += size) {
        F(rank)(keys + begin, size, a + begin);
        for (i64 i = begin; i < begin + size; i++)
            a[i] = PACK(KEY_OF(a[i]), AT(a[i]) + begin);
    }
    for (; size < total; size *= 2) {
        for (i64 begin = 0; begin < total; begin += 2 * size)
            F(merge)(a + begin, size, b + begin);
        ELEMENT *t = a;
        a = b;
        b = t;
    }
    l->a = (char *)a;
    l->b = (char *)b;
}

/* ---- radix passes over blocks ------------------------------------------------------------------------------------- */

static void F(pack_blocks)(void *context, i64 begin, i64 end)
{
    Line *l = context;
    const KEY *keys = (const KEY *)l->keys;
    ELEMENT *a = (ELEMENT *)l->a;
    KEY low = (KEY)l->low;
    i64 stop = block_begin(l, end);
    for (i64 i = block_begin(l, begin); i < stop; i++)
        a[i] = PACK((KEY)(keys[i] - low), i);
}

static void F(count_blocks)(void *context, i64 begin, i64 end)
{
    Line *l = context;
    const ELEMENT *a = (const ELEMENT *)l->a;
    int shift = l->shift;
    u32 mask = ((u32)1 << l->digit) - 1;
    for (i64 b = begin; b < end; b++) {
        u32 *h = l->counts + b * DIGITS;
        i64 stop = block_begin(l, b + 1);
        memset(h, 0, sizeof(u32) << l->digit);
        for (i64 i = block_begin(l, b); i < stop; i++)
            h[(u32)(KEY_OF(a[i]) >> shift) & mask]++;
    }
}

static void F(scatter_blocks)(void *context, i64 begin, i64 end)
{
    Line *l = context;
    const ELEMENT *a = (const ELEMENT *)l->a;
    ELEMENT *restrict out = (ELEMENT *)l->b;
    int shift = l->shift;
    u32 mask = ((u32)1 << l->digit) - 1;
    for (i64 b = begin; b < end; b++) {
        u32 *restrict h = l->counts + b * DIGITS;
        i64 stop = block_begin(l, b + 1);
        for (i64 i = block_begin(l, b); i < stop; i++) {
            ELEMENT e = a[i];
            out[h[(u32)(KEY_OF(e) >> shift) & mask]++] = e;
        }
    }
}

/* Sort the elements of l->a by `bits` bits of their keys, digit by digit from the lowest; l->a is the result. */
static void F(radix)(Line *l, int bits)
{
    int widest = l->n >= 4096 ? 11 : 8, passes = (bits + widest - 1) / widest;
    l->digit = passes ? (bits + passes - 1) / passes : 0;
    for (int p = 0; p < passes; p++) {
        u32 total = 0, constant = 0;
        l->shift = p * l->digit;
        over_blocks(l, F(count_blocks));
        for (u32 d = 0; d < (u32)1 << l->digit; d++) {
            u32 before = total;
            for (int b = 0; b < l->blocks; b++) {
                u32 count = l->counts[b * DIGITS + d];
                l->counts[b * DIGITS + d] = total;
                total += count;
            }
            constant |= total - before == (u32)l->n;
        }
        if (constant)
            continue;
        over_blocks(l, F(scatter_blocks));
        char *t = l->a;
        l->a = l->b;
        l->b = t;
    }
}

/* Sort a line whose keys, with their extremes, are known; l->a holds the elements. */
static void F(sort_line)(Line *l)
{
    if (l->n <= 64) {
        F(rank)((const KEY *)l->keys, l->n, (ELEMENT *)l->a);
        return;
    }
    if (l->n <= MERGED) {
        F(merge_sort)(l);
        return;
    }
    over_blocks(l, F(pack_blocks));
    F(radix)(l, bit_length(l->high - l->low));
}

/* ---- selection ---------------------------------------------------------------------------------------------------- */

/* The key of rank k (from 0): the bin that holds it is narrowed by 11 bits at a time. `spare` takes the bin's keys once they are `capacity` at most. */
static KEY F(select)(const KEY *keys, i64 n, i64 k, KEY low, KEY high, KEY *spare, i64 capacity, u32 *h)
{
    int bits = bit_length(high - low), whole = 1; /* whole: keys has those of this bin alone */
    while (bits) {
        int shift = bits > 11 ? bits - 11 : 0;
        u32 bin = 0;
        i64 m = 0;
        memset(h, 0, DIGITS * sizeof(u32));
        if (whole)
            for (i64 i = 0; i < n; i++)
                h[(KEY)(keys[i] - low) >> shift]++;
        else
            for (i64 i = 0; i < n; i++) {
                KEY x = keys[i] - low;
                if (x >> bits == 0)
                    h[x >> shift]++;
            }
        while (k >= h[bin])
            k -= h[bin++];
        low += (KEY)bin << shift;
        bits = shift;
        if (!bits || n == 1)
            break;
        if (keys != spare && h[bin] >= capacity) { /* and one place behind them, which each key that is no such one is written to */
            whole = 0;
            continue;
        }
        for (i64 i = 0; i < n; i++) { /* reads stay ahead of writes when keys is spare */
            KEY x = keys[i];
            spare[m] = x;
            m += (KEY)(x - low) >> shift == 0;
        }
        keys = spare;
        n = m;
        whole = 1;
    }
    return n == 1 && bits ? keys[0] : low;
}

/* Of the elements [0, m) keep the first k in order. */
static void F(compact)(Line *l, i64 m)
{
    Line part = *l;
    part.n = m;
    part.blocks = 1;
    if (m <= 64) {
        KEY keys[64];
        ELEMENT from[64], to[64], *a = (ELEMENT *)l->a;
        memcpy(from, a, m * sizeof(ELEMENT));
        for (i64 i = 0; i < m; i++)
            keys[i] = KEY_OF(from[i]);
        F(rank)(keys, m, to);
        for (i64 i = 0; i < m; i++)
            a[i] = from[AT(to[i])];
        return;
    }
    F(radix)(&part, 8 * (int)sizeof(KEY));
    l->a = part.a;
    l->b = part.b;
}

/* The k first elements of the order: candidates below the k-th so far gather, and are sorted when they are many. */
static void F(first_few)(Line *l, i64 k)
{
    const KEY *keys = (const KEY *)l->keys;
    i64 m = 0, capacity = k <= 16 ? 64 : k <= 32 ? 96 : 3 * k, begin = l->n < capacity ? l->n : capacity;
    for (; m < begin; m++)
        ((ELEMENT *)l->a)[m] = PACK(keys[m], m);
    F(compact)(l, m);
    m = k;
    KEY last = KEY_OF(((ELEMENT *)l->a)[k - 1]);
    for (i64 i = begin; i < l->n; i += 32) {
        i64 stop = i + 32 < l->n ? i + 32 : l->n;
        KEY least = ~(KEY)0;
        if (stop - i == 32)
            for (int j = 0; j < 32; j++)
                least = keys[i + j] < least ? keys[i + j] : least;
        else
            least = 0;
        if (least >= last)
            continue;
        if (m + 32 > capacity) {
            F(compact)(l, m);
            m = k;
            last = KEY_OF(((ELEMENT *)l->a)[k - 1]);
        }
        ELEMENT *a = (ELEMENT *)l->a;
        for (i64 j = i; j < stop; j++) {
            a[m] = PACK(keys[j], j);
            m += keys[j] < last;
        }
    }
    F(compact)(l, m);
}

#if WIDE_KEYS == 0
/* The k first elements of a short line, a pass for each: the least of what is left. */
static void F(first_by_passes)(Line *l, i64 k)
{
    const KEY *keys = (const KEY *)l->keys;
    ELEMENT left[SHORT_LINE], *a = (ELEMENT *)l->a;
    const i64 n = l->n;
    for (i64 i = 0; i < n; i++)
        left[i] = PACK(keys[i], i);
    for (i64 place = 0; place < k; place++) {
        ELEMENT least = ~(ELEMENT)0;
        for (i64 i = 0; i < n; i++)
            least = left[i] < least ? left[i] : least;
        a[place] = least;
        left[AT(least)] = ~(ELEMENT)0;
    }
}
#endif

/* The k first elements, by the key of the last of them; in the order of positions unless l->s->ordered. */
static void F(first_many)(Line *l, i64 k)
{
    const KEY *keys = (const KEY *)l->keys;
    ELEMENT *a = (ELEMENT *)l->a;
    KEY last = F(select)(keys, l->n, k - 1, (KEY)l->low, (KEY)l->high, (KEY *)l->b, l->n + 1, l->counts);
    i64 m = 0, equal = k;
    for (i64 i = 0; i < l->n; i++)
        equal -= keys[i] < last;
    for (i64 i = 0; m < k; i++) {
        int taken = keys[i] < last || (keys[i] == last && equal > 0);
        equal -= keys[i] == last;
        a[m] = PACK((KEY)(keys[i] - (KEY)l->low), i);
        m += taken;
    }
    if (l->s->ordered) {
        Line part = *l;
        part.n = k;
        part.blocks = 1;
        F(radix)(&part, bit_length(last - (KEY)l->low));
        l->a = part.a;
    }
}

static i64 F(position)(const KEY *keys, i64 n, KEY wanted)
{
    i64 i = 0;
    while (i + 1 < n && keys[i] != wanted)
        i++;
    return i;
}

/* A line with NaN in the order that std::sort gives it where no comparison with NaN holds: PyTorch takes the mode of that. The
 * guards (k > first, i < last) stand where std::sort trusts the comparison. */
static int F(precedes)(ELEMENT x, ELEMENT y, KEY nan) { return KEY_OF(x) < KEY_OF(y) && KEY_OF(y) != nan; }

static void F(insert)(ELEMENT *a, i64 k, KEY nan)
{
    ELEMENT v = a[k];
    for (; k > 0 && F(precedes)(v, a[k - 1], nan); k--)
        a[k] = a[k - 1];
    a[k] = v;
}

static void F(heap_sort)(ELEMENT *a, i64 n, KEY nan)
{
    for (i64 start = n / 2, end = n; end > 1;) {
        if (start)
            start--;
        else {
            ELEMENT v = a[--end];
            a[end] = a[0];
            a[0] = v;
        }
        for (i64 root = start, child; (child = 2 * root + 1) < end; root = child) {
            child += child + 1 < end && F(precedes)(a[child], a[child + 1], nan);
            if (!F(precedes)(a[root], a[child], nan))
                break;
            ELEMENT v = a[root];
            a[root] = a[child];
            a[child] = v;
        }
    }
}

#define SWAP(x, y)                                                                                                   \
    do {                                                                                                             \
        ELEMENT swapped = a[x];                                                                                      \
        a[x] = a[y];                                                                                                 \
        a[y] = swapped;                                                                                              \
    } while (0)

/* quicksort by the median of the second, middle and last element, down to pieces of 16 */
static void F(quick_sort)(ELEMENT *a, i64 n, int depth, KEY nan)
{
    while (n > 16) {
        if (depth-- == 0) {
            F(heap_sort)(a, n, nan);
            return;
        }
        i64 x = 1, y = n / 2, z = n - 1, median, i = 1, j = n;
        if (F(precedes)(a[x], a[y], nan))
            median = F(precedes)(a[y], a[z], nan) ? y : F(precedes)(a[x], a[z], nan) ? z : x;
        else
            median = F(precedes)(a[x], a[z], nan) ? x : F(precedes)(a[y], a[z], nan) ? z : y;
        SWAP(0, median);
        for (;; i++) {
            while (i < n - 1 && F(precedes)(a[i], a[0], nan))
                i++;
            for (j--; j > 0 && F(precedes)(a[0], a[j], nan);)
                j--;
            if (i >= j)
                break;
            SWAP(i, j);
        }
        F(quick_sort)(a + i, n - i, depth, nan);
        n = i;
    }
}

static void F(sort_with_nan)(ELEMENT *a, const KEY *keys, i64 n, KEY nan)
{
    for (i64 i = 0; i < n; i++)
        a[i] = PACK(keys[i], i);
    F(quick_sort)(a, n, 2 * (bit_length((u64)n) - 1), nan);
    for (i64 i = 1; i < n; i++) {
        if (i < 16 && F(precedes)(a[i], a[0], nan)) {
            ELEMENT v = a[i]; /* to the front, whatever NaN are on the way */
            memmove(a + 1, a, (size_t)i * sizeof *a);
            a[0] = v;
        } else
            F(insert)(a, i, nan);
    }
}
#undef SWAP

/* The most frequent element, the first of several in the order of the line's sort (the smallest where there is no NaN, which
 * equals nothing); the position of its last occurrence. */
static i64 F(mode)(Line *l)
{
    ELEMENT *a = (ELEMENT *)l->a;
    i64 best = 0, run = 0, at = 0;
    int has_nan = is_nan_key(l->s->dtype, l->high + l->subtracted);
    KEY nan = (KEY)l->high;
    if (has_nan)
        F(sort_with_nan)(a, (const KEY *)l->keys, l->n, nan);
    else {
        F(sort_line)(l);
        a = (ELEMENT *)l->a;
    }
    for (i64 i = 0; i < l->n; i++) {
        run = i && KEY_OF(a[i]) == KEY_OF(a[i - 1]) && !(has_nan && KEY_OF(a[i]) == nan) ? run + 1 : 1;
        if (run > best) {
            best = run;
            at = AT(a[i]);
        }
    }
    return at;
}

/* ---- results ------------------------------------------------------------------------------------------------------ */

#define EMIT(T)                                                                                                      \
    for (i64 i = first; i < stop; i++) {                                                                             \
        i64 at = AT(a[i]);                                                                                           \
        if (v)                                                                                                       \
            *(T *)(v + i * vs) = ((const T *)x)[at];                                                                 \
        if (to)                                                                                                      \
            *(i64 *)(to + i * is) = at;                                                                              \
    }

static void F(emit_blocks)(void *context, i64 begin, i64 end)
{
    Line *l = context;
    const ELEMENT *a = (const ELEMENT *)l->a;
    i64 keep = l->s->keep, first = block_begin(l, begin), stop = block_begin(l, end), vs = l->vs, is = l->is;
    const char *x = l->x;
    char *v = l->v, *to = l->i;
    stop = stop < keep ? stop : keep;
    switch (l->item) {
    case 1: EMIT(u8) break;
    case 2: EMIT(uint16_t) break;
    case 4: EMIT(u32) break;
    default: EMIT(u64)
    }
}

static void F(one_line)(Line *l)
{
    const SortArgs *s = l->s;
    const KEY *keys = (const KEY *)l->keys;
    i64 at, k = s->kth;
    switch (s->what) {
    case SORT_ALL:
        if (l->n > 64 && l->blocks == 1 && F(in_order)(keys, l->n))
            for (i64 i = 0; i < l->n; i++)
                ((ELEMENT *)l->a)[i] = PACK(keys[i], i);
        else
            F(sort_line)(l);
        over_blocks(l, F(emit_blocks));
        return;
    case SORT_FIRST:
#if WIDE_KEYS == 0
        if (s->keep && s->keep <= FEW_KEPT && l->n <= SHORT_LINE)
            F(first_by_passes)(l, s->keep);
        else
#endif
        if (s->keep <= 1024 && s->keep <= l->n / 8)
            F(first_few)(l, s->keep);
        else if (s->keep)
            l->n <= 64 ? F(sort_line)(l) : F(first_many)(l, s->keep);
        F(emit_blocks)(l, 0, 1);
        return;
    case SORT_MODE:
        at = F(mode)(l);
        break;
    default:
        if (s->what != SORT_KTH) {
            i64 numbers = l->n;
            if (is_nan_key(s->dtype, l->high + l->subtracted)) {
                KEY nan = (KEY)l->high;
                if (s->what == SORT_MEDIAN)
                    k = l->n;
                else
                    for (i64 i = 0; i < l->n; i++)
                        numbers -= keys[i] == nan;
            }
            if (k != l->n)
                k = numbers ? (numbers - 1) / 2 : 0;
        }
        /* k = n stands for the largest, which is NaN */
        at = F(position)(keys, l->n, k == l->n ? (KEY)l->high : l->n <= 64 ? F(ranked)(keys, l->n, k)
                                              : F(select)(keys, l->n, k, (KEY)l->low, (KEY)l->high, (KEY *)l->b, spare_keys(l->n), l->counts));
    }
    if (l->v)
        memcpy(l->v, l->x + at * l->item, l->item);
    if (l->i)
        *(i64 *)l->i = at;
}

#undef EMIT
#undef KEY
#undef WIDE_KEYS
#undef ELEMENT
#undef F
#undef PACK
#undef KEY_OF
#undef AT
#undef RANKED
#undef COMPARED
#undef RANKS_BEFORE
