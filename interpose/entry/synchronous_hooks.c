/* Hooks of the synchronous copies and sets: they wait if SYNC_MEMOPS is set for a block. */
#include "interpose/driver/driver.h"
#include "interpose/entry/define_hook.h"
#include "interpose/pointers/sync_memops.h"
#include "interpose/reuse/free_fence.h"

#define SYNCHRONOUS(name, per_thread, parameters, arguments, to, from)                             \
    BFC_HOOK(name, parameters) {                                                                   \
        BFC_FIND_DRIVER(driver, name);                                                             \
        CUresult result = driver->name arguments;                                                  \
        bfc_reuse_note_failure(result);                                                            \
        if (result == CUDA_SUCCESS && bfc_sync_memops_is_used())                                   \
            result = bfc_sync_memops_wait(driver, to, from, per_thread);                           \
        return result;                                                                             \
    }
#define PAIR(name, parameters, arguments, to, from)                                                \
    SYNCHRONOUS(name, false, parameters, arguments, to, from)                                      \
    SYNCHRONOUS(name##_ptds, true, parameters, arguments, to, from)
BFC_SYNCHRONOUS_CALLS(PAIR)
