/*
 * What a program may ask about a pointer: for a pooled one, answers for its block.
 *
 * The driver is asked first, except in some cases for spilled blocks. Its errors are passed on, and
 * so are answers that do not depend on where the block lies. For memory that was freed, the driver
 * is asked about an address where nothing is. Each function has the driver's own signature, result
 * and thread-safety; no lock is held across a driver call.
 */
#ifndef BFC_INTERPOSE_POINTER_ATTRIBUTES_H
#define BFC_INTERPOSE_POINTER_ATTRIBUTES_H

#include "interpose/driver/driver.h"

CUresult bfc_address_range(const struct bfc_driver *driver, CUdeviceptr *start, size_t *size,
                           CUdeviceptr pointer);
CUresult bfc_pointer_attribute(const struct bfc_driver *driver, void *data,
                               CUpointer_attribute attribute, CUdeviceptr pointer);
CUresult bfc_pointer_attributes(const struct bfc_driver *driver, unsigned count,
                                CUpointer_attribute *attributes, void **data, CUdeviceptr pointer);
CUresult bfc_set_pointer_attribute(const struct bfc_driver *driver, const void *value,
                                   CUpointer_attribute attribute, CUdeviceptr pointer);

#endif
