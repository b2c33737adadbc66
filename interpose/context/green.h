/*
 * Green contexts: each is a part of its device's primary context, and shares that context's pool.
 *
 * Fences and captures concern whole contexts, and a context that was made from a green one covers
 * only a part of the device. So pools belong to primary contexts. Thread-safe.
 */
#ifndef BFC_INTERPOSE_GREEN_H
#define BFC_INTERPOSE_GREEN_H

#include "interpose/driver/driver.h"

/* Records a context that the program made from a green one (cuCtxFromGreenCtx). */
void bfc_green_made(const struct bfc_driver *driver, CUcontext context);

/* Returns the primary context if `context` was made from a green one, else `context` itself. */
CUcontext bfc_green_owner(const struct bfc_driver *driver, CUcontext context);

#endif
