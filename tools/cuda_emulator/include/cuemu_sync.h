// Barriers, warp votes, shuffles and reductions. All are calls into the scheduler, which suspends the calling fiber
// until the threads it waits for have arrived. The default arguments record the call site, so that threads which
// wait at different barriers are told apart.
#pragma once

static inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    cuemu_barrier(0, file, line);
}
static inline int __syncthreads_and(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return cuemu_barrier(predicate, file, line).all;
}
static inline int __syncthreads_or(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return cuemu_barrier(predicate, file, line).any;
}
static inline int __syncthreads_count(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return cuemu_barrier(predicate, file, line).count;
}

// Fibers of one host thread see each other's stores in program order.
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}

namespace cuemu {

template <class F>
inline void for_each_lane(unsigned mask, F body) {
    for (; mask; mask &= mask - 1) body(__builtin_ctz(mask));
}

inline void warp_nothing(unsigned, const uint64_t*, const int*, uint64_t*) {}

// A shuffle that names a lane outside the mask is undefined on hardware; here it returns a recognisable pattern.
inline void warp_gather(unsigned mask, const uint64_t* value, const int* source, uint64_t* result) {
    for_each_lane(mask, [&](int lane) {
        bool inside = mask >> source[lane] & 1;
        result[lane] = inside ? value[source[lane]] : 0xFFFFFFFFFFFFFFFFull;
    });
}

inline void warp_ballot(unsigned mask, const uint64_t* value, const int*, uint64_t* result) {
    unsigned ballot = 0;
    for_each_lane(mask, [&](int lane) { ballot |= value[lane] ? 1u << lane : 0u; });
    for_each_lane(mask, [&](int lane) { result[lane] = ballot; });
}

inline void warp_match_any(unsigned mask, const uint64_t* value, const int*, uint64_t* result) {
    for_each_lane(mask, [&](int lane) {
        unsigned equal = 0;
        for_each_lane(mask, [&](int other) { equal |= value[other] == value[lane] ? 1u << other : 0u; });
        result[lane] = equal;
    });
}

// The mask where all values are equal, with bit 32 set; 0 where they are not.
inline void warp_match_all(unsigned mask, const uint64_t* value, const int*, uint64_t* result) {
    bool equal = true;
    for_each_lane(mask, [&](int lane) { equal &= value[lane] == value[__builtin_ctz(mask)]; });
    for_each_lane(mask, [&](int lane) { result[lane] = equal ? uint64_t{1} << 32 | mask : 0; });
}

template <class T, class F>
inline void warp_reduce(unsigned mask, const uint64_t* value, const int*, uint64_t* result) {
    T total = from_bits<T>(value[__builtin_ctz(mask)]);
    for_each_lane(mask & (mask - 1), [&](int lane) { total = F()(total, from_bits<T>(value[lane])); });
    for_each_lane(mask, [&](int lane) { result[lane] = to_bits(total); });
}

struct Minimum {
    template <class T> T operator()(T a, T b) const { return b < a ? b : a; }
};
struct Maximum {
    template <class T> T operator()(T a, T b) const { return a < b ? b : a; }
};

template <class T>
inline T shuffle(unsigned mask, T value, int source) {
    return from_bits<T>(cuemu_warp_collective(mask, to_bits(value), source, warp_gather));
}

}  // namespace cuemu

static inline unsigned __activemask() { return cuemu_active_mask(); }
static inline void __syncwarp(unsigned mask = ~0u) { cuemu_warp_collective(mask, 0, 0, cuemu::warp_nothing); }
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return static_cast<unsigned>(cuemu_warp_collective(mask, predicate != 0, 0, cuemu::warp_ballot));
}
static inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value) {
    return static_cast<unsigned>(cuemu_warp_collective(mask, cuemu::to_bits(value), 0, cuemu::warp_match_any));
}

template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* equal) {
    uint64_t result = cuemu_warp_collective(mask, cuemu::to_bits(value), 0, cuemu::warp_match_all);
    *equal = static_cast<int>(result >> 32);
    return static_cast<unsigned>(result);
}

// `width` splits the warp into segments of a power of two; a source outside the lane's own segment means itself.
template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    int lane = static_cast<int>(cuemu_current->lane);
    return cuemu::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
    int lane = static_cast<int>(cuemu_current->lane), source = lane ^ lane_mask;
    return cuemu::shuffle(mask, value, source < (lane & ~(width - 1)) + width ? source : lane);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = static_cast<int>(cuemu_current->lane), source = lane + static_cast<int>(delta);
    return cuemu::shuffle(mask, value, source < (lane & ~(width - 1)) + width ? source : lane);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = static_cast<int>(cuemu_current->lane), source = lane - static_cast<int>(delta);
    return cuemu::shuffle(mask, value, source >= (lane & ~(width - 1)) ? source : lane);
}

#define CUEMU_REDUCE(name, T, F)                                                                       \
    static inline T name(unsigned mask, T value) {                                                     \
        return cuemu::from_bits<T>(                                                                    \
            cuemu_warp_collective(mask, cuemu::to_bits(value), 0, cuemu::warp_reduce<T, F>));          \
    }
CUEMU_REDUCE(__reduce_add_sync, unsigned, std::plus<unsigned>)
CUEMU_REDUCE(__reduce_add_sync, int, std::plus<int>)
CUEMU_REDUCE(__reduce_min_sync, unsigned, cuemu::Minimum)
CUEMU_REDUCE(__reduce_min_sync, int, cuemu::Minimum)
CUEMU_REDUCE(__reduce_max_sync, unsigned, cuemu::Maximum)
CUEMU_REDUCE(__reduce_max_sync, int, cuemu::Maximum)
CUEMU_REDUCE(__reduce_and_sync, unsigned, std::bit_and<unsigned>)
CUEMU_REDUCE(__reduce_or_sync, unsigned, std::bit_or<unsigned>)
CUEMU_REDUCE(__reduce_xor_sync, unsigned, std::bit_xor<unsigned>)
#undef CUEMU_REDUCE
