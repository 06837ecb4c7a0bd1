/* For LD_PRELOAD (tools/scratch.py): counts the bytes of the C heap that are in use, and the most that were since scratch_reset(). With
   TENSORRT_LITE_CPU_ALLOCATOR=system tensors of the package are among them, as PyTorch's are. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
extern void __libc_free(void*);

static long live, peak;

static void* counted(void* p) {
  if (p) {
    long now = __atomic_add_fetch(&live, (long)malloc_usable_size(p), __ATOMIC_RELAXED), most = __atomic_load_n(&peak, __ATOMIC_RELAXED);
    while (now > most && !__atomic_compare_exchange_n(&peak, &most, now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  }
  return p;
}
static void gone(void* p) {
  if (p) __atomic_sub_fetch(&live, (long)malloc_usable_size(p), __ATOMIC_RELAXED);
}

void* malloc(size_t n) { return counted(__libc_malloc(n)); }
void* calloc(size_t n, size_t size) { return counted(__libc_calloc(n, size)); }
void free(void* p) {
  gone(p);
  __libc_free(p);
}
void* realloc(void* p, size_t n) {
  const long before = p ? (long)malloc_usable_size(p) : 0;
  void* q = __libc_realloc(p, n);
  if (!q && n) return NULL; /* p is as it was */
  __atomic_sub_fetch(&live, before, __ATOMIC_RELAXED);
  return counted(q);
}
void* memalign(size_t alignment, size_t n) { return counted(__libc_memalign(alignment, n)); }
void* aligned_alloc(size_t alignment, size_t n) { return memalign(alignment, n); }
int posix_memalign(void** p, size_t alignment, size_t n) {
  void* q = memalign(alignment, n);
  if (!q) return ENOMEM;
  *p = q;
  return 0;
}

long scratch_live(void) { return __atomic_load_n(&live, __ATOMIC_RELAXED); }
long scratch_peak(void) { return __atomic_load_n(&peak, __ATOMIC_RELAXED); }
void scratch_reset(void) { __atomic_store_n(&peak, scratch_live(), __ATOMIC_RELAXED); }
