/*
 * Makes a context current in the calling thread for the driver calls that the library makes itself,
 * and restores the program's. Thread-safe: the driver keeps a stack of contexts for each thread.
 */
#ifndef BFC_INTERPOSE_CURRENT_H
#define BFC_INTERPOSE_CURRENT_H

#include "interpose/driver/driver.h"

/* Makes the context current, which it usually is already, until bfc_current_leave gets the same
 * `pushed`. If the driver returns an error, nothing has changed and leaving is not needed. */
CUresult bfc_current_enter(const struct bfc_driver *driver, CUcontext context, bool *pushed);
void bfc_current_leave(const struct bfc_driver *driver, bool pushed);

/* Pops a context that the library has pushed. Tries several times, because otherwise the program
 * would go on in a context that it did not choose. Returns the last try's result. */
CUresult bfc_current_pop(const struct bfc_driver *driver);

/* What a context handle that was stored earlier means now: the same context, another context that
 * has got the same handle since, or none. `id` is what cuCtxGetId returned for the stored context.
 * If it is 0, or the driver lacks cuCtxGetId, another context counts as the same. */
enum bfc_handle { BFC_HANDLE_SAME, BFC_HANDLE_OTHER, BFC_HANDLE_DEAD };
enum bfc_handle bfc_handle_of(const struct bfc_driver *driver, CUcontext context,
                              unsigned long long id);

/* The context's id, which no other context ever has; 0: the driver does not tell, or is NULL. */
unsigned long long bfc_context_id(const struct bfc_driver *driver, CUcontext context);

/* The device's primary context; NULL if it is not active or cannot be read. */
CUcontext bfc_primary_context(const struct bfc_driver *driver, CUdevice device);

#endif
