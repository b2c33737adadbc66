/*
 * The program's own waits for all work of a context (cuCtxSynchronize): what they show about fences
 * and about the work that frees would wait for. Only where submissions are counted; thread-safe.
 */
#ifndef BFC_INTERPOSE_PROGRAM_WAITS_H
#define BFC_INTERPOSE_PROGRAM_WAITS_H

#include "interpose/arena/state.h"
#include "interpose/submission/only_stream.h"

struct bfc_program_wait {
    struct bfc_arena *arena; /* of the context that is waited for, with a reference; NULL: it has
                                none, or submissions are not counted */
    struct bfc_moment moment;
    bfc_fence last; /* the last fence that was drawn before the wait */
};

/* Enclose the driver's call that waits for `context` (NULL: the current one) and returned
 * `result`. */
struct bfc_program_wait bfc_program_wait_begin(const struct bfc_driver *driver, CUcontext context);
void bfc_program_wait_end(struct bfc_program_wait *wait, CUresult result);

#endif
