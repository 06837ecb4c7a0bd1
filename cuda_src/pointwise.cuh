// Kernel bodies for pointwise operators: out[i] = f(in0[i], in1[i], ...), with broadcasting and any strides.
//
// Two forms. `pointwise_contiguous` is for operands of one shape whose elements lie in one order without gaps; it moves
// 16 bytes per access where all pointers allow it. `pointwise_strided` takes a StridedLayout, which the host fills
// (cysrc/cuda/pointwise.pyx) after dropping and merging dimensions. Both loop over the grid, so any launch size is
// correct. The caller chooses the form, and splits tensors of 2^31 elements and more before the strided one.
//
// Types: an operand's storage type may be __half or __nv_bfloat16, which f sees as float; f's result is converted to
// the output's type. The output may be one of the inputs (in-place), as long as it has the same layout.
#pragma once

#include "scalar_math.cuh"

namespace trt {

constexpr int kMaxDims = 8;
constexpr int kPointwiseBlock = 256;
constexpr int kVectorBytes = 16;

// The type that a storage type computes in.
template <class T>
struct Compute { using type = T; };
template <>
struct Compute<__half> { using type = float; };
template <>
struct Compute<__nv_bfloat16> { using type = float; };
template <class T>
using compute_t = typename Compute<T>::type;

// Conversions by value; the half types go through float.
template <class To, class From>
__device__ __forceinline__ To convert(From value) {
    return static_cast<To>(value);
}
template <>
__device__ __forceinline__ float convert<float, __half>(__half value) { return __half2float(value); }
template <>
__device__ __forceinline__ float convert<float, __nv_bfloat16>(__nv_bfloat16 value) { return __bfloat162float(value); }
template <>
__device__ __forceinline__ __half convert<__half, float>(float value) { return __float2half_rn(value); }
template <>
__device__ __forceinline__ __nv_bfloat16 convert<__nv_bfloat16, float>(float value) {
    return __float2bfloat16_rn(value);
}

template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
    T at[N];
};

template <class... T>
struct LargestSize;
template <class T>
struct LargestSize<T> { static constexpr int value = sizeof(T); };
template <class T, class... Rest>
struct LargestSize<T, Rest...> {
    static constexpr int rest = LargestSize<Rest...>::value;
    static constexpr int value = static_cast<int>(sizeof(T)) > rest ? static_cast<int>(sizeof(T)) : rest;
};

template <int N, class T>
__device__ __forceinline__ bool is_aligned(const T* pointer) {
    return reinterpret_cast<unsigned long long>(pointer) % (sizeof(T) * N) == 0;
}
template <int N, class T, class... Rest>
__device__ __forceinline__ bool are_aligned(const T* pointer, const Rest*... rest) {
    if constexpr (sizeof...(rest) == 0) {
        return is_aligned<N>(pointer);
    } else {
        return is_aligned<N>(pointer) && are_aligned<N>(rest...);
    }
}

// One vector of each operand. The inputs are read whole before the output is written, which in-place needs.
template <int N, class F, class Out, class... In>
__device__ __forceinline__ Vector<Out, N> apply_vector(const F& f, const Vector<In, N>... in) {
    Vector<Out, N> result;
#pragma unroll
    for (int i = 0; i < N; i++) result.at[i] = convert<Out>(f(convert<compute_t<In>>(in.at[i])...));
    return result;
}

template <class F, class Out, class... In>
__device__ __forceinline__ void pointwise_contiguous(unsigned long long numel, const F& f, Out* out, const In*... in) {
    constexpr int kVector = kVectorBytes / LargestSize<Out, In...>::value;
    const unsigned long long thread = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
    // The same for all threads of the grid, so no warp diverges.
    const unsigned long long vectors = are_aligned<kVector>(out, in...) ? numel / kVector : 0;
    for (unsigned long long v = thread; v < vectors; v += stride) {
        reinterpret_cast<Vector<Out, kVector>*>(out)[v] =
            apply_vector<kVector, F, Out, In...>(f, reinterpret_cast<const Vector<In, kVector>*>(in)[v]...);
    }
    for (unsigned long long i = vectors * kVector + thread; i < numel; i += stride) {
        out[i] = convert<Out>(f(convert<compute_t<In>>(in[i])...));
    }
}

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
                                         const In*... in) {
    out[offsets.at[0]] = convert<Out>(f(convert<compute_t<In>>(in[offsets.at[I + 1]])...));
}

template <class F, class Out, class... In>
__device__ __forceinline__ void pointwise_strided(const StridedLayout<sizeof...(In) + 1>& layout, const F& f, Out* out,
                                                  const In*... in) {
    const unsigned stride = gridDim.x * blockDim.x;
    // A grid of more threads than elements leaves at once; numel < 2^31 and stride < 2^31 keep the sum in range.
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < layout.numel; i += stride) {
        apply_at(element_offsets(layout, i), f, typename MakeIndices<sizeof...(In)>::type(), out, in...);
    }
}

}  // namespace trt
