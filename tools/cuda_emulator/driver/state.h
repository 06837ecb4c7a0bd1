// State shared by the files of the driver: one lock over everything, the message of the last error, contexts and the
// current one of each host thread.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "abi.h"

// Streams' work runs in the context they were made in. Never freed, so that late calls find a context that is gone.
struct CUctx_st {
    CUdevice device;
    bool primary;
    bool destroyed = false;
    unsigned flags = 0;
    CUstream legacy = nullptr;  // the default stream: other streams of the context wait for it, and it for them
    unsigned peers = 0;         // bit d: kernels of this context may use the memory of device d
    CUresult fault = CUDA_SUCCESS;  // what earlier work ended with; returned by the calls that follow
    std::string fault_message;
    std::map<int, size_t> limits;
};

namespace cuemu {

// Calls from several host threads take turns; recursive, since driver calls are built from one another. A host function
// of a stream runs with the lock let go, since it may wait for a thread that is inside the driver.
class DriverMutex {
  public:
    void lock();
    void unlock();
    int let_go();           // from any depth, which is returned
    void take_again(int depth);
    void wait();            // until another thread has notified, with the lock let go meanwhile
    void notify();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
};
extern DriverMutex driver_mutex;
using Guard = std::lock_guard<DriverMutex>;

// Records what went wrong; cuGetErrorString appends the text to the name of this code until the next error.
CUresult error(CUresult code, const std::string& message);

// CUDA_SUCCESS when this thread has a current context that is in order, as almost every call requires.
CUresult require_context(const char* call);

// This thread's current context; null if there is none.
CUcontext current_context();

CUcontext primary_context(CUdevice device);
bool is_live_context(CUcontext context);

int device_count();  // CUEMU_DEVICES, 1 by default
CUresult check_device(const char* call, CUdevice device);

// A context's work ended with an error, which error() described. With CUEMU_ERRORS=sticky every later call in the context
// returns it, as after a fault on hardware; otherwise the next call that waits for work returns it, once.
void note_fault(CUcontext context, CUresult code);
CUresult take_fault(CUcontext context);

// The same for an error that the submitting call returns itself: it is kept only where errors are sticky.
void note_returned_fault(CUcontext context, CUresult code);

// True after a fault where errors are sticky: nothing runs in the context any more.
bool context_is_lost(CUcontext context);

}  // namespace cuemu
