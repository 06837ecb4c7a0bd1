// The address sanitizer's shadow memory, when the process runs under it (libasan preloaded). The driver library itself
// is not instrumented: the functions are weak references that stay null in an ordinary process.
#pragma once

#include <cstddef>

extern "C" {
void __asan_poison_memory_region(void const volatile* address, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile* address, size_t size) __attribute__((weak));
}

namespace cuemu {

inline bool sanitizer_active() { return __asan_poison_memory_region != nullptr; }
inline void sanitizer_poison(const void* address, size_t size) {
    if (__asan_poison_memory_region) __asan_poison_memory_region(address, size);
}
inline void sanitizer_unpoison(const void* address, size_t size) {
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(address, size);
}

}  // namespace cuemu
