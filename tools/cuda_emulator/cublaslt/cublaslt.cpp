// A stand-in for libcublasLt.so: descriptors, heuristics and products of the calls that cysrc/cuda/cublaslt.h lists, computed by a plain
// kernel (product.cu) that is launched through the driver on the caller's stream. What NVIDIA's library refuses is refused here
// too as far as it is documented: layouts that overlap, int8 in other orders than T, N, epilogues of types that have none.
//
// CUBLASLT_CALLS names a file to which every product appends a line: the tests see that it was this library that computed.
// CUBLASLT_CREATE_STATUS is what making a handle returns, as from a library that does not go with its driver.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cublaslt.h"
#include "product.h"

#define API extern "C" __attribute__((visibility("default"))) int

namespace {

struct Desc { int compute, scale, transpose_a = 0, transpose_b = 0, epilogue = TRT_CUBLASLT_EPILOGUE_DEFAULT; const void* bias = nullptr; };
struct Layout { int type; uint64_t rows, cols; int64_t ld; int batch = 1; int64_t offset = 0; };
struct Preference { size_t workspace = 0; unsigned reduction = TRT_CUBLASLT_REDUCTION_SCHEME_MASK, align[4] = {256, 256, 256, 256}; };
constexpr size_t kWorkspace = 1024;         // what a product with a deep k asks for, so that callers have to bring it
constexpr uint64_t kSignature = 0x7472744c74616c67;

// The driver of this process, and the kernel in its current context.
struct Driver {
    int (*load)(void**, const char*);
    int (*function)(void**, void*, const char*);
    int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
    int (*current)(void**);
};

const Driver* driver() {
    static Driver found;
    static bool opened = [] {
        void* library = dlopen(CUBLASLT_DRIVER, RTLD_NOW);
        if (!library) return false;
        found.load = reinterpret_cast<decltype(found.load)>(dlsym(library, "cuModuleLoad"));
        found.function = reinterpret_cast<decltype(found.function)>(dlsym(library, "cuModuleGetFunction"));
        found.launch = reinterpret_cast<decltype(found.launch)>(dlsym(library, "cuLaunchKernel"));
        found.current = reinterpret_cast<decltype(found.current)>(dlsym(library, "cuCtxGetCurrent"));
        return found.load && found.function && found.launch && found.current;
    }();
    return opened ? &found : nullptr;
}

struct Handle { void* context; void* function; };

bool epilogue_has(int epilogue, int part) { return epilogue != TRT_CUBLASLT_EPILOGUE_DEFAULT && (epilogue & part); }

// What NVIDIA's table of supported types says.
bool types_agree(const Desc& desc, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
    if (a.type != b.type || c.type != d.type) return false;
    switch (desc.compute) {
        case TRT_CUBLAS_COMPUTE_16F: return a.type == TRT_CUDA_R_16F && d.type == TRT_CUDA_R_16F && desc.scale == TRT_CUDA_R_16F;
        case TRT_CUBLAS_COMPUTE_32I: return a.type == TRT_CUDA_R_8I && d.type == TRT_CUDA_R_32I && desc.scale == TRT_CUDA_R_32I;
        case TRT_CUBLAS_COMPUTE_64F:
            return a.type == d.type && a.type == desc.scale && (a.type == TRT_CUDA_R_64F || a.type == TRT_CUDA_C_64F);
        case TRT_CUBLAS_COMPUTE_32F_FAST_TF32:
            return a.type == d.type && a.type == desc.scale && (a.type == TRT_CUDA_R_32F || a.type == TRT_CUDA_C_32F);
        case TRT_CUBLAS_COMPUTE_32F:
            if (a.type == TRT_CUDA_C_32F) return d.type == a.type && desc.scale == a.type;
            return a.type == d.type && desc.scale == TRT_CUDA_R_32F && (a.type == TRT_CUDA_R_32F || a.type == TRT_CUDA_R_16F || a.type == TRT_CUDA_R_16BF);
    }
    return false;
}

// INVALID_VALUE for what no call may have, NOT_SUPPORTED for what has no kernel.
int check(const Desc& desc, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
    const bool ta = desc.transpose_a, tb = desc.transpose_b;
    const uint64_t m = ta ? a.cols : a.rows, k = ta ? a.rows : a.cols, n = tb ? b.rows : b.cols;
    if ((tb ? b.cols : b.rows) != k || c.rows != m || c.cols != n || d.rows != m || d.cols != n) return TRT_CUBLAS_STATUS_INVALID_VALUE;
    for (const Layout* x : {&a, &b, &c, &d}) {
        if (x->batch != d.batch || x->ld < static_cast<int64_t>(x->rows)) return TRT_CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!types_agree(desc, a, b, c, d)) return TRT_CUBLAS_STATUS_NOT_SUPPORTED;
    const bool plain = desc.epilogue == TRT_CUBLASLT_EPILOGUE_DEFAULT;
    if (!plain && (d.type == TRT_CUDA_R_64F || d.type == TRT_CUDA_C_64F || d.type == TRT_CUDA_C_32F || d.type == TRT_CUDA_R_32I)) return TRT_CUBLAS_STATUS_NOT_SUPPORTED;
    if (epilogue_has(desc.epilogue, TRT_CUBLASLT_EPILOGUE_BIAS) && !desc.bias) return TRT_CUBLAS_STATUS_INVALID_VALUE;
    if (a.type == TRT_CUDA_R_8I && (!ta || tb || a.ld % 4 || b.ld % 4 || m % 4 || k % 4)) return TRT_CUBLAS_STATUS_NOT_SUPPORTED;
    return TRT_CUBLAS_STATUS_SUCCESS;
}

template <class T>
int store(T* to, const void* value, size_t size) {
    if (size != sizeof(T)) return TRT_CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(to, value, size);
    return TRT_CUBLAS_STATUS_SUCCESS;
}

size_t workspace_of(const Layout& a, bool transposed) { return (transposed ? a.rows : a.cols) >= 64 ? kWorkspace : 0; }

}  // namespace

extern "C" __attribute__((visibility("default"))) size_t cublasLtGetVersion(void) { return 130000; }

API cublasLtCreate(void** handle) {
    if (const char* status = std::getenv("CUBLASLT_CREATE_STATUS")) return std::atoi(status);
    const Driver* d = driver();
    void *context = nullptr, *module = nullptr;
    Handle* made = new Handle;
    if (!d || d->current(&context) || !context || d->load(&module, CUBLASLT_MODULE) || d->function(&made->function, module, "product")) {
        delete made;
        return TRT_CUBLAS_STATUS_NOT_INITIALIZED;
    }
    made->context = context;
    *handle = made;
    return TRT_CUBLAS_STATUS_SUCCESS;
}

API cublasLtMatmulDescCreate(void** desc, int compute, int scale) {
    *desc = new Desc{compute, scale};
    return TRT_CUBLAS_STATUS_SUCCESS;
}
API cublasLtMatmulDescDestroy(void* desc) {
    delete static_cast<Desc*>(desc);
    return TRT_CUBLAS_STATUS_SUCCESS;
}
API cublasLtMatmulDescSetAttribute(void* handle, int attribute, const void* value, size_t size) {
    Desc* desc = static_cast<Desc*>(handle);
    switch (attribute) {
        case TRT_CUBLASLT_MATMUL_DESC_TRANSA: return store(&desc->transpose_a, value, size);
        case TRT_CUBLASLT_MATMUL_DESC_TRANSB: return store(&desc->transpose_b, value, size);
        case TRT_CUBLASLT_MATMUL_DESC_EPILOGUE: return store(&desc->epilogue, value, size);
        case TRT_CUBLASLT_MATMUL_DESC_BIAS_POINTER: return store(&desc->bias, value, size);
    }
    return TRT_CUBLAS_STATUS_INVALID_VALUE;
}

API cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t cols, int64_t ld) {
    *layout = new Layout{type, rows, cols, ld};
    return TRT_CUBLAS_STATUS_SUCCESS;
}
API cublasLtMatrixLayoutDestroy(void* layout) {
    delete static_cast<Layout*>(layout);
    return TRT_CUBLAS_STATUS_SUCCESS;
}
API cublasLtMatrixLayoutSetAttribute(void* handle, int attribute, const void* value, size_t size) {
    Layout* layout = static_cast<Layout*>(handle);
    if (attribute == TRT_CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return store(&layout->batch, value, size);
    if (attribute == TRT_CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return store(&layout->offset, value, size);
    return TRT_CUBLAS_STATUS_INVALID_VALUE;
}

API cublasLtMatmulPreferenceCreate(void** preference) {
    *preference = new Preference;
    return TRT_CUBLAS_STATUS_SUCCESS;
}
API cublasLtMatmulPreferenceDestroy(void* preference) {
    delete static_cast<Preference*>(preference);
    return TRT_CUBLAS_STATUS_SUCCESS;
}
API cublasLtMatmulPreferenceSetAttribute(void* handle, int attribute, const void* value, size_t size) {
    Preference* preference = static_cast<Preference*>(handle);
    if (attribute == TRT_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return store(&preference->workspace, value, size);
    if (attribute == TRT_CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) return store(&preference->reduction, value, size);
    const int which = attribute - TRT_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    return which >= 0 && which < 4 ? store(&preference->align[which], value, size) : TRT_CUBLAS_STATUS_INVALID_VALUE;
}

// The algorithm holds what it was chosen for: a product with other alignments, or another workspace, is refused.
API cublasLtMatmulAlgoGetHeuristic(void*, void* desc, void* a, void* b, void* c, void* d, void* handle, int wanted, trt_lt_result* results, int* found) {
    const Preference* preference = static_cast<Preference*>(handle);
    const Layout* first = static_cast<Layout*>(a);
    *found = 0;
    if (wanted < 1) return TRT_CUBLAS_STATUS_INVALID_VALUE;
    if (int status = check(*static_cast<Desc*>(desc), *first, *static_cast<Layout*>(b), *static_cast<Layout*>(c), *static_cast<Layout*>(d))) return status;
    const size_t workspace = workspace_of(*first, static_cast<Desc*>(desc)->transpose_a);
    if (workspace > preference->workspace) return TRT_CUBLAS_STATUS_NOT_SUPPORTED;
    std::memset(results, 0, sizeof *results);
    results->workspace = workspace;
    results->algo.data[0] = kSignature;
    for (int i = 0; i < 4; i++) results->algo.data[1 + i] = preference->align[i];
    results->algo.data[5] = preference->reduction;
    *found = 1;
    return TRT_CUBLAS_STATUS_SUCCESS;
}

API cublasLtMatmul(void* handle, void* desc_handle, const void* alpha, const void* a, void* a_layout, const void* b, void* b_layout, const void* beta,
                   const void* c, void* c_layout, void* d, void* d_layout, const trt_lt_algo* algo, void* workspace, size_t workspace_size, void* stream) {
    const Desc& desc = *static_cast<Desc*>(desc_handle);
    const Layout &la = *static_cast<Layout*>(a_layout), &lb = *static_cast<Layout*>(b_layout), &lc = *static_cast<Layout*>(c_layout),
                 &ld = *static_cast<Layout*>(d_layout);
    if (int status = check(desc, la, lb, lc, ld)) return status;
    if (!algo || algo->data[0] != kSignature) return TRT_CUBLAS_STATUS_INVALID_VALUE;
    const void* const operands[] = {a, b, c, d};
    for (int i = 0; i < 4; i++) {
        if (reinterpret_cast<uintptr_t>(operands[i]) % algo->data[1 + i]) return TRT_CUBLAS_STATUS_INVALID_VALUE;
    }
    const size_t needed = workspace_of(la, desc.transpose_a);
    if (workspace_size < needed || (needed && (!workspace || reinterpret_cast<uintptr_t>(workspace) % 16))) return TRT_CUBLAS_STATUS_INVALID_VALUE;
    if (c == d && (lc.ld != ld.ld || lc.offset != ld.offset)) return TRT_CUBLAS_STATUS_INVALID_VALUE;
    Product p = {};
    p.a = a, p.b = b, p.c = c, p.d = d, p.bias = epilogue_has(desc.epilogue, TRT_CUBLASLT_EPILOGUE_BIAS) ? desc.bias : nullptr;
    p.workspace = static_cast<char*>(workspace), p.workspace_size = needed;
    p.m = static_cast<long long>(ld.rows), p.n = static_cast<long long>(ld.cols), p.k = static_cast<long long>(desc.transpose_a ? la.rows : la.cols);
    p.batch = ld.batch;
    p.lda = la.ld, p.ldb = lb.ld, p.ldc = lc.ld, p.ldd = ld.ld;
    p.batch_a = la.offset, p.batch_b = lb.offset, p.batch_c = lc.offset, p.batch_d = ld.offset;
    p.transpose_a = desc.transpose_a, p.transpose_b = desc.transpose_b;
    p.type_ab = la.type, p.type_cd = ld.type, p.compute = desc.compute, p.scale = desc.scale;
    p.activation = epilogue_has(desc.epilogue, TRT_CUBLASLT_EPILOGUE_RELU) ? 1 : epilogue_has(desc.epilogue, TRT_CUBLASLT_EPILOGUE_GELU) ? 2 : 0;
    const size_t size = desc.scale == TRT_CUDA_C_64F ? 16 : desc.scale == TRT_CUDA_R_64F || desc.scale == TRT_CUDA_C_32F ? 8 : desc.scale == TRT_CUDA_R_16F ? 2 : 4;
    std::memcpy(p.alpha, alpha, size);
    std::memcpy(p.beta, beta, size);
    if (const char* path = std::getenv("CUBLASLT_CALLS")) {
        if (FILE* file = std::fopen(path, "a")) {
            std::fprintf(file, "type %d compute %d epilogue %d m %lld n %lld k %lld batch %lld op %d%d reduction %d\n", p.type_ab, p.compute, desc.epilogue, p.m, p.n, p.k,
                         p.batch, p.transpose_a, p.transpose_b, static_cast<int>(algo->data[5]));
            std::fclose(file);
        }
    }
    void* arguments[] = {&p};
    const unsigned blocks = static_cast<unsigned>((p.m * p.n * p.batch + 255) / 256);
    const int status = driver()->launch(static_cast<Handle*>(handle)->function, blocks, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr);
    return status ? TRT_CUBLAS_STATUS_EXECUTION_FAILED : TRT_CUBLAS_STATUS_SUCCESS;
}
