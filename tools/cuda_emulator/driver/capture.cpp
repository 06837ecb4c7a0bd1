// Stream capture: which calls it forbids to whom, and how streams enter and leave it.
#include <algorithm>

#include "graph.h"

namespace cuemu {
namespace {

std::set<CapturePtr>& captures() {
    static auto* active = new std::set<CapturePtr>;
    return *active;
}

thread_local int thread_mode = kGlobal;

CUresult spoiled(const char* call) {
    return error(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, std::string(call) + ": an earlier call ended the capture");
}

void join(CUstream stream, const CapturePtr& capture) {
    stream->capture = capture;
    capture->streams.insert(stream);
}

void add_new(std::vector<CUgraphNode>& to, const std::vector<CUgraphNode>& nodes) {
    for (CUgraphNode node : nodes) {
        if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
    }
}

// True if some captured stream's last nodes do not lead to the origin's last ones.
bool has_unjoined_work(const Capture& capture) {
    std::set<CUgraphNode> joined;
    std::vector<CUgraphNode> open = capture.origin->capture_tail;
    while (!open.empty()) {
        CUgraphNode node = open.back();
        open.pop_back();
        if (joined.insert(node).second) open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
    }
    return joined.size() != capture.graph->nodes.size();
}

int status_of(CUstream stream) { return !stream->capture ? 0 : stream->capture->invalid ? 2 : 1; }

CUresult capture_info(CUstream handle, int* status, unsigned long long* id, CUgraph* graph,
                      const CUgraphNode** dependencies, size_t* count) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult failed = find_stream("cuStreamGetCaptureInfo", handle, &stream)) return failed;
    *status = status_of(stream);
    if (*status != 1) return CUDA_SUCCESS;
    if (id) *id = stream->capture->id;
    if (graph) *graph = stream->capture->graph;
    if (dependencies) *dependencies = stream->capture_tail.data();
    if (count) *count = stream->capture_tail.size();
    return CUDA_SUCCESS;
}

}  // namespace

CUresult spoil_capture(const CapturePtr& capture, CUresult code, const std::string& message) {
    capture->invalid = true;
    return error(code, message);
}

CUresult refuse_during_capture(const char* call) {
    if (thread_mode == kRelaxed) return CUDA_SUCCESS;
    for (const CapturePtr& capture : captures()) {
        bool own = capture->thread == std::this_thread::get_id();
        bool forbids = own ? capture->mode != kRelaxed : thread_mode == kGlobal && capture->mode == kGlobal;
        if (forbids) {
            return spoil_capture(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                 std::string(call) + ": not allowed while a stream is captured");
        }
    }
    return CUDA_SUCCESS;
}

CUresult refuse_default_stream(const char* call, CUstream stream) {
    if (!stream->is_legacy()) return CUDA_SUCCESS;
    for (const CapturePtr& capture : captures()) {
        for (CUstream captured : capture->streams) {
            if (captured->context != stream->context || !captured->is_blocking()) continue;
            return spoil_capture(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                                 std::string(call) + ": the default stream would wait for a captured stream");
        }
    }
    return CUDA_SUCCESS;
}

CUresult refuse_waiting(const char* call, CUstream stream) {
    if (!stream->capture) return refuse_default_stream(call, stream);
    return spoil_capture(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                         std::string(call) + ": the stream is being captured");
}

CUresult refuse_waiting(const char* call, CUcontext context) {
    for (const CapturePtr& capture : captures()) {
        for (CUstream captured : capture->streams) {
            if (captured->context == context) return refuse_waiting(call, captured);
        }
    }
    return CUDA_SUCCESS;
}

CUresult capture_action(CUstream stream, Action action) {
    if (stream->capture->invalid) return spoiled(action.name);
    CUgraph graph = stream->capture->graph;
    graph->nodes.emplace_back(new CUgraphNode_st{graph, std::move(action), std::move(stream->capture_tail)});
    stream->capture_tail = {graph->nodes.back().get()};
    return CUDA_SUCCESS;
}

CUresult capture_wait(CUstream stream, const CapturedEvent& event) {
    constexpr const char* call = "cuStreamWaitEvent";
    if (stream->capture && stream->capture->invalid) return spoiled(call);
    if (!event) {
        return spoil_capture(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                             std::string(call) + ": the event was recorded outside of the capture");
    }
    if (!event.capture->graph) {
        return error(CUDA_ERROR_CAPTURED_EVENT, std::string(call) + ": the event's capture has ended");
    }
    if (event.capture->invalid) return spoiled(call);
    if (stream->is_legacy()) {
        return spoil_capture(event.capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                             std::string(call) + ": the default stream cannot be captured");
    }
    if (stream->capture && stream->capture != event.capture) {
        spoil_capture(stream->capture, CUDA_SUCCESS, "");
        return spoil_capture(event.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE,
                             std::string(call) + ": the event belongs to another capture");
    }
    if (!stream->capture) join(stream, event.capture);
    add_new(stream->capture_tail, event.nodes);
    return CUDA_SUCCESS;
}

void leave_capture(CUstream stream) {
    if (!stream->capture) return;
    stream->capture->invalid = true;
    stream->capture->streams.erase(stream);
    stream->capture = nullptr;
    stream->capture_tail.clear();
}

}  // namespace cuemu

using namespace cuemu;

CUEMU_API cuStreamBeginCapture_v2(CUstream handle, int mode) {
    static unsigned long long ids;
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuStreamBeginCapture", handle, &stream)) return status;
    if (mode < kGlobal || mode > kRelaxed) return error(CUDA_ERROR_INVALID_VALUE, "cuStreamBeginCapture: unknown mode");
    if (stream->is_legacy()) {
        return error(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuStreamBeginCapture: the default stream");
    }
    if (stream->capture) return error(CUDA_ERROR_ILLEGAL_STATE, "cuStreamBeginCapture: it is captured already");
    Capture capture{++ids, mode, stream, std::this_thread::get_id(), new CUgraph_st, false, {}};
    auto shared = std::make_shared<Capture>(std::move(capture));
    captures().insert(shared);
    join(stream, shared);
    return CUDA_SUCCESS;
}
CUEMU_API cuStreamBeginCapture(CUstream stream) { return cuStreamBeginCapture_v2(stream, kGlobal); }

CUEMU_API cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    Guard guard(driver_mutex);
    CUstream stream;
    *graph = nullptr;
    if (CUresult status = find_stream("cuStreamEndCapture", handle, &stream)) return status;
    CapturePtr capture = stream->capture;
    if (!capture) return error(CUDA_ERROR_ILLEGAL_STATE, "cuStreamEndCapture: the stream is not captured");
    if (capture->origin != stream) {
        return spoil_capture(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                             "cuStreamEndCapture: the capture began in another stream");
    }
    if (capture->mode != kRelaxed && capture->thread != std::this_thread::get_id()) {
        return error(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "cuStreamEndCapture: the capture began in another thread");
    }
    bool unjoined = has_unjoined_work(*capture);
    for (CUstream captured : capture->streams) {
        captured->capture = nullptr;
        captured->capture_tail.clear();
    }
    capture->streams.clear();
    captures().erase(capture);
    std::unique_ptr<CUgraph_st> result(capture->graph);
    capture->graph = nullptr;
    if (capture->invalid) return spoiled("cuStreamEndCapture");
    if (unjoined) {
        return error(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                     "cuStreamEndCapture: another stream of the capture has work that this one does not wait for");
    }
    *graph = result.release();
    return CUDA_SUCCESS;
}

CUEMU_API cuStreamIsCapturing(CUstream handle, int* status) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult failed = find_stream("cuStreamIsCapturing", handle, &stream)) return failed;
    *status = status_of(stream);
    return CUDA_SUCCESS;
}

CUEMU_API cuStreamGetCaptureInfo(CUstream stream, int* status, unsigned long long* id) {
    return capture_info(stream, status, id, nullptr, nullptr, nullptr);
}
CUEMU_API cuStreamGetCaptureInfo_v2(CUstream stream, int* status, unsigned long long* id, CUgraph* graph,
                                    const CUgraphNode** dependencies, size_t* count) {
    return capture_info(stream, status, id, graph, dependencies, count);
}
CUEMU_API cuStreamGetCaptureInfo_v3(CUstream stream, int* status, unsigned long long* id, CUgraph* graph,
                                    const CUgraphNode** dependencies, const void** edges, size_t* count) {
    if (edges) *edges = nullptr;
    return capture_info(stream, status, id, graph, dependencies, count);
}

CUEMU_API cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* nodes, size_t count, unsigned flags) {
    constexpr unsigned kReplace = 1;
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuStreamUpdateCaptureDependencies", handle, &stream)) return status;
    if (!stream->capture) return error(CUDA_ERROR_ILLEGAL_STATE, "cuStreamUpdateCaptureDependencies: not captured");
    if (flags & kReplace) stream->capture_tail.clear();
    add_new(stream->capture_tail, {nodes, nodes + count});
    return CUDA_SUCCESS;
}
CUEMU_API cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes, const void*, size_t count,
                                               unsigned flags) {
    return cuStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}

CUEMU_API cuThreadExchangeStreamCaptureMode(int* mode) {
    if (*mode < kGlobal || *mode > kRelaxed) {
        return error(CUDA_ERROR_INVALID_VALUE, "cuThreadExchangeStreamCaptureMode: unknown mode");
    }
    std::swap(*mode, thread_mode);
    return CUDA_SUCCESS;
}
