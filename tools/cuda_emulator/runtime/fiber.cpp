#include "fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "sanitizer.h"

#if !defined(__x86_64__)
#error "the emulator's fiber switch is written for x86-64"
#endif

asm(R"(
.text
.hidden cuemu_switch
.globl cuemu_switch
.type cuemu_switch, @function
cuemu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size cuemu_switch, .-cuemu_switch
)");

namespace cuemu {
namespace {

constexpr size_t kGuard = 4096;
constexpr int kSavedRegisters = 6;
std::vector<Fiber*> free_fibers;

// Stacks begin at different offsets in their pages: at one offset, their hot lines would share a few sets of the cache.
size_t next_colour() {
    static size_t fibers;
    return fibers++ * 320 % 4096;  // a multiple of a line, and 5 lines have no divisor in common with a page's 64
}

// The frame cuemu_switch expects: six registers, the address to return to, and above it the zero that stands for
// entry's own return address (which also gives entry the stack alignment of a called function).
void prepare(Fiber* fiber, void (*entry)()) {
    void** top = reinterpret_cast<void**>(stack_base(fiber) + stack_size() - fiber->colour);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(entry);
    for (int i = 0; i < kSavedRegisters; i++) *--top = nullptr;
    fiber->stack_pointer = top;
}

}  // namespace

size_t stack_size() {
    static const size_t size = [] {
        const char* kilobytes = std::getenv("CUEMU_STACK_KB");
        size_t requested = kilobytes ? std::strtoul(kilobytes, nullptr, 10) : 0;
        return (requested ? requested : 128) * 1024;  // the address sanitizer's frames need more than 64 KB
    }();
    return size;
}

char* stack_base(const Fiber* fiber) { return fiber->mapping + kGuard; }

Fiber* acquire_fiber(void (*entry)()) {
    if (!free_fibers.empty()) {
        Fiber* fiber = free_fibers.back();
        free_fibers.pop_back();
        return fiber;
    }
    void* mapping = mmap(nullptr, kGuard + stack_size(), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) throw std::bad_alloc();
    mprotect(mapping, kGuard, PROT_NONE);
    Fiber* fiber = new Fiber{nullptr, static_cast<char*>(mapping), next_colour()};
    prepare(fiber, entry);
    return fiber;
}

void release_fiber(Fiber* fiber) { free_fibers.push_back(fiber); }

void abandon_fiber(Fiber* fiber, void (*entry)()) {
    sanitizer_unpoison(stack_base(fiber), stack_size());  // forgotten frames leave their red zones behind
    prepare(fiber, entry);
    free_fibers.push_back(fiber);
}

}  // namespace cuemu
