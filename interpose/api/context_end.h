/*
 * The ends of contexts: makes the driver's own call that ends one, and then makes the library
 * forget everything about that context.
 *
 * Each function returns the driver's result. Which contexts a call ends is determined before that
 * call, since afterwards another thread may have made a new context with the same handle.
 */
#ifndef BFC_INTERPOSE_CONTEXT_END_H
#define BFC_INTERPOSE_CONTEXT_END_H

#include "interpose/driver/driver.h"

CUresult bfc_context_destroy(const struct bfc_driver *driver, CUcontext context,
                             CUresult (*real)(CUcontext));
CUresult bfc_primary_end(const struct bfc_driver *driver, CUdevice device, bool is_reset,
                         CUresult (*real)(CUdevice));

/* To be called when the driver has created a context, before the program gets its handle. */
void bfc_context_created(const struct bfc_driver *driver, CUcontext context);

/* From this call on, reviews (interpose/context/contexts.h) look for contexts that have ended
 * without a call that has a hook. */
void bfc_context_serve_ends(void);

#endif
