// The lock, error codes and their texts, and the errors that stay with a context.
#include <cstdlib>
#include <cstring>
#include <map>

#include "state.h"

namespace cuemu {

DriverMutex driver_mutex;

namespace {

thread_local int lock_depth;
std::string last_message, error_text;
CUresult last_code = CUDA_SUCCESS;

struct ErrorName { const char *name, *meaning; };

#define ENTRY(code, meaning) {code, {#code, meaning}}
const std::map<CUresult, ErrorName>& error_names() {
    static const auto* names = new std::map<CUresult, ErrorName>{
        ENTRY(CUDA_SUCCESS, "no error"),
        ENTRY(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
        ENTRY(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
        ENTRY(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
        ENTRY(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
        ENTRY(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
        ENTRY(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
        ENTRY(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
        ENTRY(CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"),
        ENTRY(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
        ENTRY(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
        ENTRY(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
        ENTRY(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
        ENTRY(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
        ENTRY(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
        ENTRY(CUDA_ERROR_NOT_READY, "device not ready"),
        ENTRY(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
        ENTRY(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
        ENTRY(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
        ENTRY(CUDA_ERROR_ASSERT, "device-side assert triggered"),
        ENTRY(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
        ENTRY(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
        ENTRY(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
        ENTRY(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
        ENTRY(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
        ENTRY(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
        ENTRY(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
        ENTRY(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
        ENTRY(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
        ENTRY(CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences"),
        ENTRY(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
        ENTRY(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
        ENTRY(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
        ENTRY(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing blocking stream"),
        ENTRY(CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream"),
        ENTRY(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "attempt to terminate a thread-local capture sequence from another thread"),
        ENTRY(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph update was not performed because it included changes which violated constraints"),
    };
    return *names;
}
#undef ENTRY

bool errors_stick() {
    const char* setting = std::getenv("CUEMU_ERRORS");
    return setting && !std::strcmp(setting, "sticky");
}

}  // namespace

void DriverMutex::lock() {
    if (!lock_depth++) mutex_.lock();
}
void DriverMutex::unlock() {
    if (!--lock_depth) mutex_.unlock();
}
int DriverMutex::let_go() {
    int depth = lock_depth;
    lock_depth = 0;
    mutex_.unlock();
    return depth;
}
void DriverMutex::take_again(int depth) {
    mutex_.lock();
    lock_depth = depth;
}
void DriverMutex::wait() {
    int depth = lock_depth;
    lock_depth = 0;
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
    lock_depth = depth;
}
void DriverMutex::notify() { changed_.notify_all(); }

CUresult error(CUresult code, const std::string& message) {
    Guard guard(driver_mutex);
    last_code = code;
    last_message = message;
    return code;
}

void note_fault(CUcontext context, CUresult code) {
    if (context->fault) return;  // the first one explains the others
    context->fault = code;
    context->fault_message = last_message;
}

void note_returned_fault(CUcontext context, CUresult code) {
    if (errors_stick()) note_fault(context, code);
}

bool context_is_lost(CUcontext context) { return context->fault && errors_stick(); }

CUresult take_fault(CUcontext context) {
    if (!context->fault) return CUDA_SUCCESS;
    CUresult code = error(context->fault, context->fault_message);
    if (!errors_stick()) context->fault = CUDA_SUCCESS;
    return code;
}

}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuGetErrorName(CUresult code, const char** name) {
    auto it = error_names().find(code);
    *name = it == error_names().end() ? nullptr : it->second.name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The text stays valid until the next error is described.
CUEMU_API cuGetErrorString(CUresult code, const char** text) {
    Guard guard(driver_mutex);
    auto it = error_names().find(code);
    if (it == error_names().end()) {
        *text = nullptr;
        return CUDA_ERROR_INVALID_VALUE;
    }
    error_text = it->second.meaning;
    if (code == last_code && code != CUDA_SUCCESS) error_text += " (" + last_message + ")";
    *text = error_text.c_str();
    return CUDA_SUCCESS;
}
