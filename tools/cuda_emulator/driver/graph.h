// Stream capture and graphs. While a stream is captured, what is submitted to it becomes a node of a graph that depends on
// the nodes before it in the stream; waiting for an event that was recorded in a captured stream draws the waiting stream
// into the capture.
#pragma once

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "work.h"

struct CUgraphNode_st {
    CUgraph graph;
    cuemu::Action action;
    std::vector<CUgraphNode> dependencies;  // earlier nodes of the graph
};

struct CUgraph_st {
    std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

namespace cuemu {

enum CaptureMode { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

struct Capture {
    unsigned long long id;
    int mode;
    CUstream origin;
    std::thread::id thread;
    CUgraph graph;  // null once the capture has ended
    bool invalid = false;
    std::set<CUstream> streams;
};
using CapturePtr = std::shared_ptr<Capture>;

// What an event holds that was recorded in a captured stream.
struct CapturedEvent {
    CapturePtr capture;
    std::vector<CUgraphNode> nodes;
    explicit operator bool() const { return capture != nullptr; }
};

// The error code, with the captures it spoils invalid from here on.
CUresult spoil_capture(const CapturePtr& capture, CUresult code, const std::string& message);

// CUDA_SUCCESS unless a capture forbids calls like this one (allocation, blocking copies, loading) to this thread.
CUresult refuse_during_capture(const char* call);

// The same for using the default stream while a stream that it would wait for is captured, for waiting for or asking about
// a captured stream, and for waiting for a context in which one is.
CUresult refuse_default_stream(const char* call, CUstream stream);
CUresult refuse_waiting(const char* call, CUstream stream);
CUresult refuse_waiting(const char* call, CUcontext context);

// Adds a node to the graph that the stream's work goes to.
CUresult capture_action(CUstream stream, Action action);
// A stream waits for an event and one of the two is captured.
CUresult capture_wait(CUstream stream, const CapturedEvent& event);
void leave_capture(CUstream stream);

}  // namespace cuemu
