/* OpenBLAS behind function pointers: typed calls by element type, one lock, the thread count of the running call.
   The library keeps its thread count in one global, and libgomp keeps one pool per calling thread; so products of
   different Python threads take turns. Included by blas.pyx alone. */
#ifndef TRT_BLAS_H
#define TRT_BLAS_H
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <stdint.h>
#include <stddef.h>
#include <limits.h>
#include "locks.h"

enum { TRT_F32 = 8, TRT_F64 = 9, TRT_C64 = 10, TRT_C128 = 11 };

typedef void (*trt_sgemm_t)(int, int, int, int, int, int, float, const void*, int, const void*, int, float, void*, int);
typedef void (*trt_dgemm_t)(int, int, int, int, int, int, double, const void*, int, const void*, int, double, void*, int);
typedef void (*trt_zgemm_t)(int, int, int, int, int, int, const void*, const void*, int, const void*, int, const void*, void*, int);

static struct {
  trt_sgemm_t sgemm; trt_dgemm_t dgemm; trt_zgemm_t cgemm, zgemm;
  void (*set_threads)(int);
  void (*set_callback)(void*);
  const char* (*config)(void);
} trt_blas;
static int trt_blas_threads = 0;                 /* what the library was told last; 0: nothing yet */
static pthread_mutex_t trt_blas_lock = PTHREAD_MUTEX_INITIALIZER;

static void trt_blas_prepare_fork(void) { pthread_mutex_lock(&trt_blas_lock); }
static void trt_blas_parent(void) { pthread_mutex_unlock(&trt_blas_lock); }
/* The library ends its pool and frees its memory in a destructor, and waits for ever for a thread that a product starts meanwhile.
   Handlers of exit() run before destructors: this one waits for the running product and keeps the library, so that daemon threads
   wait for it until the process is gone. */
static void trt_blas_at_exit(void) { pthread_mutex_lock(&trt_blas_lock); }
static void trt_blas_child(void) { trt_blas_threads = 0; pthread_mutex_unlock(&trt_blas_lock); }

/* Where memory runs out, the library ends the process: exit(1) for its buffers, a signal for its threads. So what it is about to map is looked for first, and it maps all of
   that at once: its file, a thread a core, a buffer for each thread of a product and its caller. Later products of as many threads ask for nothing more. */
#define TRT_BLAS_BUFFER ((size_t)32 << 20)       /* BUFFER_SIZE of OpenBLAS on x86-64 and its kind, which is the largest */
static const char TRT_BLAS_NO_MEMORY[] = "no memory";

static int trt_blas_fits_memory(size_t bytes) {
  void* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return 0;
  munmap(p, bytes);
  return 1;
}

static size_t trt_blas_stack(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > (64 << 20) ? (size_t)8 << 20 : (size_t)limit.rlim_cur + 65536;
}

static int trt_blas_cores(void) {
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) ? 64 : CPU_COUNT(&set);
  return n < 64 ? n : 64;
}

/* NULL, or the name of what is missing. Needs the GIL or `trt_blas_opening`; several threads may have looked for the path before the first comes here,
   and a handler that is registered twice would wait for the lock that it has. */
static const char* trt_blas_open_alone(const char* path, void* runner) {
  static int opened = 0;
  if (opened) return NULL;
  /* The library reads its environment when it is loaded. Its own threads never work here, but each spins for some 30 ms when it is made,
     on a core that the pool's threads need; 4 is the shortest time that it takes. */
  int unset = !getenv("OPENBLAS_THREAD_TIMEOUT");
  if (unset) setenv("OPENBLAS_THREAD_TIMEOUT", "4", 0);
  struct stat file;
  if (stat(path, &file) == 0 && !trt_blas_fits_memory(2 * (size_t)file.st_size + trt_blas_cores() * trt_blas_stack() + TRT_BLAS_BUFFER)) return TRT_BLAS_NO_MEMORY;
  void* h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (unset) unsetenv("OPENBLAS_THREAD_TIMEOUT");
  if (!h) return dlerror();
#define LOAD(field, symbol) if (!(*(void**)&trt_blas.field = dlsym(h, symbol))) return symbol
  LOAD(sgemm, "scipy_cblas_sgemm"); LOAD(dgemm, "scipy_cblas_dgemm"); LOAD(cgemm, "scipy_cblas_cgemm"); LOAD(zgemm, "scipy_cblas_zgemm");
  LOAD(config, "scipy_openblas_get_config"); LOAD(set_callback, "scipy_openblas_set_threads_callback_function");
  LOAD(set_threads, "scipy_openblas_set_num_threads");
#undef LOAD
  trt_blas.set_callback(runner);
  /* Forking waits until no product runs: the child could not finish one, nor give the lock back. */
  pthread_atfork(trt_blas_prepare_fork, trt_blas_parent, trt_blas_child);
  atexit(trt_blas_at_exit);
  opened = 1;
  return NULL;
}

static void trt_blas_begin(int threads);
static void trt_blas_end(void);

static int trt_blas_ready = 0;                   /* threads that have their buffers */

/* Products inside of a parallel region have a buffer each. One that would be the first to need another looks whether there is memory for it, alone, and waits for
   another product's end where there is none. */
static int trt_blas_active = 0, trt_blas_buffers = 1;
static pthread_mutex_t trt_blas_growth = PTHREAD_MUTEX_INITIALIZER;

static int trt_blas_enter(void) {
  for (;;) {
    int n = __atomic_load_n(&trt_blas_active, __ATOMIC_RELAXED);
    if (n < __atomic_load_n(&trt_blas_buffers, __ATOMIC_RELAXED)) {
      if (__atomic_compare_exchange_n(&trt_blas_active, &n, n + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return 0;
      continue;
    }
    if (pthread_mutex_trylock(&trt_blas_growth) == 0) {
      if (trt_blas_fits_memory(TRT_BLAS_BUFFER + ((size_t)1 << 20))) {
        __atomic_add_fetch(&trt_blas_active, 1, __ATOMIC_ACQUIRE);
        return 1;
      }
      pthread_mutex_unlock(&trt_blas_growth);
    }
    sched_yield();
  }
}

static void trt_blas_leave(int grew) {
  if (grew) {
    __atomic_add_fetch(&trt_blas_buffers, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&trt_blas_growth);
  }
  __atomic_sub_fetch(&trt_blas_active, 1, __ATOMIC_RELEASE);
}

/* The buffers of products of so many threads: one runs. Alone under `trt_blas_opening`. */
static const char* trt_blas_reserve_alone(int threads) {
  if (threads > 64) threads = 64;
  if (threads <= trt_blas_ready) return NULL;
  const size_t side = 64, n = side * threads;
  const int grown = threads - trt_blas_ready;
  if (!trt_blas_fits_memory((grown + 2) * (TRT_BLAS_BUFFER + trt_blas_stack()))) return TRT_BLAS_NO_MEMORY;
  double* zeros = calloc(2 * n * side + side * side, sizeof(double));
  if (!zeros) return TRT_BLAS_NO_MEMORY;
  trt_blas_begin(threads);
  trt_blas.dgemm(101, 111, 111, (int)n, (int)side, (int)side, 1, zeros, (int)side, zeros + n * side, (int)side, 0, zeros + n * side + side * side, (int)side);
  trt_blas_end();
  free(zeros);
  trt_blas_ready = threads;
  return NULL;
}

static trt_mutex trt_blas_opening;
static const char* trt_blas_open(const char* path, void* runner, int threads) {
  trt_mutex_lock(&trt_blas_opening);
  const char* missing = trt_blas_open_alone(path, runner);
  if (!missing) missing = trt_blas_reserve_alone(threads);
  trt_mutex_unlock(&trt_blas_opening);
  return missing;
}

static void trt_blas_begin(int threads) {
  pthread_mutex_lock(&trt_blas_lock);
  if (threads != trt_blas_threads) { trt_blas.set_threads(threads); trt_blas_threads = threads; }
}
static void trt_blas_end(void) { pthread_mutex_unlock(&trt_blas_lock); }

/* op: 0 as is, 1 transposed, 2 conjugate transposed (CblasNoTrans = 111 ...); row-major. */
static void trt_blas_gemm(int dtype, int ta, int tb, int m, int n, int k, const double* alpha, const void* a, int lda, const void* b, int ldb,
                          const double* beta, void* c, int ldc) {
  float fa[2], fb[2];
  const int grew = trt_blas_enter();
  switch (dtype) {
    case TRT_F32: trt_blas.sgemm(101, 111 + ta, 111 + tb, m, n, k, (float)alpha[0], a, lda, b, ldb, (float)beta[0], c, ldc); break;
    case TRT_F64: trt_blas.dgemm(101, 111 + ta, 111 + tb, m, n, k, alpha[0], a, lda, b, ldb, beta[0], c, ldc); break;
    case TRT_C64:
      fa[0] = (float)alpha[0]; fa[1] = (float)alpha[1]; fb[0] = (float)beta[0]; fb[1] = (float)beta[1];
      trt_blas.cgemm(101, 111 + ta, 111 + tb, m, n, k, fa, a, lda, b, ldb, fb, c, ldc); break;
    case TRT_C128: trt_blas.zgemm(101, 111 + ta, 111 + tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); break;
  }
  trt_blas_leave(grew);
}
#endif
