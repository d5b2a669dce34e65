// Stacks of fibers, and going from one to another: callee-saved registers are pushed, as the System V ABI asks.
#include "fiber.h"

#include <string.h>
#include <sys/mman.h>

#include "sanitizer.h"

extern "C" void simt_switch(void **save, void *to);

#if defined __x86_64__
enum { SAVED = 6 };
asm(".text\n.globl simt_switch\n.type simt_switch,@function\nsimt_switch:\n"
    "pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
    "movq %rsp,(%rdi); movq %rsi,%rsp\n"
    "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp\n"
    "ret\n.size simt_switch,.-simt_switch\n");
#elif defined __aarch64__
enum { SAVED = 11 }; // The slot of x30.
asm(".text\n.globl simt_switch\n.type simt_switch,@function\nsimt_switch:\n"
    "sub sp,sp,#160\n"
    "stp x19,x20,[sp]; stp x21,x22,[sp,#16]; stp x23,x24,[sp,#32]\n"
    "stp x25,x26,[sp,#48]; stp x27,x28,[sp,#64]; stp x29,x30,[sp,#80]\n"
    "stp d8,d9,[sp,#96]; stp d10,d11,[sp,#112]; stp d12,d13,[sp,#128]; stp d14,d15,[sp,#144]\n"
    "mov x9,sp; str x9,[x0]; mov sp,x1\n"
    "ldp x19,x20,[sp]; ldp x21,x22,[sp,#16]; ldp x23,x24,[sp,#32]\n"
    "ldp x25,x26,[sp,#48]; ldp x27,x28,[sp,#64]; ldp x29,x30,[sp,#80]\n"
    "ldp d8,d9,[sp,#96]; ldp d10,d11,[sp,#112]; ldp d12,d13,[sp,#128]; ldp d14,d15,[sp,#144]\n"
    "add sp,sp,#160\nret\n.size simt_switch,.-simt_switch\n");
#else
#error "simt_switch has to be written for this processor"
#endif

namespace simt {

enum { STACK_BYTES = 128 << 10, GUARD_BYTES = 4096 };

// The sanitizer has to know whose stack it is on; the last switch of a fiber gives up its fake stack.
void switch_to(fiber_t *to, bool for_ever) {
    fiber_t *from = current;
    if (to == from) return;
    current = to;
    simt_start_switch(for_ever ? NULL : &from->fake_stack, to->stack, to->stack_bytes);
    simt_switch(&from->stack_pointer, to->stack_pointer);
    simt_finish_switch(current->fake_stack, NULL, NULL);
}

static void entry() {
    const void *stack = NULL;
    size_t bytes = 0;
    simt_finish_switch(NULL, &stack, &bytes);
    if (!host.stack) {
        host.stack = (char *)(uintptr_t)stack;
        host.stack_bytes = bytes;
    }
    run_fiber();
}

// A stack, made once and kept, that begins in entry(); a page below it catches what is too deep.
void make_stack(fiber_t *fiber) {
    if (!fiber->stack) {
        char *memory = (char *)mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) != 0) {
            fail("no memory for stacks");
        }
        fiber->stack = memory + GUARD_BYTES;
        fiber->stack_bytes = STACK_BYTES;
    }
    simt_unpoison(fiber->stack, STACK_BYTES);
    void **top = (void **)(fiber->stack + STACK_BYTES) - 2;
    memset(top - SAVED - 16, 0, (SAVED + 16) * sizeof *top);
#if defined __x86_64__
    top[0] = (void *)entry; // The return address; the stack is then as behind a call.
    fiber->stack_pointer = top - SAVED;
#else
    top -= 20;
    top[SAVED] = (void *)entry;
    fiber->stack_pointer = top;
#endif
    fiber->fake_stack = NULL;
}

} // namespace simt
