/*
 * Hooks of calls that need device memory which does not come from the pool. The call is forwarded,
 * made again while the device is full and the pools can give memory back, and counted if it
 * allocates.
 */
#include "interpose/api/pass_through.h"
#include "interpose/driver/driver.h"
#include "interpose/driver/memory_needs.h"
#include "interpose/entry/define_hook.h"
#include "interpose/reuse/free_fence.h"

/* The assertions check that a call has a hook here exactly if calls.inc says that it is retried. */
enum {
#define BFC_CALL(symbol, version, need) need_of_##symbol = BFC_NEED_##need,
#include "interpose/driver/calls.inc"
#undef BFC_CALL
    calls_to_retry = 0
#define BFC_CALL(symbol, version, need) +BFC_NEED_RETRIED(BFC_NEED_##need)
#include "interpose/driver/calls.inc"
    ,
#undef BFC_CALL
#define BYPASS(name, kind, place, parameters, arguments, bytes) +1
#define INCIDENTAL(name, place, parameters, arguments) +1
    calls_retried = 0 BFC_BYPASS_CALLS(BYPASS) BFC_INCIDENTAL_CALLS(INCIDENTAL),
#undef BYPASS
#undef INCIDENTAL
};
_Static_assert(calls_retried == calls_to_retry, "a call that may need memory has no hook");
#define ASSERT_RETRIED(name)                                                                       \
    _Static_assert(BFC_NEED_RETRIED(need_of_##name), #name " is not to be retried")

#define BYPASS(name, kind, place, parameters, arguments, bytes)                                    \
    ASSERT_RETRIED(name);                                                                          \
    BFC_HOOK(name, parameters) {                                                                   \
        BFC_FIND_DRIVER(driver, name);                                                             \
        BFC_RETRIED_WHEN_FULL(result, place, driver->name arguments);                              \
        if (result == CUDA_SUCCESS)                                                                \
            bfc_count_past_pool(BFC_BYPASS_##kind, (uintptr_t)*out, bytes);                        \
        bfc_reuse_note_failure(result);                                                            \
        return result;                                                                             \
    }
BFC_BYPASS_CALLS(BYPASS)

#define INCIDENTAL(name, place, parameters, arguments)                                             \
    ASSERT_RETRIED(name);                                                                          \
    BFC_HOOK(name, parameters) {                                                                   \
        BFC_FIND_DRIVER(driver, name);                                                             \
        BFC_RETRIED_WHEN_FULL(result, place, driver->name arguments);                              \
        bfc_reuse_note_failure(result);                                                            \
        return result;                                                                             \
    }
BFC_INCIDENTAL_CALLS(INCIDENTAL)
