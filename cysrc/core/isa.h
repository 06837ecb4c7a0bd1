/* Instruction sets. Loops are compiled once per set; what they export is called NAME_base, NAME_avx2, NAME_avx512 (ISA_NAME in their
   source). A module declares a table or a function of loops by one of the macros below and gets the one of the highest set that this
   process uses and that was compiled.

   Which sets a source is compiled for is the builder's choice (tools/build_core.py): all, those that it lists in its head, or with
   TENSORRT_LITE_NATIVE=1 the building machine's own alone. The references are weak, so a set that was left out is a null address, and
   the C of a module does not depend on the choice. isa.pyx refuses at import what cannot run here. */
#ifndef TRT_ISA_H
#define TRT_ISA_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ISA_BASE 0
#define ISA_AVX2 1
#define ISA_AVX512 2
#define ISA_COUNT 3

#define ISA_JOIN_(name, isa) name##_##isa
#define ISA_JOIN(name, isa) ISA_JOIN_(name, isa)
#define ISA_NAME(name) ISA_JOIN(name, ISA)      /* -DISA=avx2 */
/* Whether a row of a table that gains nothing beyond `set` is compiled here: in a build for one set alone, which passes no ISA_LEVEL,
   all are. */
#ifdef ISA_LEVEL
#define ISA_HAS(set) (ISA_LEVEL <= (set))
#else
#define ISA_HAS(set) 1
#endif

/* The highest set of this processor. A set asks for all that its loops are compiled with (x86-64-v3, x86-64-v4): a virtual machine may
   hide any part. */
static inline int isa_processor(void) {
#if defined(__x86_64__)
#define HAS(feature) __builtin_cpu_supports(feature)
  __builtin_cpu_init();
  if (!(HAS("avx2") && HAS("fma") && HAS("f16c") && HAS("bmi") && HAS("bmi2") && HAS("lzcnt") && HAS("movbe"))) return ISA_BASE;
  if (!(HAS("avx512f") && HAS("avx512vl") && HAS("avx512bw") && HAS("avx512dq") && HAS("avx512cd"))) return ISA_AVX2;
  return ISA_AVX512;
#undef HAS
#else
  return ISA_BASE;
#endif
}

/* The highest set to use: TENSORRT_LITE_ISA (base, avx2, avx512) lowers it. */
static inline int isa_level(void) {
  const char* wanted = getenv("TENSORRT_LITE_ISA");
  int level = isa_processor();
  if (wanted && !strcmp(wanted, "base")) return ISA_BASE;
  return wanted && !strcmp(wanted, "avx2") && level > ISA_AVX2 ? ISA_AVX2 : level;
}

/* Loops that no object brought would be found by a crash in some call. */
static inline void isa_check(const char* name, const void* base, const void* avx2, const void* avx512) {
  if (base || avx2 || avx512) return;
  fprintf(stderr, "tensorrt_lite: %s is linked for no instruction set\n", name);
  abort();
}

static inline const void* isa_best(const char* name, const void* base, const void* avx2, const void* avx512) {
  int level = isa_level();
  isa_check(name, base, avx2, avx512);
  return level >= ISA_AVX512 && avx512 ? avx512 : level >= ISA_AVX2 && avx2 ? avx2 : base;
}

/* Rows of a table, each from the highest set that has it: a row is empty where its first pointer is null. */
static inline void isa_choose_rows(void* rows, int64_t count, size_t bytes, const char* name, const void* base, const void* avx2, const void* avx512) {
  const char* from[ISA_COUNT] = {(const char*)base, (const char*)avx2, (const char*)avx512};
  int level = isa_level();
  isa_check(name, base, avx2, avx512);
  for (int64_t i = 0; i < count; i++) {
    for (int set = level; set >= 0; set--) {
      void* first = NULL;
      if (from[set]) memcpy(&first, from[set] + i * bytes, sizeof first);
      if (first) {
        memcpy((char*)rows + i * bytes, from[set] + i * bytes, bytes);
        break;
      }
    }
  }
}

#define ISA_WEAK extern __attribute__((weak, visibility("hidden")))
#define ISA_ALL(NAME) #NAME, (const void*)&NAME##_base, (const void*)&NAME##_avx2, (const void*)&NAME##_avx512
/* `const TYPE* NAME(void)`: the table that is used. */
#define ISA_TABLE(TYPE, NAME)                                       \
  ISA_WEAK const TYPE NAME##_base[], NAME##_avx2[], NAME##_avx512[]; \
  static inline const TYPE* NAME(void) { return (const TYPE*)isa_best(ISA_ALL(NAME)); }
/* The same for a table of COUNT structs of pointers whose rows are chosen one by one. */
#define ISA_ROWS(TYPE, NAME, COUNT)                                                   \
  ISA_WEAK const TYPE NAME##_base[], NAME##_avx2[], NAME##_avx512[];                  \
  static inline const TYPE* NAME(void) {                                              \
    static TYPE rows[COUNT];                                                          \
    isa_choose_rows(rows, COUNT, sizeof(TYPE), ISA_ALL(NAME));                        \
    return rows;                                                                      \
  }
/* `RESULT (*NAME(void)) ARGUMENTS`: the function that is used. */
#define ISA_FUNCTION(RESULT, NAME, ARGUMENTS)                                                     \
  ISA_WEAK RESULT NAME##_base ARGUMENTS;                                                          \
  ISA_WEAK RESULT NAME##_avx2 ARGUMENTS;                                                          \
  ISA_WEAK RESULT NAME##_avx512 ARGUMENTS;                                                        \
  static inline RESULT (*NAME(void)) ARGUMENTS { return (RESULT (*) ARGUMENTS)isa_best(ISA_ALL(NAME)); }
#define ISA_TASK(NAME) ISA_FUNCTION(void, NAME, (void*, int64_t, int64_t))
#endif
