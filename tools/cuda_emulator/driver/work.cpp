#include "graph.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

namespace cuemu {
namespace {

constexpr size_t kQueueLimit = 1024;  // a driver also makes the host wait when so much is outstanding

// Every stream that is live or has work. Never destroyed: calls come from destructors of other libraries.
std::vector<CUstream>& streams() {
    static auto* all = new std::vector<CUstream>;
    return *all;
}

size_t pending;  // items in all queues
thread_local bool host_function_on_this_thread;

bool is_ready(CUstream stream) {
    if (stream->busy || stream->queue.empty()) return false;
    const auto& after = stream->queue.front()->after;
    return std::all_of(after.begin(), after.end(), [](const ItemPtr& item) { return item->done; });
}

void delete_if_retired(CUstream stream) {
    if (stream->live || stream->busy || !stream->queue.empty()) return;
    streams().erase(std::find(streams().begin(), streams().end(), stream));
    delete stream;
}

void run_first(CUstream stream) {
    ItemPtr item = stream->queue.front();
    stream->busy = true;
    // After a fault that stays, the context's work is dropped.
    if (!context_is_lost(stream->context) && item->action.run) {
        if (CUresult status = item->action.run()) note_fault(stream->context, status);
    }
    stream->busy = false;
    stream->queue.pop_front();
    pending--;
    item->done = true;
    item->after.clear();
    item->action.run = nullptr;
    driver_mutex.notify();
    delete_if_retired(stream);
}

// A stream whose first item has to run before `item` can; null if another thread runs it now.
CUstream stream_needed_for(ItemPtr item) {
    for (;;) {
        CUstream stream = item->stream;
        if (stream->busy) return nullptr;
        const auto& after = stream->queue.front()->after;
        auto waits_for = std::find_if(after.begin(), after.end(), [](const ItemPtr& other) { return !other->done; });
        if (waits_for == after.end()) return stream;
        item = *waits_for;
    }
}

CUstream random_ready_stream() {
    CUstream chosen = nullptr;
    unsigned ready = 0;
    for (CUstream stream : streams()) {
        if (is_ready(stream) && random_number() % ++ready == 0) chosen = stream;
    }
    return chosen;
}

// Either nothing runs but what the item needs, or everything may: one shows what nobody waited for, the other what ran
// although it should have waited.
void run_until_done(const ItemPtr& item) {
    bool only_needed = random_number() % 2;
    while (!item->done) {
        CUstream stream = only_needed ? stream_needed_for(item) : random_ready_stream();
        if (stream) {
            run_first(stream);
        } else {
            driver_mutex.wait();
        }
    }
}

void run_everything_ready() {
    for (bool progress = true; progress;) {
        progress = false;
        for (size_t i = 0; i < streams().size(); i++) {
            while (i < streams().size() && is_ready(streams()[i])) {
                run_first(streams()[i]);
                progress = true;
            }
        }
    }
}

// Work of the default stream waits for all blocking streams of the context; theirs waits for the default stream's.
void add_default_stream_order(CUstream stream, std::vector<ItemPtr>& after) {
    if (stream->is_blocking() && stream->context->legacy) {
        if (ItemPtr item = last_item(stream->context->legacy)) after.push_back(item);
    }
    if (!stream->is_legacy()) return;
    for (CUstream other : streams()) {
        if (other->context != stream->context || !other->is_blocking()) continue;
        if (ItemPtr item = last_item(other)) after.push_back(item);
    }
}

}  // namespace

uint64_t random_number() {  // xorshift64
    static uint64_t state = [] {
        const char* seed = std::getenv("CUEMU_SEED");
        uint64_t mixed = 88172645463325252ull + (seed ? std::strtoull(seed, nullptr, 10) * 0x9E3779B97F4A7C15ull : 0);
        return mixed ? mixed : 1;
    }();
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
}

bool streams_are_late() {
    const char* setting = std::getenv("CUEMU_STREAMS");
    return setting && !std::strcmp(setting, "late");
}

CUstream new_stream(CUcontext context, unsigned flags, int priority) {
    static unsigned long long ids;
    CUstream stream = new CUstream_st{context, flags, priority, ++ids};
    streams().push_back(stream);
    return stream;
}

CUresult find_stream(const char* call, CUstream handle, CUstream* stream) {
    if (CUresult status = require_context(call)) return status;
    CUcontext context = current_context();
    if (reinterpret_cast<uintptr_t>(handle) <= 1) {
        if (!context->legacy) context->legacy = new_stream(context, 0, 0);
        *stream = context->legacy;
        return CUDA_SUCCESS;
    }
    if (reinterpret_cast<uintptr_t>(handle) == 2) {
        static thread_local std::map<CUcontext, CUstream> own;
        CUstream& entry = own[context];
        if (!entry) entry = new_stream(context, 0, 0);
        *stream = entry;
        return CUDA_SUCCESS;
    }
    auto found = std::find(streams().begin(), streams().end(), handle);
    if (found == streams().end() || !handle->live) {
        return error(CUDA_ERROR_INVALID_HANDLE, std::string(call) + ": not a live stream");
    }
    *stream = handle;
    return CUDA_SUCCESS;
}

void retire_stream(CUstream stream) {
    leave_capture(stream);
    stream->live = false;
    delete_if_retired(stream);
}

ItemPtr last_item(CUstream stream) { return stream->queue.empty() ? nullptr : stream->queue.back(); }

CUresult submit(CUstream stream, Action action, const std::vector<ItemPtr>& after) {
    if (stream->capture) return capture_action(stream, std::move(action));
    if (CUresult status = refuse_default_stream(action.name, stream)) return status;
    bool late = streams_are_late();
    if (!late && !pending && !stream->busy) {
        stream->busy = true;
        CUresult status = action.run ? action.run() : CUDA_SUCCESS;
        stream->busy = false;
        if (status) note_returned_fault(stream->context, status);
        if (pending) run_everything_ready();  // submitted by others while a host function ran
        return status;
    }
    auto item = std::make_shared<Item>(Item{std::move(action), stream, after});
    add_default_stream_order(stream, item->after);
    stream->queue.push_back(item);
    pending++;
    if (late) {
        while (stream->queue.size() > kQueueLimit) run_until_done(stream->queue.front());
        return CUDA_SUCCESS;
    }
    run_everything_ready();
    return item->done ? take_fault(stream->context) : CUDA_SUCCESS;
}

CUresult finish(CUcontext context, const ItemPtr& item) {
    if (item) run_until_done(item);
    return take_fault(context);
}

CUresult finish_stream(CUstream stream) {
    CUcontext context = stream->context;
    bool busy = stream->busy;
    if (busy && stream->queue.empty()) {  // eager, and another thread runs a host function of it
        while (stream->busy) driver_mutex.wait();
    }
    return finish(context, last_item(stream));
}

CUresult finish_context(CUcontext context) {
    std::vector<ItemPtr> items;
    for (CUstream stream : streams()) {
        if (stream->context == context && last_item(stream)) items.push_back(last_item(stream));
    }
    for (const ItemPtr& item : items) run_until_done(item);
    return take_fault(context);
}

void finish_device(CUdevice device) {
    std::vector<ItemPtr> items;
    for (CUstream stream : streams()) {
        if (stream->context->device == device && last_item(stream)) items.push_back(last_item(stream));
    }
    for (const ItemPtr& item : items) run_until_done(item);
}

void advance_once() {
    if (CUstream stream = random_ready_stream()) run_first(stream);
}

bool in_host_function() { return host_function_on_this_thread; }

CUresult run_host_function(const std::function<void()>& function) {
    int depth = driver_mutex.let_go();
    host_function_on_this_thread = true;
    function();
    host_function_on_this_thread = false;
    driver_mutex.take_again(depth);
    driver_mutex.notify();
    return CUDA_SUCCESS;
}

}  // namespace cuemu
