/*
 * Makes a context current in the calling thread for driver calls that the library makes itself, and
 * then restores the program's current context. Thread-safe: the driver keeps a stack of contexts
 * for each thread.
 */
#ifndef BFC_INTERPOSE_CURRENT_H
#define BFC_INTERPOSE_CURRENT_H

#include "interpose/driver/driver.h"

/* bfc_current_enter makes the context current if it is not so already, and sets `*pushed`, which
 * the caller passes to bfc_current_leave. On an error nothing has changed, and bfc_current_leave
 * need not be called. */
CUresult bfc_current_enter(const struct bfc_driver *driver, CUcontext context, bool *pushed);
void bfc_current_leave(const struct bfc_driver *driver, bool pushed);

/* Pops a context that the library has pushed. Tries up to 8 times, because otherwise the program
 * would go on in a context that it did not choose. Returns the last result. */
CUresult bfc_current_pop(const struct bfc_driver *driver);

/* What a context handle that was stored earlier means now: the same context (SAME), another context
 * that has got the same handle since (OTHER), or none (DEAD). `id` is what cuCtxGetId returned for
 * the stored context. If it is 0, or the driver lacks cuCtxGetId, OTHER is reported as SAME. */
enum bfc_handle { BFC_HANDLE_SAME, BFC_HANDLE_OTHER, BFC_HANDLE_DEAD };
enum bfc_handle bfc_handle_of(const struct bfc_driver *driver, CUcontext context,
                              unsigned long long id);

/* The context's id, which no other context ever has; a NULL context means the current one. 0: there
 * is no such context, or the driver lacks cuCtxGetId. */
static inline unsigned long long bfc_context_id(const struct bfc_driver *driver,
                                                CUcontext context) {
    unsigned long long id = 0;
    return driver->cuCtxGetId && driver->cuCtxGetId(context, &id) == CUDA_SUCCESS ? id : 0;
}

/* The device's primary context; NULL if it is not active or cannot be read. */
CUcontext bfc_primary_context(const struct bfc_driver *driver, CUdevice device);

#endif
