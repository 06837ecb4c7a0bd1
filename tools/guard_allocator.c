/* For LD_PRELOAD (tools/guard.py): aligned_alloc, with which the package allocates tensors, puts each block at the very end of its
   last page, before a page that can't be touched, and a block that was freed can't be touched again. An overrun of one byte and a
   use after free fault in the release build, in every thread, at the instruction that does it; an underrun is found when the block
   is freed. Addresses are never used twice, so that nothing hides in a block's successor. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, FILL = 0xAB };
#define ARENA ((size_t)1 << 43)       /* address space, not memory */
#define GUARDED ((size_t)4 << 20)     /* larger blocks are libc's: their pages would fill the table of mappings */
#define MOST ((size_t)2 << 30)        /* more is refused as malloc does when memory is exhausted */

extern void __libc_free(void*);
extern void* __libc_memalign(size_t, size_t);

static char* arena;
static size_t used;
static size_t* sizes;                 /* of the block whose first page is this one of the arena */

__attribute__((constructor)) static void reserve(void) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char* pages = mmap(NULL, ARENA, PROT_NONE, flags, -1, 0);
  void* table = mmap(NULL, ARENA / PAGE * sizeof(size_t), PROT_READ | PROT_WRITE, flags, -1, 0);
  if (pages == MAP_FAILED || table == MAP_FAILED) {
    fprintf(stderr, "guard: no address space\n");
    _exit(98);
  }
  sizes = table;
  arena = pages;
}

void* aligned_alloc(size_t alignment, size_t n) {
  if (n > MOST) return NULL;
  if (!arena || n == 0 || n > GUARDED) return __libc_memalign(alignment, n);
  size_t pages = (n + PAGE - 1) / PAGE * PAGE, offset = __atomic_fetch_add(&used, pages + PAGE, __ATOMIC_RELAXED);
  /* the page behind the block belongs to nobody; the kernel's table of mappings may be full */
  if (offset + pages + PAGE > ARENA || mprotect(arena + offset, pages, PROT_READ | PROT_WRITE)) return __libc_memalign(alignment, n);
  sizes[offset / PAGE] = n;
  memset(arena + offset, FILL, pages);
  /* not aligned: tensors over foreign memory need not be, either, and a gap would hide short overruns */
  return arena + offset + pages - n;
}

void free(void* p) {
  if (!arena || (char*)p < arena || (char*)p >= arena + ARENA) {
    __libc_free(p);
    return;
  }
  char* first = (char*)((uintptr_t)p & ~(uintptr_t)(PAGE - 1));
  size_t n = sizes[(first - arena) / PAGE], pages = (n + PAGE - 1) / PAGE * PAGE;
  if (n == 0 || (char*)p != first + pages - n) {
    fprintf(stderr, "guard: free of %p, which is no block\n", p);
    abort();
  }
  for (char* before = first; before < (char*)p; before++)
    if (*(unsigned char*)before != FILL) {
      fprintf(stderr, "guard: something wrote %zu bytes before a block of %zu\n", (size_t)((char*)p - before), n);
      abort();
    }
  sizes[(first - arena) / PAGE] = 0;
  mmap(first, pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
