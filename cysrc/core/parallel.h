/* The OpenMP pool: thread count, parallel loop, fork handler, and OpenBLAS's jobs on the same pool.
   Two pools that take turns on 2 cores cost 44 ms a pair (one GEMM, one loop); one pool 0.16 ms. */
#ifndef TRT_PARALLEL_H
#define TRT_PARALLEL_H
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stddef.h>

static int trt_threads = 1;          /* chosen by set_num_threads */
static int trt_forked = 0;           /* libgomp hangs in a forked child: one thread there */

static void trt_after_fork(void) { trt_forked = 1; }

static void trt_parallel_init(void) {
  trt_threads = omp_get_max_threads();
  pthread_atfork(NULL, NULL, trt_after_fork);
}

static inline int trt_usable_threads(void) {
  return (trt_forked || omp_in_parallel()) ? 1 : trt_threads;
}

typedef void (*trt_task)(void* context, int64_t begin, int64_t end);

/* Split [0, n) in pieces that are multiples of `align`, at least `grain` long, one per thread. */
static void trt_parallel_for(int64_t n, int64_t grain, int64_t align, trt_task task, void* context) {
  int threads = trt_usable_threads();
  if (grain < 1) grain = 1;
  if (n < 2 * grain || threads == 1) { if (n > 0) task(context, 0, n); return; }
  if (threads > n / grain) threads = (int)(n / grain);
  int64_t piece = (n + threads - 1) / threads;
  piece = (piece + align - 1) / align * align;
  #pragma omp parallel num_threads(threads)
  {
    int64_t step = (int64_t)omp_get_num_threads() * piece;
    for (int64_t begin = omp_get_thread_num() * piece; begin < n; begin += step)
      task(context, begin, begin + piece < n ? begin + piece : n);
  }
}

/* OpenBLAS hands over jobs that wait for each other: all of them must run at once or none. The caller (blas.pyx) sets
   one BLAS thread where fewer threads than jobs would be granted. */
typedef void (*trt_blas_job)(int thread, void* data, int arg);
static void trt_blas_run(int sync, trt_blas_job job, int count, size_t size, void* data, int arg) {
  (void)sync;
  #pragma omp parallel for schedule(static, 1) num_threads(count)
  for (int i = 0; i < count; i++) job(i, (char*)data + size * i, arg);
}

/* How many threads a region asking for `wanted` gets for certain. */
static int trt_granted_threads(int wanted) {
  int limit = omp_get_thread_limit();
  if (trt_forked || omp_in_parallel() || omp_get_dynamic() || omp_get_max_active_levels() < 1) return 1;
  return wanted < limit ? wanted : limit;
}
#endif
