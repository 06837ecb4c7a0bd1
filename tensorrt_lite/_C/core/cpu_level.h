/* The instruction set to use: 0 baseline, 1 AVX2, 2 AVX-512. TENSORRT_LITE_ISA (base, avx2, avx512) lowers it. */
#ifndef TRT_CPU_LEVEL_H
#define TRT_CPU_LEVEL_H
#include <stdlib.h>
#include <string.h>
static int trt_cpu_level(void) {
  int level = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) level = 1;
  if (level && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq")) level = 2;
#endif
  const char* wanted = getenv("TENSORRT_LITE_ISA");
  if (wanted && !strcmp(wanted, "base")) level = 0;
  if (wanted && !strcmp(wanted, "avx2") && level > 1) level = 1;
  return level;
}
#endif
