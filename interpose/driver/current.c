/* Makes a context current for the library's own driver calls, with as few calls as possible. */
#include "interpose/driver/current.h"

CUresult bfc_current_enter(const struct bfc_driver *driver, CUcontext context, bool *pushed) {
    CUcontext current = NULL;
    *pushed = false;
    CUresult result = driver->cuCtxGetCurrent(&current);
    if (result != CUDA_SUCCESS || current == context)
        return result;
    result = driver->cuCtxPushCurrent_v2(context);
    *pushed = result == CUDA_SUCCESS;
    return result;
}

void bfc_current_leave(const struct bfc_driver *driver, bool pushed) {
    if (pushed)
        bfc_current_pop(driver);
}

CUresult bfc_current_pop(const struct bfc_driver *driver) {
    CUcontext popped;
    BFC_TRY_HARD(result, driver->cuCtxPopCurrent_v2(&popped));
    return result;
}

static CUresult ask_context(const struct bfc_driver *driver, CUcontext context,
                            unsigned long long *id) {
    unsigned version;
    if (driver->cuCtxGetId)
        return driver->cuCtxGetId(context, id);
    return driver->cuCtxGetApiVersion ? driver->cuCtxGetApiVersion(context, &version)
                                      : CUDA_SUCCESS;
}

/* Asks the driver what the handle means. An error that says "no such context" must come several
 * times in a row to count, since a passing error must not make a living context count as ended. */
enum bfc_handle bfc_handle_of(const struct bfc_driver *driver, CUcontext context,
                              unsigned long long id) {
    enum { TRIES = 8 };
    unsigned long long now = id;
    CUresult result = CUDA_ERROR_INVALID_CONTEXT;
    for (int i = 0; i < TRIES && (result == CUDA_ERROR_INVALID_CONTEXT ||
                                  result == CUDA_ERROR_CONTEXT_IS_DESTROYED);
         i++)
        result = ask_context(driver, context, &now);
    if (result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_CONTEXT_IS_DESTROYED)
        return BFC_HANDLE_DEAD;
    return result != CUDA_SUCCESS || !id || now == id ? BFC_HANDLE_SAME : BFC_HANDLE_OTHER;
}

CUcontext bfc_primary_context(const struct bfc_driver *driver, CUdevice device) {
    unsigned flags;
    int active = 0;
    CUcontext primary = NULL;
    /* Only a retain tells the primary context's handle. The context is active, so the retain makes
     * nothing new; the release below undoes it. */
    if (!driver->cuDevicePrimaryCtxGetState || !driver->cuDevicePrimaryCtxRetain ||
        !driver->cuDevicePrimaryCtxRelease_v2 ||
        driver->cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || !active ||
        driver->cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS)
        return NULL;
    driver->cuDevicePrimaryCtxRelease_v2(device);
    return primary;
}
