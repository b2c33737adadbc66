/*
 * What a program may ask about a pointer: for a pooled one, answers for its block.
 *
 * The driver is always asked first, so that its errors stay its own and what is not about the
 * block's place passes through. For memory that was freed, the driver answers for an address where
 * nothing is. Each function has the driver's own signature, result and thread-safety; no lock is
 * held across a driver call.
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

/*
 * A block with attributes is about to be freed: unless others of its region have SYNC_MEMOPS set
 * too, the region loses it. If the free fails, bfc_sync_memops_stays puts it back.
 */
struct bfc_arena;
void bfc_sync_memops_goes(struct bfc_arena *arena, uint64_t id);
void bfc_sync_memops_stays(struct bfc_arena *arena, uint64_t id);

#endif
