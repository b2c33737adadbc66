/* The walk from frame to frame. */
#include "interpose/features/who/stacks/walk.h"

#include <ucontext.h>

#include "base/compiler.h"
#include "interpose/features/who/stacks/unwind_table.h"
#include "interpose/host/program_caller.h"
#include "interpose/host/readable.h"

/* Of this library, by the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

#define LOWEST_CODE UINT64_C(4096)
#define HIGHEST_CODE (UINT64_C(1) << 47)

/* Frames that lead nowhere go in circles through forged frames of signal handlers. */
#define MOST_STEPS 256

/* What may be no frame pointer at all leads no farther: other memory, such as a device's, is not
 * read to find out. */
#define FARTHEST ((uint64_t)1 << 20)

/* What is known in a frame. */
struct frame {
    uint64_t code; /* where it goes on */
    uint64_t stack, pointer;
    uint64_t reach; /* of the next frame from this one */
    bool exact;     /* `code` is about to be run: a signal came there. Else a call is before it. */
};

/* The address of the instruction that is under way. */
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

/* The handler was called with a ucontext_t above its return address. */
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

/* The frame pointer points at the caller's, and above that is the return address. */
static bool follow_pointer(struct bfc_readable *readable, struct frame *frame) {
    uint64_t at = frame->pointer;
    if (at < frame->stack || at - frame->stack > FARTHEST ||
        !bfc_readable_word(readable, at, &frame->pointer) ||
        !bfc_readable_word(readable, at + 8, &frame->code) || frame->code - frame->stack < FARTHEST)
        return false; /* what is on a stack is no code: it was no frame pointer */
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
        return false; /* each is above the last, so that every walk ends */
    bool there = bfc_rule_pointer(rule) == BFC_POINTER_THERE;
    uint64_t saved = (there ? frame->pointer : base) + bfc_rule_pointer_offset(rule);
    if (bfc_rule_pointer(rule) != BFC_POINTER_KEPT &&
        !bfc_readable_word(readable, saved, &frame->pointer))
        return false;
    frame->stack = base;
    frame->exact = false;
    return true;
}

/* A coroutine returns to the very begin of the function that ends it: no call is before that. */
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
