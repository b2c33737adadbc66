/*
 * Makes a context current in the calling thread for the driver calls that the library makes itself,
 * and restores the program's. Thread-safe: the driver keeps a stack of contexts for each thread.
 */
#ifndef BFC_INTERPOSE_CURRENT_H
#define BFC_INTERPOSE_CURRENT_H

#include "interpose/driver/driver.h"

/*
 * Makes the context current, which it usually is already, until bfc_current_leave gets the same
 * `pushed`. If the driver returns an error, nothing has changed and leaving is not needed.
 */
CUresult bfc_current_enter(const struct bfc_driver *driver, CUcontext context, bool *pushed);
void bfc_current_leave(const struct bfc_driver *driver, bool pushed);

/*
 * Undoes a push of ours. It tries several times, because otherwise the program would go on in a
 * context that it did not choose. Returns the last try's result.
 */
CUresult bfc_current_pop(const struct bfc_driver *driver);

/*
 * What a handle means that was noted earlier: the same context, another one that has got the handle
 * since, or none any more. `id` is what cuCtxGetId said of the one that was noted, or 0 where it
 * was not asked: then, and where the driver lacks that call, another one is not told from it.
 */
enum bfc_handle { BFC_HANDLE_SAME, BFC_HANDLE_OTHER, BFC_HANDLE_DEAD };
enum bfc_handle bfc_handle_of(const struct bfc_driver *driver, CUcontext context,
                              unsigned long long id);

/* The device's primary context; NULL if it is not active or cannot be read. */
CUcontext bfc_primary_context(const struct bfc_driver *driver, CUdevice device);

#endif
