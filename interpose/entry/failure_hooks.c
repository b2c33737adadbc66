/* Hooks that note a failure which the program hears of. */
#include "interpose/driver/driver.h"
#include "interpose/entry/define_hook.h"
#include "interpose/reuse/free_fence.h"

#define NOTED(name, parameters, arguments)                                                         \
    BFC_HOOK(name, parameters) {                                                                   \
        BFC_FIND_DRIVER(driver, name);                                                             \
        CUresult result = driver->name arguments;                                                  \
        bfc_reuse_note_failure(result);                                                            \
        return result;                                                                             \
    }
BFC_FAILURE_CALLS(NOTED)
