/* Which context is current in the calling thread, for calls of our own. */
#ifndef BFC_INTERPOSE_CURRENT_H
#define BFC_INTERPOSE_CURRENT_H

#include "interpose/driver/driver.h"

/*
 * Makes the context current, which it usually is already, until bfc_leave_context. On an error,
 * the driver's, nothing has changed.
 */
CUresult bfc_enter_context(const struct bfc_driver *driver, CUcontext context, bool *pushed);
void bfc_leave_context(const struct bfc_driver *driver, bool pushed);

/*
 * Takes back a push of ours; again if that is refused, lest the program go on in a context that
 * it did not choose.
 */
CUresult bfc_pop_context(const struct bfc_driver *driver);

/* The device's primary context, or NULL when it is not active. */
CUcontext bfc_primary_context(const struct bfc_driver *driver, CUdevice device);

#endif
