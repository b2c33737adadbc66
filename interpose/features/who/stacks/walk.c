#include "interpose/features/who/stacks/walk.h"

#include <ucontext.h>

#include "base/compiler.h"
#include "interpose/features/who/stacks/readable.h"
#include "interpose/features/who/stacks/unwind_table.h"
#include "interpose/host/program_caller.h"

/* The first and the last byte of this library in memory, as the linker sets them. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

#define LOWEST_CODE UINT64_C(4096)
#define HIGHEST_CODE (UINT64_C(1) << 47)

/* a bound on the length of a walk, since the frame of a signal handler that was damaged may lead
 * back to a lower frame, and the walk would never end */
#define MOST_STEPS 256

/* A frame pointer that lies more bytes above the stack pointer than this is not followed. The
 * register may hold another value, and memory that is no stack, such as a device's, must not be
 * read. */
#define FARTHEST ((uint64_t)1 << 20)

struct frame {
    uint64_t code;           /* the address of the next instruction that this frame executes */
    uint64_t stack, pointer; /* stack pointer and frame pointer */
    uint64_t reach; /* the most bytes by which the caller's stack pointer may be higher than this
                       frame's */
    bool exact;     /* whether a signal interrupted the frame at `code`; else `code` is a return
                       address */
};

/* Returns an address inside the instruction that the frame is executing. For a call, the return
 * address would not do, since it may already belong to the next function. */
static inline uint64_t call_of(const struct frame *frame) {
    return frame->exact ? frame->code : frame->code - 1;
}

static inline bool is_ours(uint64_t code) {
    return code >= (uint64_t)__ehdr_start && code < (uint64_t)_end;
}

#ifdef __x86_64__
#define HERE(frame)                                                                                \
    __asm__ volatile("lea 0f(%%rip), %0\n0: mov %%rsp, %1\n mov %%rbp, %2"                         \
                     : "=&r"((frame).code), "=&r"((frame).stack), "=&r"((frame).pointer))

/* Goes from a signal handler's frame to the interrupted one: the kernel stored the interrupted
 * registers in a ucontext_t just above the handler's return address. */
static bool leave_signal(struct bfc_readable *readable, struct frame *frame) {
    uint64_t registers = frame->stack + offsetof(ucontext_t, uc_mcontext.gregs);
    uint64_t stack;
    if (!bfc_readable_word(readable, registers + 8 * REG_RIP, &frame->code) ||
        !bfc_readable_word(readable, registers + 8 * REG_RBP, &frame->pointer) ||
        !bfc_readable_word(readable, registers + 8 * REG_RSP, &stack))
        return false;
    frame->stack = stack;
    frame->exact = true;
    return true;
}
#else
#define HERE(frame)                                                                                \
    __asm__ volatile("adr %0, 0f\n0: mov %1, sp\n mov %2, x29"                                     \
                     : "=&r"((frame).code), "=&r"((frame).stack), "=&r"((frame).pointer))

static bool leave_signal(struct bfc_readable *readable, struct frame *frame) {
    (void)readable, (void)frame;
    return false;
}
#endif

/* Finds the caller by the frame pointer, which points to two words: the caller's frame pointer and
 * the return address. */
static bool follow_pointer(struct bfc_readable *readable, struct frame *frame) {
    uint64_t at = frame->pointer;
    if (at < frame->stack || at - frame->stack > FARTHEST ||
        !bfc_readable_word(readable, at, &frame->pointer) ||
        !bfc_readable_word(readable, at + 8, &frame->code) || frame->code - frame->stack < FARTHEST)
        /* a return address does not point into the stack: if this word does, the register held
         * something else than a frame pointer */
        return false;
    frame->stack = at + 16;
    frame->reach = FARTHEST;
    frame->exact = false;
    return true;
}

static inline bool follow_rule(struct bfc_readable *readable, struct frame *frame,
                               bfc_frame_rule rule) {
    bool by_stack = bfc_rule_base(rule) == BFC_BASE_STACK;
    uint64_t base = (by_stack ? frame->stack : frame->pointer) + bfc_rule_base_offset(rule);
    if (UNLIKELY(bfc_rule_base(rule) == BFC_BASE_INDIRECT) &&
        !bfc_readable_word(readable, base, &base))
        return false;
    if (base <= frame->stack || base - frame->stack > frame->reach ||
        !bfc_readable_word(readable, base - 8, &frame->code))
        return false; /* stacks grow downwards, so a caller's frame is at a higher address */
    bool there = bfc_rule_pointer(rule) == BFC_POINTER_THERE;
    uint64_t saved = (there ? frame->pointer : base) + bfc_rule_pointer_offset(rule);
    if (bfc_rule_pointer(rule) != BFC_POINTER_KEPT &&
        !bfc_readable_word(readable, saved, &frame->pointer))
        return false;
    frame->stack = base;
    frame->exact = false;
    return true;
}

/* Returns the unwind rule for the frame. The rule is looked up for the byte before the return
 * address. A coroutine, however, returns to the first instruction of a function; the byte before
 * that belongs to another function or to none, so if that byte has no rule, the return address is
 * looked up. */
static inline bfc_frame_rule rule_of(struct bfc_readable *readable, const struct frame *frame) {
    bfc_frame_rule rule = bfc_frame_rule_at(readable, call_of(frame));
    if (UNLIKELY(bfc_rule_base(rule) == BFC_BASE_NONE && !frame->exact))
        rule = bfc_frame_rule_at(readable, frame->code);
    return rule;
}

static NOINLINE bool leave_otherwise(struct bfc_readable *readable, struct frame *frame,
                                     enum bfc_frame_base base) {
    return base == BFC_BASE_NONE     ? follow_pointer(readable, frame)
           : base == BFC_BASE_SIGNAL ? leave_signal(readable, frame)
                                     : false;
}

static inline bool leave_frame(struct bfc_readable *readable, struct frame *frame) {
    bfc_frame_rule rule = rule_of(readable, frame);
    enum bfc_frame_base base = bfc_rule_base(rule);
    bool ruled = base == BFC_BASE_STACK || base == BFC_BASE_POINTER || base == BFC_BASE_INDIRECT;
    bool left =
        LIKELY(ruled) ? follow_rule(readable, frame, rule) : leave_otherwise(readable, frame, base);
    return left && frame->code >= LOWEST_CODE && frame->code < HIGHEST_CODE;
}

NOINLINE size_t bfc_walk_stack(uint64_t *calls, size_t most, bool *in_handler) {
    struct bfc_readable readable;
    struct frame frame = {.exact = true, .reach = HIGHEST_CODE};
    size_t count = 0, steps = 0;
    uint64_t from = bfc_program_caller;
    *in_handler = false;
    HERE(frame);
    bfc_readable_begin(&readable);
    while (count < most && steps++ < MOST_STEPS && leave_frame(&readable, &frame)) {
        *in_handler |= frame.exact;
        if (frame.code == from)
            count = from = 0;
        if (!is_ours(frame.code))
            calls[count++] = call_of(&frame);
    }
    return count;
}
