/* Where the pools take regions from and give them back to: the driver. */
#ifndef BFC_INTERPOSE_UPSTREAM_H
#define BFC_INTERPOSE_UPSTREAM_H

#include "interpose/arena/state.h"

/* Regions of device memory, from cuMemAlloc. */
extern const struct bfc_memory_source bfc_device_memory;

/* The functions of struct bfc_upstream; their argument is a struct bfc_arena. Errors are the
 * driver's own (CUresult). If bfc_upstream_release fails without a call of the driver, the error is
 * CUDA_ERROR_OUT_OF_MEMORY. */
enum bfc_reserve_result bfc_upstream_reserve(void *arena, uint64_t bytes, bfc_addr *start,
                                             struct bfc_ask *ask);
bool bfc_upstream_release(void *arena, bfc_addr start, uint64_t bytes, int *error);

/* Returns how many regions and pages other threads of this process have given back so far;
 * bfc_upstream_note_release counts one of the calling thread. */
uint64_t bfc_upstream_releases_of_others(void);
void bfc_upstream_note_release(void);

/*
 * For code that makes a pool grow by driver calls of its own (interpose/features/pages/). The
 * arena's context must be current.
 *
 * bfc_upstream_charge counts `bytes` against BFC_LIMIT, and checks that BFC_RESERVE stays free on
 * the device and, unless `is_first`, that no other job waits for the memory. On an error nothing is
 * counted, and `why` is set to the reason. bfc_upstream_note_refused records in `ask`, the log and
 * the segment that the pool could not grow. bfc_upstream_note_device_free publishes how much memory
 * the device has left.
 */
CUresult bfc_upstream_charge(struct bfc_arena *arena, uint64_t bytes, bool is_first,
                             const char **why);
enum bfc_reserve_result bfc_upstream_note_refused(struct bfc_arena *arena, uint64_t bytes,
                                                  const char *why, CUresult result,
                                                  struct bfc_ask *ask);
void bfc_upstream_note_device_free(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Waits for all work of the arena's context as the driver's own free does, even during a stream
 * capture: it allocates device memory and frees it, and that free waits. Returns the driver's
 * error, which may be one of earlier work; CUDA_ERROR_OUT_OF_MEMORY: there was nothing that could
 * be freed. The caller has checked that no capture forbids the calling thread to free. */
CUresult bfc_upstream_wait_as_free(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Waits for all work of the arena's context by a call that needs no device memory. That it waits
 * was seen, but is not documented: after it a free of the program may return, but no block may be
 * handed out because of it. CUDA_ERROR_OUT_OF_MEMORY: there is no memory for the call. */
CUresult bfc_upstream_wait_weakly(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Frees the 2 MiB that an earlier bfc_upstream_wait_as_free allocated and the driver then refused
 * to free. Returns how many bytes it freed, or 0. */
uint64_t bfc_upstream_free_spare_page(const struct bfc_driver *driver, struct bfc_arena *arena);

#endif
