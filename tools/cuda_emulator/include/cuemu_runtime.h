// The interface between a compiled kernel module and the emulator's runtime (libcuda.so.1 of this folder):
// what a running thread sees, the calls that suspend it, and the descriptor by which the driver launches a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

struct uint3 { unsigned x, y, z; };

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace cuemu {

// The thread that runs at this moment; the scheduler swaps the pointer on every switch.
struct ThreadContext {
    uint3 thread, block;
    dim3 block_dim, grid_dim;
    unsigned lane, warp;
    void* dynamic_shared;
};

struct BarrierResult { int all, any, count; };

// A warp collective: every lane of `mask` hands in (value, argument); the last to arrive runs the operation, which
// fills `result` for each lane of `mask`.
using WarpOperation = void (*)(unsigned mask, const uint64_t* value, const int* argument, uint64_t* result);

// Arguments arrive either as an array of pointers or as one packed buffer, as in cuLaunchKernel.
struct Kernel {
    const char* name;
    size_t parameter_count;
    size_t parameter_bytes;
    const size_t* parameter_sizes;
    const size_t* parameter_offsets;
    void (*call)(const char* packed);
};

}  // namespace cuemu

#pragma GCC visibility push(default)
extern "C" {
extern cuemu::ThreadContext* cuemu_current;
cuemu::BarrierResult cuemu_barrier(int predicate, const char* file, int line);
uint64_t cuemu_warp_collective(unsigned mask, uint64_t value, int argument, cuemu::WarpOperation operation);
unsigned cuemu_active_mask();
// cp.async: copies that a thread has submitted run in groups when it waits, or when it ends.
void cuemu_async_copy(void* shared, const void* global, int size, int valid);
void cuemu_async_commit();
void cuemu_async_wait(int groups_left);  // -1: waits also for what was not committed
void cuemu_trap(const char* message);  // ends the launch with an error; does not come back
}
#pragma GCC visibility pop

namespace cuemu {

template <class T>
inline uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "a lane exchanges at most 8 bytes");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
inline T from_bits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// CUDA's parameter buffer: each argument at its natural alignment.
template <class F>
struct ParameterList;

template <class... A>
struct ParameterList<void (*)(A...)> {
    static constexpr size_t count = sizeof...(A);
    static constexpr size_t sizes[] = {sizeof(A)..., 0};
    static constexpr size_t alignments[] = {alignof(A)..., 1};

    struct Offsets { size_t at[count + 1]; };
    static constexpr Offsets layout() {
        Offsets offsets{};
        size_t end = 0;
        for (size_t i = 0; i <= count; i++) {
            end = (end + alignments[i] - 1) / alignments[i] * alignments[i];
            offsets.at[i] = end;
            end += sizes[i];
        }
        return offsets;
    }
    static constexpr Offsets table = layout();
    static constexpr const size_t* offsets = table.at;
    static constexpr size_t bytes = table.at[count];
};

template <auto F>
struct Invoke;

template <class... A, void (*F)(A...)>
struct Invoke<F> {
    using List = ParameterList<void (*)(A...)>;
    template <size_t... I>
    static void unpack(const char* packed, std::index_sequence<I...>) {
        F(*reinterpret_cast<const std::remove_cv_t<A>*>(packed + List::table.at[I])...);
    }
    static void call(const char* packed) { unpack(packed, std::index_sequence_for<A...>{}); }
};

}  // namespace cuemu
