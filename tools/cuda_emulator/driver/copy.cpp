// Copies and fills, blocking and in streams. What a copy reads, it reads when it runs; only memory of the host that is
// not page-locked is staged when an asynchronous copy is submitted, as a driver does.
#include <cstring>
#include <memory>
#include <vector>

#include "graph.h"
#include "memory.h"
#include "work.h"

namespace cuemu {
namespace {

// One end of a copy.
enum class Side { kDevice, kPinned, kPageable };

Side side_of(CUdeviceptr address, size_t size) {
    if (is_device_address(address)) return Side::kDevice;
    return is_pinned(pointer(address), size) ? Side::kPinned : Side::kPageable;
}

CUresult check_side(const char* call, Side side, CUdeviceptr address, size_t size) {
    if (side == Side::kDevice) return check_range(call, address, size);
    return address || !size ? CUDA_SUCCESS : error(CUDA_ERROR_INVALID_VALUE, std::string(call) + ": null pointer");
}

// The ends were checked at submission; memory freed since then has to be found when the copy runs.
CUresult run_copy(const char* call, CUdeviceptr to, CUdeviceptr from, size_t size) {
    for (CUdeviceptr end : {to, from}) {
        if (!is_device_address(end)) continue;
        if (check_range(call, end, size)) {
            return error(CUDA_ERROR_ILLEGAL_ADDRESS, std::string(call) + ": memory was freed before the copy ran");
        }
    }
    DeviceMemoryWindow window;
    std::memmove(pointer(to), pointer(from), size);
    return CUDA_SUCCESS;
}

// What a call fixes: that an end is device memory, and that it returns when the copy is done.
enum Form { kToDevice = 1, kFromDevice = 2, kWaits = 4 };

CUresult copy(const char* call, int form, CUdeviceptr to, CUdeviceptr from, size_t size, CUstream handle) {
    Guard guard(driver_mutex);
    bool waits = form & kWaits;
    CUstream stream;
    if (CUresult status = find_stream(call, handle, &stream)) return status;
    if (waits) {
        if (CUresult status = refuse_during_capture(call)) return status;
    }
    Side target = form & kToDevice ? Side::kDevice : side_of(to, size);
    Side source = form & kFromDevice ? Side::kDevice : side_of(from, size);
    CUresult status = check_side(call, target, to, size);
    if (!status) status = check_side(call, source, from, size);
    if (status || !size) return status;

    std::function<CUresult()> action = [=] { return run_copy(call, to, from, size); };
    if (!waits && source == Side::kPageable && streams_are_late() && !stream->capture) {
        auto staged = std::make_shared<std::vector<char>>(size);
        std::memcpy(staged->data(), pointer(from), size);
        CUdeviceptr start = reinterpret_cast<CUdeviceptr>(staged->data());
        action = [=] { return staged ? run_copy(call, to, start, size) : CUDA_SUCCESS; };
    }
    status = submit(stream, {Kind::kCopy, call, std::move(action)});
    bool to_pageable = target == Side::kPageable && !stream->capture;
    return !status && (waits || to_pageable) ? finish_stream(stream) : status;
}

CUdeviceptr host(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

template <class T>
CUresult fill(const char* call, CUdeviceptr to, size_t pitch, T value, size_t width, size_t height, CUstream handle) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream(call, handle, &stream)) return status;
    if (!width || !height) return CUDA_SUCCESS;
    size_t size = (height - 1) * pitch + width * sizeof(T);
    if (to % sizeof(T)) return error(CUDA_ERROR_INVALID_VALUE, std::string(call) + ": misaligned address");
    if (CUresult status = check_side(call, side_of(to, size), to, size)) return status;
    auto action = [=] {
        if (is_device_address(to) && check_range(call, to, size)) {
            return error(CUDA_ERROR_ILLEGAL_ADDRESS, std::string(call) + ": memory was freed before the fill ran");
        }
        DeviceMemoryWindow window;
        for (size_t row = 0; row < height; row++) {
            T* out = static_cast<T*>(pointer(to + row * pitch));
            for (size_t i = 0; i < width; i++) out[i] = value;
        }
        return CUresult(CUDA_SUCCESS);
    };
    return submit(stream, {Kind::kFill, call, action});
}

}  // namespace
}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
    return copy("cuMemcpyHtoD", kToDevice | kWaits, to, host(from), size, nullptr);
}
CUEMU_API cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
    return copy("cuMemcpyDtoH", kFromDevice | kWaits, host(to), from, size, nullptr);
}
// Copies between device addresses do not wait, in this form either.
CUEMU_API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return copy("cuMemcpyDtoD", kToDevice | kFromDevice, to, from, size, nullptr);
}
// Unified addressing: either side may be host or device memory.
CUEMU_API cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return copy("cuMemcpy", kWaits, to, from, size, nullptr);
}
CUEMU_API cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size) {
    return copy("cuMemcpyPeer", kToDevice | kFromDevice, to, from, size, nullptr);
}

CUEMU_API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
    return copy("cuMemcpyHtoDAsync", kToDevice, to, host(from), size, stream);
}
CUEMU_API cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
    return copy("cuMemcpyDtoHAsync", kFromDevice, host(to), from, size, stream);
}
CUEMU_API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return copy("cuMemcpyDtoDAsync", kToDevice | kFromDevice, to, from, size, stream);
}
CUEMU_API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return copy("cuMemcpyAsync", 0, to, from, size, stream);
}
CUEMU_API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size, CUstream stream) {
    return copy("cuMemcpyPeerAsync", kToDevice | kFromDevice, to, from, size, stream);
}

#define FILL(bits, type)                                                                                            \
    CUEMU_API cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {                    \
        return fill("cuMemsetD" #bits "Async", to, 0, value, count, 1, stream);                                     \
    }                                                                                                               \
    CUEMU_API cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count) {                                       \
        return fill("cuMemsetD" #bits, to, 0, value, count, 1, nullptr);                                            \
    }                                                                                                               \
    CUEMU_API cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height,        \
                                       CUstream stream) {                                                           \
        return fill("cuMemsetD2D" #bits "Async", to, pitch, value, width, height, stream);                          \
    }                                                                                                               \
    CUEMU_API cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height) {        \
        return fill("cuMemsetD2D" #bits, to, pitch, value, width, height, nullptr);                                 \
    }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)
#undef FILL
