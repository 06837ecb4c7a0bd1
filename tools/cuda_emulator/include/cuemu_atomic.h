// Atomics. Fibers switch only inside barriers and warp collectives, so a read-modify-write in plain C++ is atomic.
// Overloads on the pointee's type, as in CUDA, so that a type CUDA has no atomic for does not compile here either.
#pragma once

#include <type_traits>

namespace cuemu {
template <class T>
using Identity = typename std::common_type<T>::type;  // keeps the operand out of template deduction

template <class T, class F>
inline T atomic_update(T* address, F next) {
    T old = *address;
    *address = next(old);
    return old;
}

template <class T>
constexpr bool is_word = std::is_same_v<T, int> || std::is_same_v<T, unsigned> ||
                         std::is_same_v<T, unsigned long long> || std::is_same_v<T, long long>;
template <class T>
constexpr bool is_real = std::is_same_v<T, float> || std::is_same_v<T, double>;
}  // namespace cuemu

#define CUEMU_ATOMIC(name, allowed, expression)                                                      \
    template <class T, class = std::enable_if_t<allowed>>                                            \
    inline T name(T* address, cuemu::Identity<T> value) {                                            \
        return cuemu::atomic_update(address, [value](T old) -> T { return expression; });            \
    }                                                                                                \
    template <class T, class = std::enable_if_t<allowed>>                                            \
    inline T name##_block(T* address, cuemu::Identity<T> value) { return name(address, value); }     \
    template <class T, class = std::enable_if_t<allowed>>                                            \
    inline T name##_system(T* address, cuemu::Identity<T> value) { return name(address, value); }

CUEMU_ATOMIC(atomicSub, (std::is_same_v<T, int> || std::is_same_v<T, unsigned>), old - value)
CUEMU_ATOMIC(atomicExch, (cuemu::is_word<T> || std::is_same_v<T, float>), value)
CUEMU_ATOMIC(atomicMin, cuemu::is_word<T>, value < old ? value : old)
CUEMU_ATOMIC(atomicMax, cuemu::is_word<T>, old < value ? value : old)
CUEMU_ATOMIC(atomicAnd, cuemu::is_word<T>, old & value)
CUEMU_ATOMIC(atomicOr, cuemu::is_word<T>, old | value)
CUEMU_ATOMIC(atomicXor, cuemu::is_word<T>, old ^ value)
CUEMU_ATOMIC(atomicInc, (std::is_same_v<T, unsigned>), old >= value ? 0 : old + 1)
CUEMU_ATOMIC(atomicDec, (std::is_same_v<T, unsigned>), old == 0 || old > value ? value : old - 1)
#undef CUEMU_ATOMIC

// Half types add too (compute capability 7.0 and 8.0 on); long long has no atomicAdd in CUDA.
template <class T>
inline T atomicAdd(T* address, cuemu::Identity<T> value) {
    static_assert(!std::is_same_v<T, long long> && !std::is_same_v<T, long> && sizeof(T) >= 2,
                  "CUDA has no atomicAdd for this type");
    return cuemu::atomic_update(address, [value](T old) -> T { return old + value; });
}

template <class T>
inline T atomicCAS(T* address, cuemu::Identity<T> compare, cuemu::Identity<T> value) {
    static_assert(cuemu::is_word<T> || std::is_same_v<T, unsigned short>, "CUDA has no atomicCAS for this type");
    return cuemu::atomic_update(address, [=](T old) -> T { return old == compare ? value : old; });
}
