#include "scheduler.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "fiber.h"
#include "sanitizer.h"

extern "C" {
cuemu::ThreadContext* cuemu_current = nullptr;
}

namespace cuemu {
namespace {

constexpr unsigned kWarp = 32;
constexpr size_t kSharedLimit = 256 * 1024;  // above the largest opt-in size of any architecture so far (227 KB)
constexpr size_t kSharedRedZone = 4096;
constexpr int kSharedFill = 0xCB;  // shared memory has no defined contents when a block starts

enum class State : uint8_t { kReady, kAtBarrier, kInCollective, kDone };
enum class Order { kForward, kReverse, kRandom };

struct AsyncCopy {
    void* to;
    const void* from;
    int size, valid;
    unsigned group;
};

struct Thread {
    ThreadContext context;
    Fiber* fiber;  // while the thread is suspended
    State state;
    int predicate;
    const char* barrier_file;
    int barrier_line;
    uint64_t collective_result;
    std::vector<AsyncCopy> copies;  // outstanding, in order
    unsigned copy_group;            // the one that the next copy belongs to
};

// A collective that waits for lanes. Disjoint masks of one warp may have one each at the same time.
struct Collective {
    unsigned mask, arrived;
    WarpOperation operation;
    uint64_t value[kWarp];
    int argument[kWarp];
};

struct Warp {
    unsigned existing, live;
    unsigned pending;  // collectives in use, holes included
    Collective collectives[kWarp];
};

// The state of the one launch in progress. A fiber runs thread after thread; the first one that has to wait keeps it, and
// another fiber goes on with the threads that have not begun. So a kernel whose threads never wait runs as a plain loop.
const Kernel* kernel;
const char* parameters;
std::vector<Thread> threads;
std::vector<Warp> warps;
unsigned live_threads, waiting_threads;
BarrierResult barrier_result;
Thread* running;
Fiber* running_fiber;
std::vector<unsigned> thread_order;
size_t threads_begun;  // of the block, in that order
size_t pass_position;  // of those that have begun, the ones before it had their turn in this pass over them
uint3 block_index;
void* scheduler_stack;
std::string failure;
unsigned long long thread_count;
uint64_t random_state;
thread_local bool kernel_on_this_thread;

Fiber* next_fiber();

// Leaves the running fiber for the next thread's, or for the scheduler, which begins another pass over the threads.
void switch_away() {
    Fiber* own = running_fiber;
    running_fiber = failure.empty() ? next_fiber() : nullptr;
    cuemu_switch(&own->stack_pointer, running_fiber ? running_fiber->stack_pointer : scheduler_stack);
}

void suspend() {
    running->fiber = running_fiber;
    switch_away();
}

std::string describe(const ThreadContext& at) {
    char text[256];
    std::snprintf(text, sizeof text, " [kernel %s, block (%u,%u,%u), thread (%u,%u,%u)]", kernel->name, at.block.x,
                  at.block.y, at.block.z, at.thread.x, at.thread.y, at.thread.z);
    return text;
}

void fail(const std::string& reason) {
    if (failure.empty()) failure = reason;
}

void end_running_thread() {
    for (;;) {
        running->state = State::kDone;
        suspend();
    }
}

// All live threads wait: they must wait at one and the same barrier.
void release_barrier() {
    const Thread* first = nullptr;
    barrier_result = {1, 0, 0};
    for (Thread& thread : threads) {
        if (thread.state != State::kAtBarrier) continue;
        if (!first) first = &thread;
        // The same call site mostly has the same string, so the comparison of texts is rare.
        const char *file = thread.barrier_file, *first_file = first->barrier_file;
        bool same_file = file == first_file || !std::strcmp(file, first_file);
        if (thread.barrier_line != first->barrier_line || !same_file) {
            fail("mismatched barriers: one thread waits at " + std::string(first->barrier_file) + ":" +
                 std::to_string(first->barrier_line) + ", another at " + thread.barrier_file + ":" +
                 std::to_string(thread.barrier_line) + describe(thread.context));
        }
        barrier_result.all &= thread.predicate != 0;
        barrier_result.any |= thread.predicate != 0;
        barrier_result.count += thread.predicate != 0;
        thread.state = State::kReady;
    }
    waiting_threads = 0;
}

void complete(Warp& warp, Collective& collective, unsigned warp_index) {
    uint64_t result[kWarp] = {};
    collective.operation(collective.mask, collective.value, collective.argument, result);
    for (unsigned lane = 0; lane < kWarp; lane++) {
        if (!(collective.mask >> lane & 1)) continue;
        Thread& thread = threads[warp_index * kWarp + lane];
        thread.state = State::kReady;
        thread.collective_result = result[lane];
    }
    collective.arrived = 0;
    while (warp.pending && !warp.collectives[warp.pending - 1].arrived) warp.pending--;
}

Collective& find_collective(Warp& warp, unsigned mask, WarpOperation operation) {
    Collective* hole = nullptr;
    for (unsigned i = 0; i < warp.pending; i++) {
        Collective& candidate = warp.collectives[i];
        if (!candidate.arrived) {
            hole = hole ? hole : &candidate;
        } else if (candidate.mask == mask) {
            if (candidate.operation != operation) {
                cuemu_trap("divergent warp: lanes of one mask meet in different operations");
            }
            return candidate;
        }
        // Another mask may overlap: its lanes come to this one after they have finished there.
    }
    Collective& collective = hole ? *hole : warp.collectives[warp.pending++];
    collective.mask = mask;
    collective.operation = operation;
    collective.arrived = 0;
    return collective;
}

// Runs the thread's copies of all groups before `group`.
void run_copies(Thread& thread, unsigned group) {
    size_t done = 0;
    for (; done < thread.copies.size() && thread.copies[done].group < group; done++) {
        const AsyncCopy& copy = thread.copies[done];
        std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.valid));
        std::memset(static_cast<char*>(copy.to) + copy.valid, 0, static_cast<size_t>(copy.size - copy.valid));
    }
    thread.copies.erase(thread.copies.begin(), thread.copies.begin() + static_cast<long>(done));
}

void finish(Thread& thread) {
    if (!thread.copies.empty()) run_copies(thread, thread.copy_group + 1);
    thread.state = State::kDone;
    live_threads--;
    warps[thread.context.warp].live &= ~(1u << thread.context.lane);
    // An exited thread no longer takes part in barriers, as on hardware.
    if (live_threads && waiting_threads == live_threads) release_barrier();
}

// Makes the next thread of the block that has not begun the running one; false if there is none.
bool begin_next_thread() {
    if (threads_begun == thread_order.size()) return false;
    Thread& thread = threads[thread_order[threads_begun++]];
    thread.state = State::kReady;
    thread.copy_group = 0;
    thread.context.block = block_index;
    running = &thread;
    cuemu_current = &thread.context;
    return true;
}

void fiber_entry() {
    for (;;) {
        kernel->call(parameters);
        finish(*running);
        if (failure.empty() && begin_next_thread()) continue;
        release_fiber(running_fiber);
        switch_away();
    }
}

// The fiber of the thread whose turn it is, which becomes the running one; null at the end of a pass.
Fiber* next_fiber() {
    if (begin_next_thread()) return acquire_fiber(fiber_entry);
    while (pass_position < thread_order.size()) {
        Thread& thread = threads[thread_order[pass_position++]];
        if (thread.state != State::kReady) continue;
        running = &thread;
        cuemu_current = &thread.context;
        Fiber* fiber = thread.fiber;
        thread.fiber = nullptr;
        return fiber;
    }
    return nullptr;
}

void report_deadlock() {
    const Thread *at_barrier = nullptr, *in_collective = nullptr;
    unsigned collectives = 0;
    for (const Thread& thread : threads) {
        if (thread.state == State::kAtBarrier) at_barrier = &thread;
        if (thread.state == State::kInCollective) in_collective = &thread, collectives++;
    }
    std::string text = "deadlock: ";
    if (at_barrier) {
        text = "mismatched barriers: " + std::to_string(waiting_threads) + " threads wait at __syncthreads (" +
               at_barrier->barrier_file + ":" + std::to_string(at_barrier->barrier_line) + "), ";
    }
    text += std::to_string(collectives) + " wait in warp collectives for lanes that do not come";
    fail(text + describe((in_collective ? in_collective : at_barrier)->context));
}

uint64_t next_random() {  // xorshift64
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

Order read_order() {
    const char* name = std::getenv("CUEMU_ORDER");
    if (!name || !*name || !std::strcmp(name, "forward")) return Order::kForward;
    if (!std::strcmp(name, "reverse")) return Order::kReverse;
    if (!std::strcmp(name, "random")) return Order::kRandom;
    fail(std::string("CUEMU_ORDER must be forward, reverse or random, not ") + name);
    return Order::kForward;
}

// Dynamic shared memory ends in a red zone, so that the sanitizer sees an index beyond the size of the launch.
char* dynamic_shared_memory() {
    static char* memory = static_cast<char*>(mmap(nullptr, kSharedLimit + kSharedRedZone, PROT_READ | PROT_WRITE,
                                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    return memory;
}

void run_block(uint3 block, char* shared, size_t shared_size) {
    unsigned count = static_cast<unsigned>(threads.size());
    std::memset(shared, kSharedFill, shared_size);
    block_index = block;
    live_threads = count;
    waiting_threads = 0;
    threads_begun = 0;
    for (unsigned w = 0; w < warps.size(); w++) {
        unsigned lanes = count - w * kWarp;
        warps[w].existing = warps[w].live = lanes >= kWarp ? ~0u : (1u << lanes) - 1;
        warps[w].pending = 0;
    }
    while (live_threads && failure.empty()) {
        pass_position = 0;
        running_fiber = next_fiber();
        if (running_fiber) {
            cuemu_switch(&scheduler_stack, running_fiber->stack_pointer);
        } else {
            report_deadlock();
        }
    }
}

// What does not change between launches of one block size stays.
void set_up_threads(const LaunchShape& shape, char* shared) {
    static dim3 present(0, 0, 0);
    const dim3& block = shape.block;
    unsigned count = block.x * block.y * block.z;
    if (block.x != present.x || block.y != present.y || block.z != present.z) {
        threads.resize(count);
        warps.resize((count + kWarp - 1) / kWarp);
        for (unsigned i = 0; i < count; i++) {
            ThreadContext& context = threads[i].context;
            context.thread = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
            context.block_dim = block;
            context.lane = i % kWarp;
            context.warp = i / kWarp;
        }
        present = block;
    }
    for (Thread& thread : threads) {
        thread.context.grid_dim = shape.grid;
        thread.context.dynamic_shared = shared;
        thread.fiber = nullptr;
        thread.state = State::kDone;
    }
}

// The n-th block to run. Random order steps through the grid with a stride that has no common divisor with it.
struct BlockOrder {
    uint64_t count, start = 0, stride = 1;
    BlockOrder(uint64_t blocks, Order order) : count(blocks) {
        if (order == Order::kReverse) start = blocks - 1, stride = blocks - 1 ? blocks - 1 : 1;
        if (order != Order::kRandom) return;
        start = next_random() % blocks;
        do stride = 1 + next_random() % blocks;
        while (std::gcd(stride, blocks) != 1);
    }
    uint64_t at(uint64_t n) const {
        return static_cast<uint64_t>((start + static_cast<unsigned __int128>(n) * stride) % count);
    }
};

}  // namespace

std::string run_grid(const Kernel& launched, const LaunchShape& shape, const char* packed_parameters) {
    failure.clear();
    kernel = &launched;
    parameters = packed_parameters;
    if (shape.dynamic_shared > kSharedLimit) return "too much dynamic shared memory";
    char* shared = dynamic_shared_memory();
    Order order = read_order();
    const char* seed = std::getenv("CUEMU_SEED");
    random_state = 88172645463325252ull + (seed ? std::strtoull(seed, nullptr, 10) * 0x9E3779B97F4A7C15ull : 0);
    if (!random_state) random_state = 1;

    set_up_threads(shape, shared);
    thread_order.resize(threads.size());
    std::iota(thread_order.begin(), thread_order.end(), 0u);
    if (order == Order::kReverse) std::reverse(thread_order.begin(), thread_order.end());

    uint64_t blocks = static_cast<uint64_t>(shape.grid.x) * shape.grid.y * shape.grid.z;
    BlockOrder block_order(blocks, order);
    thread_count += blocks * threads.size();
    sanitizer_unpoison(shared, shape.dynamic_shared);
    sanitizer_poison(shared + shape.dynamic_shared, kSharedLimit + kSharedRedZone - shape.dynamic_shared);
    kernel_on_this_thread = true;
    for (uint64_t n = 0; n < blocks && failure.empty(); n++) {
        uint64_t b = block_order.at(n);
        uint3 block = {static_cast<unsigned>(b % shape.grid.x), static_cast<unsigned>(b / shape.grid.x % shape.grid.y),
                       static_cast<unsigned>(b / shape.grid.x / shape.grid.y)};
        if (order == Order::kRandom) {
            for (size_t i = thread_order.size() - 1; i > 0; i--) {
                std::swap(thread_order[i], thread_order[next_random() % (i + 1)]);
            }
        }
        run_block(block, shared, shape.dynamic_shared);
    }
    kernel_on_this_thread = false;
    for (Thread& thread : threads) {
        if (thread.fiber) abandon_fiber(thread.fiber, fiber_entry);
        thread.copies.clear();
        thread.fiber = nullptr;
    }
    return failure;
}

bool inside_kernel() { return kernel_on_this_thread; }

void fault_current_thread(const char* message) {
    fail(message + describe(running->context));
    end_running_thread();
}

unsigned long long threads_run() { return thread_count; }

}  // namespace cuemu

using namespace cuemu;

extern "C" {

BarrierResult cuemu_barrier(int predicate, const char* file, int line) {
    Thread* self = running;
    self->predicate = predicate;
    self->barrier_file = file;
    self->barrier_line = line;
    self->state = State::kAtBarrier;
    if (++waiting_threads == live_threads) {
        release_barrier();
        if (!failure.empty()) end_running_thread();
    } else {
        suspend();
    }
    // Nobody reaches the next barrier's release before every thread has passed here: its count needs this thread.
    return barrier_result;
}

uint64_t cuemu_warp_collective(unsigned mask, uint64_t value, int argument, WarpOperation operation) {
    Thread* self = running;
    unsigned lane = self->context.lane;
    Warp& warp = warps[self->context.warp];
    mask &= warp.existing;  // a full mask is customary in a block whose last warp is partial
    if (!(mask >> lane & 1)) cuemu_trap("divergent warp: the calling lane is not in its own mask");
    if (mask & ~warp.live) cuemu_trap("divergent warp: the mask names a lane that has exited");
    Collective& collective = find_collective(warp, mask, operation);
    collective.value[lane] = value;
    collective.argument[lane] = argument;
    collective.arrived |= 1u << lane;
    self->state = State::kInCollective;
    if (collective.arrived == mask) {
        complete(warp, collective, self->context.warp);
    } else {
        suspend();
    }
    return self->collective_result;
}

unsigned cuemu_active_mask() { return warps[running->context.warp].live; }

void cuemu_async_copy(void* shared, const void* global, int size, int valid) {
    running->copies.push_back({shared, global, size, valid, running->copy_group});
}
void cuemu_async_commit() { running->copy_group++; }
void cuemu_async_wait(int groups_left) {
    unsigned left = static_cast<unsigned>(groups_left), current = running->copy_group;
    run_copies(*running, groups_left < 0 ? current + 1 : current > left ? current - left : 0);
}

void cuemu_trap(const char* message) { fault_current_thread(message); }

}  // extern "C"
