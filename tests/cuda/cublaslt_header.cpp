// cysrc/cuda/cublaslt.h beside NVIDIA's cublasLt.h: compiles where every number, size and signature agrees.
#include <cublasLt.h>
#include <type_traits>

#include "cublaslt.h"

#define X(name, number) static_assert(static_cast<long long>(name) == TRT_##name, #name);
TRT_LT_NUMBERS(X)
#undef X

static_assert(sizeof(trt_lt_algo) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(trt_lt_result) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(trt_lt_result, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(trt_lt_result, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(trt_lt_result, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

// A parameter as the calling convention sees it: enumerations of int's size are ints, pointers to anything are pointers.
template <class T, bool = std::is_enum_v<T>>
struct Passed { using type = std::conditional_t<std::is_pointer_v<T>, void*, T>; };
template <class T>
struct Passed<T, true> {
    static_assert(sizeof(T) == sizeof(int));
    using type = int;
};
template <class F>
struct Signature;
template <class R, class... A>
struct Signature<R (*)(A...)> { using type = typename Passed<R>::type(typename Passed<A>::type...); };

#define X(member, symbol, parameters) \
    static_assert(std::is_same_v<Signature<decltype(trt_lt::member)>::type, Signature<decltype(&symbol)>::type>, #symbol);
TRT_LT_CALLS(X)
#undef X
static_assert(std::is_same_v<decltype(trt_lt::version), decltype(&cublasLtGetVersion)>);

int main() { return 0; }
