// Kernel bodies for pointwise operators: out[i] = f(in0[i], in1[i], ...), with broadcasting, conversion and any strides.
//
// Three forms, chosen by the host (cysrc/cuda/backend.pyx) after it has dropped and merged dimensions:
//   iterate_contiguous  operands of one shape without gaps, of the types f takes; 16 bytes per access where all pointers allow it
//   iterate_strided     the same types, any strides within 32 bits, up to 8 dimensions
//   iterate_any         operands of any dtype, converted as they are loaded and stored; 64-bit offsets, up to 16 dimensions
// All loop over the grid, so any launch size is correct. An input may be one number that the host knows: its pointer is null
// and the value, of the type that f takes, lies in the argument. The output may be one of the inputs, as long as it has the same layout.
//
// Storage types __half and __nv_bfloat16 reach f as float, and its result is converted back.
#pragma once

#include "complex_math.cuh"
#include "dtype_table.h"

namespace trt {

constexpr int kMaxDims = 8;
constexpr int kMaxAnyDims = 16;
constexpr int kBlock = 256;
constexpr int kVectorBytes = 16;

// ---- types -------------------------------------------------------------------------------------------------------

// The type that a storage type computes in, and the way there and back.
template <class T>
struct Compute {
    using type = T;
    static __device__ __forceinline__ T load(T value) { return value; }
    static __device__ __forceinline__ T store(T value) { return value; }
};
template <>
struct Compute<__half> {
    using type = float;
    static __device__ __forceinline__ float load(__half value) { return __half2float(value); }
    static __device__ __forceinline__ __half store(float value) { return __float2half_rn(value); }
};
template <>
struct Compute<__nv_bfloat16> {
    using type = float;
    static __device__ __forceinline__ float load(__nv_bfloat16 value) { return __bfloat162float(value); }
    static __device__ __forceinline__ __nv_bfloat16 store(float value) { return __float2bfloat16_rn(value); }
};
template <class T>
using compute_t = typename Compute<T>::type;

// Types without loops, from the table's encodings.
using uint32_t = unsigned;
static __device__ __forceinline__ unsigned trt_bits_of_float(float x) { return __float_as_uint(x); }
static __device__ __forceinline__ float trt_float_of_bits(unsigned x) { return __uint_as_float(x); }
#define TRT_FLOAT8_FUNCTION static __device__ __forceinline__
#include "float8.h"

#define TRT_CUDA_FLOAT8(stored, from, to)                                                                             \
    struct stored { unsigned char bits; };                                                                            \
    template <>                                                                                                     \
    struct Compute<stored> {                                                                                          \
        using element = stored;                                                                                        \
        using type = float;                                                                                         \
        static __device__ __forceinline__ float load(element value) { return from; }                                  \
        static __device__ __forceinline__ element store(float value) { return {static_cast<unsigned char>(to)}; }     \
    };
#define TRT_CUDA_IEEE(type, digits) TRT_CUDA_FLOAT8(type, ld_float8(value.bits, digits, FLOAT8_IEEE), st_float8(value, digits, FLOAT8_IEEE))
#define TRT_CUDA_FN(type, digits) TRT_CUDA_FLOAT8(type, ld_float8(value.bits, digits, FLOAT8_FN), st_float8(value, digits, FLOAT8_FN))
#define TRT_CUDA_FNUZ(type, digits) TRT_CUDA_FLOAT8(type, ld_float8(value.bits, digits, FLOAT8_FNUZ), st_float8(value, digits, FLOAT8_FNUZ))
#define TRT_CUDA_POWER(type, digits) TRT_CUDA_FLOAT8(type, ld_power(value.bits), st_power(value))
#define TRT_CUDA_PAIR(stored, digits)                                                                                 \
    struct alignas(4) stored { __half re, im; };                                                                      \
    template <>                                                                                                     \
    struct Compute<stored> {                                                                                          \
        using element = stored;                                                                                        \
        using type = complex<float>;                                                                                \
        static __device__ __forceinline__ complex<float> load(element value) { return {__half2float(value.re), __half2float(value.im)}; } \
        static __device__ __forceinline__ element store(complex<float> value) { return {__float2half_rn(value.re), __float2half_rn(value.im)}; } \
    };
#define TRT_CUDA_INTEGER(type, digits)
#define TRT_CUDA_TYPE(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, encoding, cuda) \
    TRT_CUDA_##encoding(type, digits)
TRT_STORAGE_DTYPES(TRT_CUDA_TYPE)
#undef TRT_CUDA_TYPE

// Conversions of numbers by value, also between real and complex ones (the imaginary part is dropped); bool is "not zero".
template <class To, class From>
__device__ __forceinline__ To convert_number(From value) {
    if constexpr (is_complex<From> && is_complex<To>) {
        return To(static_cast<real_t<To>>(value.re), static_cast<real_t<To>>(value.im));
    } else if constexpr (is_complex<From>) {
        if constexpr (sizeof(To) == sizeof(bool) && To(2) == To(1)) return value.re != 0 || value.im != 0;
        return static_cast<To>(value.re);
    } else if constexpr (is_complex<To>) {
        return To(static_cast<real_t<To>>(value));
    } else {
        return static_cast<To>(value);
    }
}

template <class A, class B>
constexpr bool is_same = false;
template <class A>
constexpr bool is_same<A, A> = true;

template <class To, class From>
__device__ __forceinline__ To convert(From value) {
    if constexpr (is_same<To, From>) return value;
    else return Compute<To>::store(convert_number<compute_t<To>>(Compute<From>::load(value)));
}

template <class T>
__device__ __forceinline__ bool truth(T value) { return value != 0; }

// An input: elements in memory, or one number.
template <class T>
struct Source {
    const T* pointer;
    compute_t<T> value;
};

// ---- contiguous --------------------------------------------------------------------------------------------------

template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
    T at[N];
};

template <class... T>
struct LargestSize { static constexpr int value = 1; };
template <class T, class... Rest>
struct LargestSize<T, Rest...> {
    static constexpr int rest = LargestSize<Rest...>::value;
    static constexpr int value = static_cast<int>(sizeof(T)) > rest ? static_cast<int>(sizeof(T)) : rest;
};

template <int N, class T>
__device__ __forceinline__ bool is_aligned(const T* pointer) {
    return reinterpret_cast<unsigned long long>(pointer) % (sizeof(T) * N) == 0;
}

template <int N, class T>
__device__ __forceinline__ Vector<compute_t<T>, N> load_vector(const Source<T>& source, unsigned long long index) {
    Vector<compute_t<T>, N> result;
    if (source.pointer) {
        const Vector<T, N> stored = reinterpret_cast<const Vector<T, N>*>(source.pointer)[index];
#pragma unroll
        for (int i = 0; i < N; i++) result.at[i] = convert<compute_t<T>>(stored.at[i]);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) result.at[i] = source.value;
    }
    return result;
}

// One vector of each operand. The inputs are read whole before the output is written, which in-place needs.
template <int N, class F, class Out, class... In>
__device__ __forceinline__ Vector<Out, N> apply_vector(const F& f, const Vector<compute_t<In>, N>... in) {
    Vector<Out, N> result;
#pragma unroll
    for (int i = 0; i < N; i++) result.at[i] = convert<Out>(f(in.at[i]...));
    return result;
}

template <class F, class Out, class... In>
__device__ __forceinline__ void iterate_contiguous(unsigned long long numel, const F& f, Out* out, const Source<In>... in) {
    constexpr int kLargest = LargestSize<Out, In...>::value;
    constexpr int kVector = kLargest < kVectorBytes ? kVectorBytes / kLargest : 1;
    const unsigned long long thread = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
    // The same for all threads of the grid, so no warp diverges.
    const bool aligned = is_aligned<kVector>(out) && (true && ... && is_aligned<kVector>(in.pointer));
    const unsigned long long vectors = aligned ? numel / kVector : 0;
    for (unsigned long long v = thread; v < vectors; v += stride) {
        reinterpret_cast<Vector<Out, kVector>*>(out)[v] = apply_vector<kVector, F, Out, In...>(f, load_vector<kVector>(in, v)...);
    }
    for (unsigned long long i = vectors * kVector + thread; i < numel; i += stride) {
        out[i] = convert<Out>(f((in.pointer ? convert<compute_t<In>>(in.pointer[i]) : in.value)...));
    }
}

// ---- strided -----------------------------------------------------------------------------------------------------

// Shape and strides of `Operands` operands, the output first, dimension 0 fastest. All members are 32-bit words, so
// that the host's copy needs no padding rules. Strides count elements; 0 broadcasts.
//
// Division by a size is a multiplication: q = (mulhi(n, multiplier) + n) >> shift with shift = ceil(log2(size)) and
// multiplier = floor(2^32 * (2^shift - size) / size) + 1, exact for n < 2^31 (Granlund and Montgomery 1994).
template <int Operands>
struct StridedLayout {
    unsigned ndim;
    unsigned numel;
    unsigned size[kMaxDims];
    unsigned multiplier[kMaxDims];
    unsigned shift[kMaxDims];
    int stride[Operands][kMaxDims];
};

template <int Operands>
struct Offsets {
    int at[Operands];
};

template <int Operands>
__device__ __forceinline__ Offsets<Operands> element_offsets(const StridedLayout<Operands>& layout, unsigned index) {
    Offsets<Operands> offsets = {};
#pragma unroll
    for (int d = 0; d < kMaxDims; d++) {
        if (d == static_cast<int>(layout.ndim)) break;
        const unsigned quotient = (__umulhi(index, layout.multiplier[d]) + index) >> layout.shift[d];
        const int coordinate = static_cast<int>(index - quotient * layout.size[d]);
        index = quotient;
#pragma unroll
        for (int k = 0; k < Operands; k++) offsets.at[k] += coordinate * layout.stride[k][d];
    }
    return offsets;
}

template <int... I>
struct Indices {};
template <int N, int... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <int... I>
struct MakeIndices<0, I...> { using type = Indices<I...>; };

template <class F, class Out, class... In, int... I>
__device__ __forceinline__ void apply_at(const Offsets<sizeof...(In) + 1>& offsets, const F& f, Indices<I...>, Out* out,
                                         const Source<In>... in) {
    out[offsets.at[0]] = convert<Out>(f((in.pointer ? convert<compute_t<In>>(in.pointer[offsets.at[I + 1]]) : in.value)...));
}

template <class F, class Out, class... In>
__device__ __forceinline__ void iterate_strided(const StridedLayout<sizeof...(In) + 1>& layout, const F& f, Out* out, const Source<In>... in) {
    const unsigned stride = gridDim.x * blockDim.x;
    // A grid of more threads than elements leaves at once; numel < 2^31 and stride < 2^31 keep the sum in range.
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < layout.numel; i += stride) {
        apply_at(element_offsets(layout, i), f, typename MakeIndices<sizeof...(In)>::type(), out, in...);
    }
}

// ---- any dtypes --------------------------------------------------------------------------------------------------

// As StridedLayout; strides count bytes, dtypes are the codes of core/dtype_table.h.
template <int Operands>
struct AnyLayout {
    long long numel;
    int ndim;
    int dtype[Operands + (Operands + 1) % 2];  // an odd count: what follows is aligned to 8 bytes
    long long size[kMaxAnyDims];
    long long stride[Operands][kMaxAnyDims];
};

enum {
#define TRT_CODE(type, ...) DT_##type,
    TRT_DTYPES(TRT_CODE)
#undef TRT_CODE
};

// The float8 and half complex types: rare beside others, so that all kernels share one copy of their conversions.
static __device__ __noinline__ complex<float> fetch_small(const char* pointer, int dtype) {
    switch (dtype) {
#define TRT_FETCH_BOOL(type, cuda)
#define TRT_FETCH_INT(type, cuda)
#define TRT_FETCH_FLOAT(type, cuda) \
    case DT_##type: return convert<complex<float>>(*reinterpret_cast<const cuda*>(pointer));
#define TRT_FETCH_COMPLEX(type, cuda) TRT_FETCH_FLOAT(type, cuda)
#define TRT_FETCH(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, encoding, cuda) TRT_FETCH_##category(type, cuda)
        TRT_STORAGE_DTYPES(TRT_FETCH)
#undef TRT_FETCH
    }
    return {};
}

static __device__ __noinline__ void store_small(char* pointer, int dtype, complex<float> value) {
    switch (dtype) {
#define TRT_STORE_INT(type, cuda)
#define TRT_STORE_FLOAT(type, cuda) \
    case DT_##type: *reinterpret_cast<cuda*>(pointer) = convert<cuda>(value); break;
#define TRT_STORE_COMPLEX(type, cuda) TRT_STORE_FLOAT(type, cuda)
#define TRT_STORE(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, encoding, cuda) TRT_STORE_##category(type, cuda)
        TRT_STORAGE_DTYPES(TRT_STORE)
#undef TRT_STORE
    }
}

template <class To>
__device__ __forceinline__ To fetch(const char* pointer, int dtype) {
    switch (dtype) {
#undef TRT_FETCH_INT
#undef TRT_FETCH_FLOAT
#undef TRT_FETCH_COMPLEX
#define TRT_FETCH_INT(type, cuda) \
    case DT_##type: return convert<To>(*reinterpret_cast<const cuda*>(pointer));
#define TRT_FETCH_FLOAT(type, cuda)
#define TRT_FETCH_COMPLEX(type, cuda)
#define TRT_FETCH(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, encoding, cuda) TRT_FETCH_INT(type, cuda)
        TRT_KERNEL_DTYPES(TRT_FETCH)
#undef TRT_FETCH
#define TRT_FETCH(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, encoding, cuda) TRT_FETCH_##category(type, cuda)
        TRT_STORAGE_DTYPES(TRT_FETCH)
#undef TRT_FETCH
    }
    return convert<To>(fetch_small(pointer, dtype));
}

template <class From>
__device__ __forceinline__ void store(char* pointer, int dtype, From value) {
    switch (dtype) {
#undef TRT_STORE_INT
#undef TRT_STORE_FLOAT
#undef TRT_STORE_COMPLEX
#define TRT_STORE_INT(type, cuda) \
    case DT_##type: *reinterpret_cast<cuda*>(pointer) = convert<cuda>(value); break;
#define TRT_STORE_FLOAT(type, cuda)
#define TRT_STORE_COMPLEX(type, cuda)
#define TRT_STORE(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, encoding, cuda) TRT_STORE_INT(type, cuda)
        TRT_KERNEL_DTYPES(TRT_STORE)
#undef TRT_STORE
#define TRT_STORE(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, encoding, cuda) TRT_STORE_##category(type, cuda)
        TRT_STORAGE_DTYPES(TRT_STORE)
#undef TRT_STORE
    default: store_small(pointer, dtype, convert<complex<float>>(value));
    }
}

template <class F, class Out, class... In, int N, int... I>
__device__ __forceinline__ Out apply_any(const F& f, const long long (&offset)[N], const int* dtype, Indices<I...>, const Source<In>... in) {
    return convert<Out>(f(
        (in.pointer ? convert<compute_t<In>>(fetch<In>(reinterpret_cast<const char*>(in.pointer) + offset[I + 1], dtype[I + 1])) : in.value)...));
}

template <class F, class Out, class... In>
__device__ __forceinline__ void iterate_any(const AnyLayout<sizeof...(In) + 1>& layout, const F& f, Out* out, const Source<In>... in) {
    constexpr int kOperands = sizeof...(In) + 1;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < layout.numel; i += step) {
        long long offset[kOperands] = {}, rest = i;
        for (int d = 0; d < layout.ndim; d++) {
            const long long coordinate = rest % layout.size[d];
            rest /= layout.size[d];
#pragma unroll
            for (int k = 0; k < kOperands; k++) offset[k] += coordinate * layout.stride[k][d];
        }
        const Out value = apply_any<F, Out, In...>(f, offset, layout.dtype, typename MakeIndices<sizeof...(In)>::type(), in...);
        store(reinterpret_cast<char*>(out) + offset[0], layout.dtype[0], value);
    }
}

}  // namespace trt
