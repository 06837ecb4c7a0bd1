// Work of streams: what is submitted, what it waits for, and when it runs.
//
// CUEMU_STREAMS chooses. `eager` (the default): everything runs inside the call that submits it. `late`: work stays in
// its stream's queue until something asks for it (a synchronisation, a blocking copy, a query), and then streams
// advance in a random order that respects streams, events and the default stream's rules and nothing more.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "state.h"

namespace cuemu {

enum class Kind { kKernel, kCopy, kFill, kHost, kEmpty, kMemory, kGraph };

// Something a stream does, in the context of the stream. A graph runs it again and again, so it owns what it needs.
// A failure is described by error().
struct Action {
    Kind kind;
    const char* name;
    std::function<CUresult()> run;
};

struct Item {
    Action action;
    CUstream stream;
    std::vector<std::shared_ptr<Item>> after;  // besides the item before it in its stream; empty when done
    bool done = false;
};
using ItemPtr = std::shared_ptr<Item>;

struct Capture;  // graph.h

// One recording of an event.
struct Stamp {
    bool reached = false;
    std::chrono::steady_clock::time_point time;
};

// The stream behind a handle: 0 and 1 are the current context's default stream, 2 the calling thread's own.
CUresult find_stream(const char* call, CUstream handle, CUstream* stream);
CUstream new_stream(CUcontext context, unsigned flags, int priority);
void retire_stream(CUstream stream);  // its work still runs

// Runs, queues or captures the action. In eager mode the result is the action's own.
CUresult submit(CUstream stream, Action action, const std::vector<ItemPtr>& after = {});

// The last item of the stream that is not done yet, or null.
ItemPtr last_item(CUstream stream);

// Runs what is needed; the result is an error that earlier work left in the context.
CUresult finish(CUcontext context, const ItemPtr& item);
CUresult finish_stream(CUstream stream);
CUresult finish_context(CUcontext context);
void finish_device(CUdevice device);  // all contexts; errors stay with them

// Runs a random piece of queued work, if there is some: what a query does, so that asking again ends in "ready".
void advance_once();

bool streams_are_late();
uint64_t random_number();  // from CUEMU_SEED

// A host function of a stream runs on this thread: it must not call the driver.
bool in_host_function();
CUresult run_host_function(const std::function<void()>& function);

}  // namespace cuemu

struct CUstream_st {
    CUcontext context;
    unsigned flags;
    int priority;
    unsigned long long id;
    bool live = true;   // a destroyed stream stays until its work is done
    bool busy = false;  // its first item runs at this moment
    std::deque<cuemu::ItemPtr> queue;
    std::shared_ptr<cuemu::Capture> capture;  // while it is being captured
    std::vector<CUgraphNode> capture_tail;    // what the next captured node depends on

    bool is_legacy() const { return context->legacy == this; }
    bool is_blocking() const { return !is_legacy() && !(flags & CU_STREAM_NON_BLOCKING); }
};
