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

// `height` rows of `width` bytes.
struct Rectangle {
    CUdeviceptr to;
    size_t to_pitch;
    CUdeviceptr from;
    size_t from_pitch, width, height;

    size_t to_size() const { return (height - 1) * to_pitch + width; }
    size_t from_size() const { return (height - 1) * from_pitch + width; }
};

// The ends were checked at submission; memory freed since then has to be found when the copy runs.
CUresult run_copy(const char* call, const Rectangle& copied) {
    bool freed = (is_device_address(copied.to) && !is_device_range(copied.to, copied.to_size())) ||
                 (is_device_address(copied.from) && !is_device_range(copied.from, copied.from_size()));
    if (freed) return error(CUDA_ERROR_ILLEGAL_ADDRESS, std::string(call) + ": memory was freed before the copy ran");
    DeviceMemoryWindow window;
    for (size_t row = 0; row < copied.height; row++) {
        const void* from = pointer(copied.from + row * copied.from_pitch);
        std::memmove(pointer(copied.to + row * copied.to_pitch), from, copied.width);
    }
    return CUDA_SUCCESS;
}

// What a call fixes: that an end is device memory, and that it returns when the copy is done.
enum Form { kToDevice = 1, kFromDevice = 2, kWaits = 4 };

CUresult copy(const char* call, int form, const Rectangle& copied, CUstream handle) {
    Guard guard(driver_mutex);
    bool waits = form & kWaits;
    CUstream stream;
    if (CUresult status = find_stream(call, handle, &stream)) return status;
    if (waits) {
        if (CUresult status = refuse_during_capture(call)) return status;
    }
    if (!copied.width || !copied.height) return CUDA_SUCCESS;
    Side target = form & kToDevice ? Side::kDevice : side_of(copied.to, copied.to_size());
    Side source = form & kFromDevice ? Side::kDevice : side_of(copied.from, copied.from_size());
    CUresult status = check_side(call, target, copied.to, copied.to_size());
    if (!status) status = check_side(call, source, copied.from, copied.from_size());
    if (status) return status;

    std::function<CUresult()> action = [=] { return run_copy(call, copied); };
    if (!waits && source == Side::kPageable && streams_are_late() && !stream->capture) {
        const char* start = static_cast<const char*>(pointer(copied.from));
        auto staged = std::make_shared<std::vector<char>>(start, start + copied.from_size());
        Rectangle from_staged = copied;
        from_staged.from = reinterpret_cast<CUdeviceptr>(staged->data());
        action = [call, staged, from_staged] { return run_copy(call, from_staged); };
    }
    status = submit(stream, {Kind::kCopy, call, std::move(action)});
    bool to_pageable = target == Side::kPageable && !stream->capture;
    return !status && (waits || to_pageable) ? finish_stream(stream) : status;
}

CUresult copy(const char* call, int form, CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return copy(call, form, {to, 0, from, 0, size, 1}, stream);
}

// cuMemcpy2D's description of a copy.
struct Memcpy2D {
    struct End {
        size_t x, y;
        int type;  // 1 host, 2 device, 4 unified: the address is in `device`
        void* host;
        CUdeviceptr device;
        void* array;
        size_t pitch;

        CUdeviceptr address() const {
            return (type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device) + y * pitch + x;
        }
    } from, to;
    size_t width, height;
};

CUresult copy_2d(const char* call, const Memcpy2D& description, CUstream stream, bool waits) {
    const Memcpy2D::End &from = description.from, &to = description.to;
    for (const Memcpy2D::End& end : {from, to}) {
        bool known = end.type == CU_MEMORYTYPE_HOST || end.type == CU_MEMORYTYPE_DEVICE || end.type == 4;
        if (!known) return error(CUDA_ERROR_NOT_SUPPORTED, std::string(call) + ": the emulator has no arrays");
        if (description.height > 1 && end.pitch < description.width) {
            return error(CUDA_ERROR_INVALID_VALUE, std::string(call) + ": a row is longer than the pitch");
        }
    }
    int form = (to.type == CU_MEMORYTYPE_DEVICE ? kToDevice : 0) | (from.type == CU_MEMORYTYPE_DEVICE ? kFromDevice : 0);
    bool on_device = form == (kToDevice | kFromDevice);
    Rectangle copied{to.address(), to.pitch, from.address(), from.pitch, description.width, description.height};
    return copy(call, form | (waits && !on_device ? kWaits : 0), copied, stream);
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

CUEMU_API cuMemcpy2D_v2(const Memcpy2D* description) { return copy_2d("cuMemcpy2D", *description, nullptr, true); }
CUEMU_API cuMemcpy2DUnaligned_v2(const Memcpy2D* description) {
    return copy_2d("cuMemcpy2DUnaligned", *description, nullptr, true);
}
CUEMU_API cuMemcpy2DAsync_v2(const Memcpy2D* description, CUstream stream) {
    return copy_2d("cuMemcpy2DAsync", *description, stream, false);
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
