/* Hooks that note errors which the driver returns to the program (failure_calls.h). */
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
