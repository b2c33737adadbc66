/*
 * The ends of contexts: the real call, and then everything that we knew of the context is
 * forgotten.
 *
 * Each function has the driver's result. Whose end a call brings is found out before the real call,
 * since afterwards another thread may have put a new context in its place.
 */
#ifndef BFC_INTERPOSE_ENDS_H
#define BFC_INTERPOSE_ENDS_H

#include "interpose/driver.h"

CUresult bfc_context_destroy(const struct bfc_driver *driver, CUcontext context,
                             CUresult (*real)(CUcontext));
CUresult bfc_primary_reset(const struct bfc_driver *driver, CUdevice device,
                           CUresult (*real)(CUdevice));
CUresult bfc_primary_release(const struct bfc_driver *driver, CUdevice device,
                             CUresult (*real)(CUdevice));

#endif
