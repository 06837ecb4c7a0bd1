// The calls on streams and events.
#include <set>

#include "graph.h"
#include "memory.h"

struct CUevent_st {
    unsigned flags;
    CUcontext context;
    std::shared_ptr<cuemu::Stamp> stamp;  // of the last recording; null if there is none
    cuemu::ItemPtr item;                  // what the recording waits for in its stream; null or done: complete
    cuemu::CapturedEvent captured;        // if the last recording was in a captured stream
};

namespace cuemu {
namespace {

std::set<CUevent>& live_events() {
    static auto* events = new std::set<CUevent>;
    return *events;
}

CUresult check(const char* call, CUevent event) {
    if (live_events().count(event)) return CUDA_SUCCESS;
    return error(CUDA_ERROR_INVALID_HANDLE, std::string(call) + ": not a live event");
}

// Both of a call that has a stream and an event.
CUresult check(const char* call, CUevent event, CUstream handle, CUstream* stream) {
    CUresult status = find_stream(call, handle, stream);
    return status ? status : check(call, event);
}

CUresult refuse_waiting(const char* call, CUevent event) {
    if (!event->captured) return refuse_during_capture(call);
    return spoil_capture(event->captured.capture, CUDA_ERROR_CAPTURED_EVENT,
                         std::string(call) + ": the event was recorded in a captured stream");
}

// Flags of recording and waiting that make a node of the graph instead of an edge.
CUresult refuse_external(const char* call, CUstream stream) {
    return spoil_capture(stream->capture, CUDA_ERROR_NOT_SUPPORTED,
                         std::string(call) + ": the emulator's graphs have no nodes for events");
}

bool is_complete(CUevent event) { return !event->item || event->item->done; }

}  // namespace

bool is_interprocess(CUevent event) { return live_events().count(event) && event->flags & CU_EVENT_INTERPROCESS; }

}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuStreamCreate")) return status;
    if (flags & ~CU_STREAM_NON_BLOCKING) return error(CUDA_ERROR_INVALID_VALUE, "cuStreamCreate: unknown flags");
    *stream = new_stream(current_context(), flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    return CUDA_SUCCESS;
}
CUEMU_API cuStreamCreate(CUstream* stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

CUEMU_API cuStreamDestroy_v2(CUstream handle) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuStreamDestroy", handle, &stream)) return status;
    if (stream != handle) return error(CUDA_ERROR_INVALID_HANDLE, "cuStreamDestroy: a default stream");
    retire_stream(stream);
    return CUDA_SUCCESS;
}

CUEMU_API cuStreamGetPriority(CUstream handle, int* priority) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuStreamGetPriority", handle, &stream)) return status;
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUEMU_API cuStreamGetFlags(CUstream handle, unsigned* flags) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuStreamGetFlags", handle, &stream)) return status;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

CUEMU_API cuStreamGetCtx(CUstream handle, CUcontext* context) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuStreamGetCtx", handle, &stream)) return status;
    *context = stream->context;
    return CUDA_SUCCESS;
}

CUEMU_API cuStreamGetDevice(CUstream handle, CUdevice* device) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuStreamGetDevice", handle, &stream)) return status;
    *device = stream->context->device;
    return CUDA_SUCCESS;
}

CUEMU_API cuStreamGetId(CUstream handle, unsigned long long* id) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuStreamGetId", handle, &stream)) return status;
    *id = stream->id;
    return CUDA_SUCCESS;
}

CUEMU_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return require_context("cuCtxGetStreamPriorityRange");
}

CUEMU_API cuCtxSynchronize() {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuCtxSynchronize")) return status;
    if (CUresult status = refuse_waiting("cuCtxSynchronize", current_context())) return status;
    return finish_context(current_context());
}
CUEMU_API cuCtxSynchronize_v2(CUcontext context) {
    Guard guard(driver_mutex);
    if (!context) return cuCtxSynchronize();
    if (!is_live_context(context)) return error(CUDA_ERROR_INVALID_CONTEXT, "cuCtxSynchronize: not a live context");
    if (CUresult status = refuse_waiting("cuCtxSynchronize", context)) return status;
    return finish_context(context);
}

CUEMU_API cuStreamSynchronize(CUstream handle) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuStreamSynchronize", handle, &stream)) return status;
    if (CUresult status = refuse_waiting("cuStreamSynchronize", stream)) return status;
    return finish_stream(stream);
}

// "Not ready" is an answer and leaves no message.
CUEMU_API cuStreamQuery(CUstream handle) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuStreamQuery", handle, &stream)) return status;
    if (CUresult status = refuse_waiting("cuStreamQuery", stream)) return status;
    if (last_item(stream)) advance_once();
    return last_item(stream) || stream->busy ? CUDA_ERROR_NOT_READY : take_fault(stream->context);
}

CUEMU_API cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = check("cuStreamWaitEvent", event, handle, &stream)) return status;
    if (flags && stream->capture) return refuse_external("cuStreamWaitEvent", stream);
    if (event->captured || (stream->capture && event->stamp)) return capture_wait(stream, event->captured);
    if (is_complete(event)) return CUDA_SUCCESS;
    return submit(stream, {Kind::kEmpty, "wait for event", nullptr}, {event->item});
}

CUEMU_API cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuLaunchHostFunc", handle, &stream)) return status;
    if (!function) return error(CUDA_ERROR_INVALID_VALUE, "cuLaunchHostFunc: null function");
    return submit(stream, {Kind::kHost, "host function", [=] { return run_host_function([=] { function(data); }); }});
}

CUEMU_API cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuStreamAddCallback", handle, &stream)) return status;
    auto call = [=] { callback(handle, CUDA_SUCCESS, data); };
    return submit(stream, {Kind::kHost, "callback", [=] { return run_host_function(call); }});
}

CUEMU_API cuEventCreate(CUevent* event, unsigned flags) {
    Guard guard(driver_mutex);
    if (CUresult status = require_context("cuEventCreate")) return status;
    if (flags & ~7u || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING))) {
        return error(CUDA_ERROR_INVALID_VALUE, "cuEventCreate: unknown flags, or interprocess without disabled timing");
    }
    *event = new CUevent_st{flags, current_context(), nullptr, nullptr, {}};
    live_events().insert(*event);
    return CUDA_SUCCESS;
}

CUEMU_API cuEventDestroy_v2(CUevent event) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuEventDestroy", event)) return status;
    live_events().erase(event);
    delete event;
    return CUDA_SUCCESS;
}

CUEMU_API cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned flags) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = check("cuEventRecord", event, handle, &stream)) return status;
    if (stream->context != event->context) {
        return error(CUDA_ERROR_INVALID_HANDLE, "cuEventRecord: event and stream belong to different contexts");
    }
    if (flags && stream->capture) return refuse_external("cuEventRecord", stream);
    if (stream->capture) {
        if (stream->capture->invalid) return error(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "cuEventRecord");
        event->captured = {stream->capture, stream->capture_tail};
        return CUDA_SUCCESS;
    }
    event->captured = {};
    auto stamp = event->stamp = std::make_shared<Stamp>();
    auto reach = [stamp] {
        stamp->time = std::chrono::steady_clock::now();
        stamp->reached = true;
        return CUDA_SUCCESS;
    };
    CUresult status = submit(stream, {Kind::kEmpty, "record event", reach});
    event->item = stamp->reached ? nullptr : last_item(stream);
    if (is_interprocess(event) && event->item) return finish(stream->context, event->item);
    return status;
}
CUEMU_API cuEventRecord(CUevent event, CUstream stream) { return cuEventRecordWithFlags(event, stream, 0); }

// An event that was never recorded counts as complete.
CUEMU_API cuEventQuery(CUevent event) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuEventQuery", event)) return status;
    if (CUresult status = refuse_waiting("cuEventQuery", event)) return status;
    if (!is_complete(event)) advance_once();
    return is_complete(event) ? take_fault(event->context) : CUDA_ERROR_NOT_READY;
}

CUEMU_API cuEventSynchronize(CUevent event) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuEventSynchronize", event)) return status;
    if (CUresult status = refuse_waiting("cuEventSynchronize", event)) return status;
    return finish(event->context, is_complete(event) ? nullptr : event->item);
}

CUEMU_API cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    Guard guard(driver_mutex);
    CUresult status = check("cuEventElapsedTime", start);
    if (!status) status = check("cuEventElapsedTime", end);
    if (status) return status;
    if (!start->stamp || !end->stamp || (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) {
        return error(CUDA_ERROR_INVALID_HANDLE, "cuEventElapsedTime: an event without timing, or never recorded");
    }
    if (!start->stamp->reached || !end->stamp->reached) return CUDA_ERROR_NOT_READY;
    *milliseconds = std::chrono::duration<float, std::milli>(end->stamp->time - start->stamp->time).count();
    return CUDA_SUCCESS;
}
CUEMU_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return cuEventElapsedTime_v2(milliseconds, start, end);
}
