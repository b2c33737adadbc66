/* When the program itself has waited for all work of a context, marks the fences before that wait
 * as complete, and notes that later frees need not wait for the same work. */
#include "interpose/features/gate/program_waits.h"

#include "base/atomic.h"
#include "interpose/arena/arena.h"
#include "interpose/driver/driver.h"
#include "interpose/features/gate/only_stream.h"
#include "interpose/fences/fences.h"

struct bfc_program_wait bfc_program_wait_begin(const struct bfc_driver *driver, CUcontext context) {
    struct bfc_program_wait wait = {0};
    if ((!context && driver->cuCtxGetCurrent(&context) != CUDA_SUCCESS) || !context)
        return wait;
    wait.arena = bfc_arena_of_context(context, 0);
    wait.moment = bfc_only_stream_moment();
    if (wait.arena && wait.arena->fences)
        wait.last = bfc_fences_last(wait.arena->fences);
    return wait;
}

/* After a successful wait the fences that were recorded before it are complete, and the blocks
 * under them ready. A fence that had its number before the wait, but was not recorded yet, does not
 * count as complete, since that number may still go to another fence. */
void bfc_program_wait_end(struct bfc_program_wait *wait, CUresult result) {
    struct bfc_arena *arena = wait->arena;
    if (!arena)
        return;
    if (result == CUDA_SUCCESS) {
        if (arena->fences) {
            bfc_fences_pass(arena->fences, arena->context, wait->last);
            bfc_pool_complete(arena->pool, bfc_fences_known(arena->fences));
        }
        if (wait->moment.is_known)
            bfc_store_release(&arena->waited_for, wait->moment.submissions);
        bfc_only_stream_waited(&wait->moment);
    }
    bfc_arena_drop(arena);
}
