/*
 * Green contexts: parts of a device's primary context, whose pool they share.
 *
 * Fences and captures work by context. A context that was made from a green one covers only a part
 * of the device, so pools belong to the primary context. Thread-safe.
 */
#ifndef BFC_INTERPOSE_GREEN_H
#define BFC_INTERPOSE_GREEN_H

#include "interpose/driver/driver.h"

/* Notes that a context was made from a green one (cuCtxFromGreenCtx). */
void bfc_green_made(const struct bfc_driver *driver, CUcontext context);

/* Returns the primary context if `context` was made from a green one, else `context` itself. */
CUcontext bfc_green_owner(const struct bfc_driver *driver, CUcontext context);

#endif
