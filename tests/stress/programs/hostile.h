/*
 * Stacks that a careless walker falls off: callers without unwind tables that use the frame pointer
 * as any other register, stacks of a program's own with a page beyond them that cannot be read, and
 * pages of a thread's own stack that cannot be read any more.
 */
#ifndef BFC_TESTS_STRESS_HOSTILE_H
#define BFC_TESTS_STRESS_HOSTILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum stack { USUAL, BARE, APART, WITHIN, STACK_KINDS };

/* The page at the top of a stack of its own can be read at times only. */
enum { HOSTILE_PAGE = 4096, HOSTILE_STACK = 512 << 10 };

struct hostile_stack {
    char *apart; /* mapped; its top page is the one */
    bool is_readable;
};

#ifdef __x86_64__
/* Calls `function(argument)` on the stack below `top` (0: on the present one), with `frame` as the
 * frame pointer. It has no unwind table. */
void hostile_call(uintptr_t top, uintptr_t frame, void (*function)(void *), void *argument);
__asm__(".text\n"
        ".type hostile_call, @function\n"
        "hostile_call:\n"
        "  push %rbp\n"
        "  push %rbx\n"
        "  mov %rsp, %rbx\n"
        "  test %rdi, %rdi\n"
        "  cmovnz %rdi, %rsp\n"
        "  and $-16, %rsp\n"
        "  mov %rsi, %rbp\n"
        "  mov %rcx, %rdi\n"
        "  call *%rdx\n"
        "  mov %rbx, %rsp\n"
        "  pop %rbx\n"
        "  pop %rbp\n"
        "  ret\n"
        ".size hostile_call, . - hostile_call\n");
#else
static void hostile_call(uintptr_t top, uintptr_t frame, void (*function)(void *), void *argument) {
    (void)top, (void)frame;
    function(argument);
}
#endif

static void protect_page(char *page, bool is_readable) {
    if (mprotect(page, HOSTILE_PAGE, is_readable ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        abort();
}

static void open_hostile_stack(struct hostile_stack *stack) {
    stack->apart = mmap(NULL, HOSTILE_STACK + HOSTILE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack->is_readable = true;
    if (stack->apart == MAP_FAILED)
        abort();
}

static void close_hostile_stack(struct hostile_stack *stack) {
    munmap(stack->apart, HOSTILE_STACK + HOSTILE_PAGE);
}

static void call_apart(struct hostile_stack *stack, void (*function)(void *), void *argument) {
    char *top = stack->apart + HOSTILE_STACK;
    stack->is_readable = !stack->is_readable;
    protect_page(top, stack->is_readable);
    hostile_call((uintptr_t)top, (uintptr_t)top + 64, function, argument);
}

/* Below a page of the thread's own stack that cannot be read meanwhile. */
static void call_within(void (*function)(void *), void *argument) {
    char room[HOSTILE_STACK + 2 * HOSTILE_PAGE];
    uintptr_t page =
        ((uintptr_t)room + HOSTILE_STACK + HOSTILE_PAGE - 1) & -(uintptr_t)HOSTILE_PAGE;
    protect_page((char *)page, false);
    hostile_call(page, page + 64, function, argument);
    protect_page((char *)page, true);
}

static void call_on(enum stack kind, struct hostile_stack *stack, void (*function)(void *),
                    void *argument) {
    if (kind == BARE)
        hostile_call(0, (uintptr_t)stack->apart + HOSTILE_STACK + 64, function, argument);
    else if (kind == APART)
        call_apart(stack, function, argument);
    else if (kind == WITHIN)
        call_within(function, argument);
    else
        function(argument);
}

#endif
