/* The pools' source of memory: the driver. */
#ifndef BFC_INTERPOSE_SOURCE_H
#define BFC_INTERPOSE_SOURCE_H

#include "interpose/domain.h"

/* Makes the domain's pool over the driver. False: the host has no memory. */
bool bfc_source_make_pool(struct bfc_domain *domain, const struct bfc_options *options);

/* Gives at least `bytes` of cached memory back, if there is so much; returns how many bytes went.
 * Thread-safe. */
uint64_t bfc_source_trim(uint64_t bytes);

/* BFC_TRIM_IDLE: gives back the regions that were idle for so long. For the helper thread. */
uint64_t bfc_source_trim_idle(uint64_t idle_ns);

/*
 * A call past the pools found the current device full: gives back what its pools only cache, having
 * waited for work that still uses it. True: something went back. Never while a capture is under
 * way.
 */
bool bfc_source_relieve(const struct bfc_driver *driver);

/*
 * Why growing last failed in this thread: the driver's own answer, which is then forgotten;
 * CUDA_SUCCESS if there is none.
 */
CUresult bfc_source_take_error(void);

/* Publishes the segment, if it is not yet, with the pools behind it. Thread-safe. */
void bfc_source_open_segment(const struct bfc_process *process);

#endif
