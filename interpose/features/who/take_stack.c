#include "interpose/features/who/sites.h"

#include "interpose/features/who/stacks/python.h"
#include "interpose/features/who/stacks/walk.h"
#include "interpose/features/who/tags.h"

static bool add_python_frame(void *context, const char *function, const char *file, int line) {
    struct bfc_stack *stack = context;
    pool_lock(&bfc_who_lock);
    struct bfc_who_frame frame = {
        .object = bfc_sites_text(function), .file = bfc_sites_text(file), .place = (uint64_t)line};
    pool_unlock(&bfc_who_lock);
    stack->frames[stack->python++] = frame;
    return stack->python < BFC_PYTHON_MOST;
}

static uint64_t mix_word(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25);
    return hash ^ hash >> 35;
}

uint32_t bfc_who_enter_at_site(const struct bfc_stack *stack) {
    pool_lock(&bfc_who_lock);
    return bfc_sites_find(stack);
}

void bfc_who_take_stack(struct bfc_stack *stack) {
    bool in_handler;
    stack->native = bfc_walk_stack(stack->calls, BFC_NATIVE_MOST, &in_handler);
    stack->python = 0;
    if (!in_handler) /* Python's frames are not read within a signal handler: the signal may have
                        come while the interpreter was changing its list of frames */
        bfc_walk_python(stack->calls, stack->native, add_python_frame, stack);
    stack->tag = bfc_tags_now();
    stack->hash = mix_word(stack->native, stack->tag);
    for (size_t i = 0; i < stack->native; i++)
        stack->hash = mix_word(stack->hash, stack->calls[i]);
    for (size_t i = 0; i < stack->python; i++) {
        const struct bfc_who_frame *frame = &stack->frames[i];
        stack->hash = mix_word(stack->hash, (uint64_t)frame->object << 32 | frame->file);
        stack->hash = mix_word(stack->hash, frame->place);
    }
}
