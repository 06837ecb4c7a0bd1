/* The instruction set to use: 0 baseline, 1 AVX2, 2 AVX-512. TENSORRT_LITE_ISA (base, avx2, avx512) lowers it; kernels.pyx refuses
   one that the processor lacks. A level asks for all that its loops were compiled with (x86-64-v3, x86-64-v4): a virtual machine may
   hide any part. */
#ifndef TRT_CPU_LEVEL_H
#define TRT_CPU_LEVEL_H
#include <stdlib.h>
#include <string.h>
static int trt_cpu_level(void) {
  int level = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
#define HAS(feature) __builtin_cpu_supports(feature)
  if (HAS("avx2") && HAS("fma") && HAS("f16c") && HAS("bmi") && HAS("bmi2") && HAS("lzcnt") && HAS("movbe")) level = 1;
  if (level && HAS("avx512f") && HAS("avx512vl") && HAS("avx512bw") && HAS("avx512dq") && HAS("avx512cd")) level = 2;
#undef HAS
#endif
  const char* wanted = getenv("TENSORRT_LITE_ISA");
  if (wanted && !strcmp(wanted, "base")) level = 0;
  if (wanted && !strcmp(wanted, "avx2") && level > 1) level = 1;
  return level;
}
#endif
