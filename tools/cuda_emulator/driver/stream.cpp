// Streams and events. Work runs inside the call that submits it, so every stream is idle whenever the host asks; what
// remains is the life of the handles, the order rules that can be checked, and the time between events.
#include <chrono>
#include <set>

#include "state.h"

struct CUstream_st {
    unsigned flags;
    int priority;
};

struct CUevent_st {
    unsigned flags;
    bool recorded;
    std::chrono::steady_clock::time_point time;
};

namespace cuemu {
namespace {

std::set<CUstream>& live_streams() {
    static auto* streams = new std::set<CUstream>;
    return *streams;
}

std::set<CUevent>& live_events() {
    static auto* events = new std::set<CUevent>;
    return *events;
}

// 0, 1 and 2 are the default, the legacy and the per-thread stream.
CUresult check(CUstream stream) {
    Guard guard(driver_mutex);
    if (reinterpret_cast<uintptr_t>(stream) <= 2 || live_streams().count(stream)) return CUDA_SUCCESS;
    return error(CUDA_ERROR_INVALID_HANDLE, "not a live stream");
}

CUresult check(CUevent event) {
    Guard guard(driver_mutex);
    return live_events().count(event) ? CUDA_SUCCESS : error(CUDA_ERROR_INVALID_HANDLE, "not a live event");
}

}  // namespace
}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuStreamCreate")) return status;
    *stream = new CUstream_st{flags, priority};
    live_streams().insert(*stream);
    return CUDA_SUCCESS;
}
CUEMU_API cuStreamCreate(CUstream* stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

CUEMU_API cuStreamDestroy_v2(CUstream stream) {
    Guard guard(driver_mutex);
    if (!live_streams().erase(stream)) return error(CUDA_ERROR_INVALID_HANDLE, "cuStreamDestroy: not a live stream");
    delete stream;
    return CUDA_SUCCESS;
}

CUEMU_API cuStreamGetPriority(CUstream stream, int* priority) {
    if (CUresult status = check(stream)) return status;
    *priority = reinterpret_cast<uintptr_t>(stream) <= 2 ? 0 : stream->priority;
    return CUDA_SUCCESS;
}

CUEMU_API cuStreamGetFlags(CUstream stream, unsigned* flags) {
    if (CUresult status = check(stream)) return status;
    *flags = reinterpret_cast<uintptr_t>(stream) <= 2 ? 0 : stream->flags;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxSynchronize() { return require_context("cuCtxSynchronize"); }
CUEMU_API cuStreamSynchronize(CUstream stream) { return check(stream); }
CUEMU_API cuStreamQuery(CUstream stream) { return check(stream); }

CUEMU_API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
    CUresult status = check(stream);
    return status ? status : check(event);
}

CUEMU_API cuEventCreate(CUevent* event, unsigned flags) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuEventCreate")) return status;
    *event = new CUevent_st{flags, false, {}};
    live_events().insert(*event);
    return CUDA_SUCCESS;
}

CUEMU_API cuEventDestroy_v2(CUevent event) {
    Guard guard(driver_mutex);
    if (!live_events().erase(event)) return error(CUDA_ERROR_INVALID_HANDLE, "cuEventDestroy: not a live event");
    delete event;
    return CUDA_SUCCESS;
}

CUEMU_API cuEventRecord(CUevent event, CUstream stream) {
    CUresult status = check(stream);
    if (!status) status = check(event);
    if (status) return status;
    event->recorded = true;
    event->time = std::chrono::steady_clock::now();
    return CUDA_SUCCESS;
}

// An event that was never recorded counts as complete.
CUEMU_API cuEventQuery(CUevent event) { return check(event); }
CUEMU_API cuEventSynchronize(CUevent event) { return check(event); }

CUEMU_API cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    CUresult status = check(start);
    if (!status) status = check(end);
    if (status) return status;
    if (!start->recorded || !end->recorded || (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) {
        return error(CUDA_ERROR_INVALID_HANDLE, "cuEventElapsedTime: an event without timing, or never recorded");
    }
    *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
    return CUDA_SUCCESS;
}
CUEMU_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return cuEventElapsedTime_v2(milliseconds, start, end);
}
