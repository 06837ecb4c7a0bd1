// Fibers: a stack each and a hand-written switch (x86-64 System V). ucontext's swapcontext makes a system call per
// switch to save the signal mask; this switch saves seven registers and takes a few nanoseconds.
#pragma once

#include <cstddef>

namespace cuemu {

struct Fiber {
    void* stack_pointer;
    char* mapping;  // guard page, then the stack
    size_t colour;  // bytes left free at its top
};

// Saves the running context in *save and continues the one whose stack pointer is `target`.
extern "C" void cuemu_switch(void** save, void* target) __attribute__((visibility("hidden")));

// A fiber that starts in `entry`, which must not return. Stacks are reused: released fibers keep theirs.
Fiber* acquire_fiber(void (*entry)());

// Hands back a fiber that is suspended inside `entry` at a point from which it can be resumed for new work.
void release_fiber(Fiber* fiber);

// Hands back a fiber that is suspended anywhere: its frames are forgotten, destructors do not run.
void abandon_fiber(Fiber* fiber, void (*entry)());

// The lowest usable address and the size of the stack of a fiber.
char* stack_base(const Fiber* fiber);
size_t stack_size();

}  // namespace cuemu
