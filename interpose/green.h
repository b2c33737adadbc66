/*
 * Green contexts: parts of a device's primary context, whose pool they share.
 *
 * Marks and captures work by context; one made from a green context stands only for its part, so
 * pools belong to the primary one. Thread-safe.
 */
#ifndef BFC_INTERPOSE_GREEN_H
#define BFC_INTERPOSE_GREEN_H

#include "interpose/driver.h"

/* A context was made from a green one (cuCtxFromGreenCtx). */
void bfc_green_made(const struct bfc_driver *driver, CUcontext context);

/* The primary context if `context` was made from a green one, else `context` itself. */
CUcontext bfc_green_owner(const struct bfc_driver *driver, CUcontext context);

#endif
