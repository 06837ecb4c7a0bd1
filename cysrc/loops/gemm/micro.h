/* One tile of C by a panel of A and a panel of B, in registers. Included once per kernel with
     KERNEL      the name its functions end with
     SUM         f32 or f64, the type of the sums
     OPERAND     the type whose vector holds units of B
     BROADCAST(p), DOT(sum, x, b)   a unit of A in all lanes, and a step of the sums; both as vectors
     TARGET      the attribute of functions that use them
     STORE_RESULT(to, v)   optional: a vector of sums as elements of C
     BY_STEPS    optional: bodies for a panel of A by steps of the depth as well
     IN_PLACE    optional: bodies for rows of A where they lie as well
   A: lines of 64 bytes, [depth / LINE][height][LINE units], or by steps, [depth][height in whole vectors], or rows of adjacent units `a_row` bytes
   apart; B: [depth][nr], padded with zeros in both directions. The body's numbers of rows and vectors are constants: lower panels run bodies of their own, and rows beyond the last
   are of zeros. */
#define MICRO(name) JOIN_EXPANDED(JOIN_EXPANDED(name, _), KERNEL)
#define SUMS JOIN_EXPANDED(v, SUM)
#define SUMS_U JOIN_EXPANDED(JOIN_EXPANDED(v, SUM), _u)

KERNEL_INLINE TARGET void MICRO(body)(const gemm_tile* t, const int R, const int V, const int layout) {
  enum { W = VECTOR_BYTES / sizeof(SUM), LINE = 64 / sizeof(OPERAND) };
  const int step = (R * sizeof(OPERAND) + VECTOR_BYTES - 1) / VECTOR_BYTES * VECTOR_BYTES / sizeof(OPERAND);
  typedef OPERAND operands __attribute__((vector_size(VECTOR_BYTES), aligned(64), may_alias));
  SUMS sum[GEMM_HEIGHT][2];
  const int by_steps = layout == PANEL_BY_STEPS, in_place = layout == PANEL_IN_PLACE;
  const int64_t a_row = t->a_row / (int64_t)sizeof(OPERAND), last_row = (t->rows < R ? t->rows - 1 : R - 1) * a_row; /* in place: a row beyond the last is the last again */
  const OPERAND* a = (const OPERAND*)t->a;
  const operands* b = (const operands*)t->b;
  UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) sum[r][v] = (SUMS){0};
  /* the tile's lines of C are on their way while it is computed */
  if (t->partial) UNROLL for (int r = 0; r < R; r++) {
    __builtin_prefetch(t->partial + r * t->partial_row, 1);
    if (V * VECTOR_BYTES > 64) __builtin_prefetch(t->partial + r * t->partial_row + 64, 1);
  }
  const char* ahead = t->ahead;
  const int64_t ahead_once = by_steps && t->ahead_rows ? (t->ahead_rows * LINE + t->units - 1) / t->units : 0;
  for (int64_t left = t->units; left > 0; left -= LINE) {
    const int64_t steps = left < LINE ? left : LINE;
    for (int64_t i = 0; i < ahead_once; i++, ahead += t->ahead_row)
      for (int64_t j = 0; j < t->ahead_bytes + 63; j += 64) __builtin_prefetch(ahead + j, 0, 2);
    _Pragma("GCC unroll 2") for (int64_t p = 0; p < steps; p++) {
      operands b0 = b[0], b1 = b[V - 1];
      __builtin_prefetch((const char*)b + PANEL_AHEAD);
      if (V * VECTOR_BYTES > 64) __builtin_prefetch((const char*)b + PANEL_AHEAD + 64);
      UNROLL for (int r = 0; r < R; r++) {
        operands x = BROADCAST(a[by_steps ? p * step + r : in_place ? (r == R - 1 ? last_row : r * a_row) + p : r * LINE + p]);
        sum[r][0] = DOT(sum[r][0], x, b0);
        if (V == 2) sum[r][1] = DOT(sum[r][1], x, b1);
      }
      b += 2;
    }
    a += (by_steps ? step : in_place ? 1 : R) * LINE;
  }
  if (t->whole) {
    UNROLL for (int r = 0; r < R; r++) {
      if (r >= t->rows) break;
      SUMS_U* to = (SUMS_U*)(t->partial + r * t->partial_row);
      UNROLL for (int v = 0; v < V; v++) to[v] = t->first ? sum[r][v] : (SUMS)to[v] + sum[r][v];
    }
    return;
  }
#ifdef STORE_RESULT
  if (t->direct) {
    UNROLL for (int r = 0; r < R; r++) {
      if (r >= t->rows) break;
      const SUMS_U* partial = (const SUMS_U*)(t->partial + r * t->partial_row);
      UNROLL for (int v = 0; v < V; v++) STORE_RESULT(t->direct + r * t->direct_row + v * W * (int)sizeof(SUM) / 2, t->first ? sum[r][v] : (SUMS)partial[v] + sum[r][v]);
    }
    return;
  }
#endif
  SUM spill[GEMM_HEIGHT][2 * W] __attribute__((aligned(64)));
  UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) *(SUMS*)&spill[r][v * W] = sum[r][v];
  t->finish(t, (const char*)spill, sizeof spill[0]);
}

#define MICRO_BODIES(R, BY, layout)                                                                        \
  KERNEL_ONCE TARGET void MICRO(one_##R##BY)(const gemm_tile* t) { MICRO(body)(t, R, 1, layout); }     \
  KERNEL_ONCE TARGET void MICRO(two_##R##BY)(const gemm_tile* t) { MICRO(body)(t, R, 2, layout); }
#define MICRO_BODY(R) MICRO_BODIES(R, , PANEL_BY_LINES)
#define MICRO_ENTRY(R) [R / 2] = {MICRO(one_##R), MICRO(two_##R)},
GEMM_HEIGHTS(MICRO_BODY)
static const gemm_bodies MICRO(bodies)[GEMM_HEIGHT / 2 + 1] = {GEMM_HEIGHTS(MICRO_ENTRY)};
#undef MICRO_BODY
#undef MICRO_ENTRY
#ifdef BY_STEPS
#define MICRO_BODY(R) MICRO_BODIES(R, _by_steps, PANEL_BY_STEPS)
#define MICRO_ENTRY(R) [R / 2] = {MICRO(one_##R##_by_steps), MICRO(two_##R##_by_steps)},
GEMM_HEIGHTS(MICRO_BODY)
static const gemm_bodies MICRO(bodies_by_steps)[GEMM_HEIGHT / 2 + 1] = {GEMM_HEIGHTS(MICRO_ENTRY)};
#undef MICRO_BODY
#undef MICRO_ENTRY
#undef BY_STEPS
#endif
#ifdef IN_PLACE
#define MICRO_BODY(R) MICRO_BODIES(R, _in_place, PANEL_IN_PLACE)
#define MICRO_ENTRY(R) [R / 2] = {MICRO(one_##R##_in_place), MICRO(two_##R##_in_place)},
GEMM_HEIGHTS(MICRO_BODY)
static const gemm_bodies MICRO(bodies_in_place)[GEMM_HEIGHT / 2 + 1] = {GEMM_HEIGHTS(MICRO_ENTRY)};
#undef MICRO_BODY
#undef MICRO_ENTRY
#undef IN_PLACE
#endif
#undef MICRO_BODIES
#undef MICRO
#undef SUMS
#undef SUMS_U
#undef KERNEL
#undef SUM
#undef OPERAND
#undef BROADCAST
#undef DOT
#undef TARGET
#undef STORE_RESULT
