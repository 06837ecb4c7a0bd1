/* The OpenMP pool: thread count, parallel loop, fork handler, and OpenBLAS's jobs on the same pool. Regions are split only while
   the cores are this process's own (shared_cores.h).
   Two pools that take turns on 2 cores cost 44 ms a pair (one GEMM, one loop); one pool 0.16 ms. Therefore the runtime is not
   linked but opened when threads are first used: the one that another package has loaded by then under whatever name, else
   the system's, else the copy that a wheel brings. Later packages find ours, where they need it by its soname. */
#ifndef TRT_PARALLEL_H
#define TRT_PARALLEL_H
#include <dlfcn.h>
#include "shared_cores.h"
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stddef.h>
#include <string.h>

#define TRT_OMP_SONAME "libgomp.so.1"

static int trt_threads = 1;          /* chosen by set_num_threads */
static int trt_forked = 0;           /* libgomp hangs in a forked child: one thread there */
static char trt_omp_bundled[PATH_MAX];

/* What gcc compiles `#pragma omp parallel` to, and OpenMP's questions; libomp and libiomp5 have them too. */
static struct {
  void (*parallel)(void (*body)(void*), void* context, unsigned threads, unsigned flags);
  void (*barrier)(void);
  int (*num_threads)(void), (*thread_num)(void), (*in_parallel)(void), (*dynamic)(void), (*thread_limit)(void), (*max_active_levels)(void);
} trt_omp;
static int trt_omp_searched = 0;
static pthread_once_t trt_omp_once = PTHREAD_ONCE_INIT;

static int trt_omp_take(void* library) {
  if (!library) return 0;
#define LOAD(field, symbol) if (!(*(void**)&trt_omp.field = dlsym(library, symbol))) return 0
  LOAD(num_threads, "omp_get_num_threads"); LOAD(thread_num, "omp_get_thread_num"); LOAD(in_parallel, "omp_in_parallel");
  LOAD(dynamic, "omp_get_dynamic"); LOAD(thread_limit, "omp_get_thread_limit"); LOAD(max_active_levels, "omp_get_max_active_levels");
  LOAD(parallel, "GOMP_parallel"); LOAD(barrier, "GOMP_barrier");
#undef LOAD
  return 1;
}

static int trt_omp_loaded(struct dl_phdr_info* info, size_t size, void* taken) {
  (void)size;
  const char* name = strrchr(info->dlpi_name, '/');
  if (!name || (strncmp(name, "/libgomp", 8) && strncmp(name, "/libomp", 7) && strncmp(name, "/libiomp", 8))) return 0;
  return *(int*)taken = trt_omp_take(dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD));
}

static void trt_omp_search(void) {
  int taken = trt_omp_take(dlopen(TRT_OMP_SONAME, RTLD_NOW | RTLD_NOLOAD));
  if (!taken) dl_iterate_phdr(trt_omp_loaded, &taken);
  /* The system's before ours: it is at least as new as whatever the system's own libraries need. */
  if (!taken) taken = trt_omp_take(dlopen(TRT_OMP_SONAME, RTLD_NOW));
  if (!taken) taken = trt_omp_take(dlopen(trt_omp_bundled, RTLD_NOW));
  __atomic_store_n(&trt_omp_searched, 1, __ATOMIC_RELEASE);
}

/* Whether there is a runtime; opens it at the first call. */
static inline int trt_omp_open(void) {
  if (!__atomic_load_n(&trt_omp_searched, __ATOMIC_ACQUIRE)) pthread_once(&trt_omp_once, trt_omp_search);
  return trt_omp.parallel != NULL;
}

static void trt_after_fork(void) { trt_forked = 1; }

/* NULL, or why no runtime will be found. `bundled`: the path at which a wheel has its copy. */
static const char* trt_parallel_init(int threads, const char* bundled, int exists) {
  trt_threads = threads;
  strncpy(trt_omp_bundled, bundled, sizeof trt_omp_bundled - 1);
  pthread_atfork(NULL, NULL, trt_after_fork);
  if (exists) return NULL;
  void* library = dlopen(TRT_OMP_SONAME, RTLD_LAZY);
  if (!library) return dlerror();
  dlclose(library);
  return NULL;
}

/* The file of the runtime in use. */
static const char* trt_omp_path(void) {
  Dl_info info;
  return trt_omp_open() && dladdr((void*)trt_omp.parallel, &info) ? info.dli_fname : NULL;
}

static inline int trt_usable_threads(void) {
  return (trt_forked || !trt_omp_open() || trt_omp.in_parallel()) ? 1 : trt_threads;
}

static inline int trt_in_parallel(void) { return !trt_forked && trt_omp_open() && trt_omp.in_parallel(); }

typedef void (*trt_task)(void* context, int64_t begin, int64_t end);
typedef struct { trt_task task; int64_t n, piece; } trt_loop;
typedef struct { trt_loop before, loop; void* context; trt_region* region; } trt_loops;      /* before: its task is NULL where there is one loop; region: NULL where nobody watches */

static void trt_run_pieces(const trt_loop* l, void* context) {
  int64_t step = (int64_t)trt_omp.num_threads() * l->piece;
  for (int64_t begin = trt_omp.thread_num() * l->piece; begin < l->n; begin += step)
    l->task(context, begin, begin + l->piece < l->n ? begin + l->piece : l->n);
}

static void trt_loops_body(void* p) {
  const trt_loops l = *(const trt_loops*)p;
  int64_t began = l.region ? trt_thread_ns() : 0;
  if (l.before.task) {
    trt_run_pieces(&l.before, l.context);
    trt_omp.barrier();
  }
  trt_run_pieces(&l.loop, l.context);
  if (l.region) __atomic_add_fetch(&l.region->work, trt_thread_ns() - began, __ATOMIC_RELAXED);
}

static void trt_run_loops(trt_loops* loops, int threads) {
  trt_region region = {0};
  loops->region = trt_watch_region() ? &region : NULL;
  int64_t began = loops->region ? trt_now_ns() : 0;
  trt_omp.parallel(trt_loops_body, loops, threads, 0);
  if (!loops->region) return;
  int64_t wall = trt_now_ns() - began;
  trt_judge_region(wall, wall - region.work);
}

/* How many threads [0, n) is worth at `grain` each. */
static int trt_worthy_threads(int64_t n, int64_t grain) {
  int threads = trt_usable_threads();
  if (trt_cores.divisor) grain /= trt_cores.divisor;
  if (grain < 1) grain = 1;
  if (n < 2 * grain || threads == 1 || trt_cores_shared()) return 1;
  return threads > n / grain ? (int)(n / grain) : threads;
}

/* Split [0, n) in pieces that are multiples of `align`, at least `grain` long, one per thread. */
static void trt_parallel_for(int64_t n, int64_t grain, int64_t align, trt_task task, void* context) {
  int threads = trt_worthy_threads(n, grain);
  if (threads == 1) { if (n > 0) task(context, 0, n); return; }
  int64_t piece = (n + threads - 1) / threads;
  trt_loops loops = {.loop = {task, n, (piece + align - 1) / align * align}, .context = context};
  trt_run_loops(&loops, threads);
}

/* [0, n) of `task` by as many threads as it is worth, after [0, n_before) of `before` by the same ones: what another region would cost
   exceeds the work of packing a small operand. */
static void trt_parallel_after(int64_t n_before, trt_task before, int64_t n, int64_t grain, trt_task task, void* context) {
  int threads = trt_worthy_threads(n, grain);
  if (threads == 1) {
    if (n_before > 0) before(context, 0, n_before);
    if (n > 0) task(context, 0, n);
    return;
  }
  trt_loops loops = {{before, n_before, (n_before + threads - 1) / threads}, {task, n, (n + threads - 1) / threads}, .context = context};
  trt_run_loops(&loops, threads);
}

/* OpenBLAS hands over jobs that wait for each other: all of them must run at once or none. The caller (blas.pyx) sets
   one BLAS thread where fewer threads than jobs would be granted. */
typedef void (*trt_blas_job)(int thread, void* data, int arg);
typedef struct { trt_blas_job job; char* data; size_t size; int count, arg; int64_t began; trt_region* region; } trt_blas_jobs;

static void trt_blas_body(void* p) {
  const trt_blas_jobs b = *(const trt_blas_jobs*)p;
  int64_t worked = b.region ? trt_thread_ns() : 0;
  for (int i = trt_omp.thread_num(); i < b.count; i += trt_omp.num_threads()) b.job(i, b.data + b.size * i, b.arg);
  if (!b.region || trt_omp.thread_num() == 0) return;
  worked = trt_thread_ns() - worked;
  /* Jobs spin while they wait for each other, so their processor time says nothing; that a thread had no processor does. */
  int64_t idle = trt_now_ns() - b.began - worked, most = __atomic_load_n(&b.region->idle, __ATOMIC_RELAXED);
  while (idle > most && !__atomic_compare_exchange_n(&b.region->idle, &most, idle, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

static void trt_blas_run(int sync, trt_blas_job job, int count, size_t size, void* data, int arg) {
  (void)sync;
  trt_region region = {0};
  trt_blas_jobs jobs = {job, data, size, count, arg, trt_now_ns(), trt_watch_region() ? &region : NULL};
  trt_omp.parallel(trt_blas_body, &jobs, count, 0);
  if (!jobs.region) return;
  int64_t wall = trt_now_ns() - jobs.began;
  trt_judge_region(wall, 2 * region.idle - wall);
}

/* How many threads a region asking for `wanted` gets for certain. */
static int trt_granted_threads(int wanted) {
  if (trt_forked || !trt_omp_open() || trt_omp.in_parallel() || trt_omp.dynamic() || trt_omp.max_active_levels() < 1 || trt_cores_shared()) return 1;
  int limit = trt_omp.thread_limit();
  return wanted < limit ? wanted : limit;
}
#endif
