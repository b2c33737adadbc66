/* The upstream of the pools: they take regions from the driver. */
#ifndef BFC_INTERPOSE_UPSTREAM_H
#define BFC_INTERPOSE_UPSTREAM_H

#include "interpose/arena/state.h"

/* Device memory, as cuMemAlloc gives it. */
extern const struct bfc_memory_source bfc_device_memory;

/* Functions of struct bfc_upstream, whose `context` is a struct bfc_arena. Their errors are the
 * driver's own (CUresult), except that a release for which the driver was not called gives
 * CUDA_ERROR_OUT_OF_MEMORY. */
enum bfc_reserve_result bfc_upstream_reserve(void *arena, uint64_t bytes, bfc_addr *start,
                                             struct bfc_ask *ask);
bool bfc_upstream_release(void *arena, bfc_addr start, uint64_t bytes, int *error);

/* Returns how many regions have gone back to the driver in this process. */
uint64_t bfc_upstream_count_releases(void);

/*
 * For code that makes a pool grow by other calls (interpose/features/pages/). The arena's context
 * must be current.
 *
 * bfc_upstream_charge charges `bytes` to BFC_LIMIT, and checks that BFC_RESERVE is kept and, unless
 * `is_first`, that no other job waits for the memory. On an error `why` says what is in the way.
 * bfc_upstream_note_refused notes in `ask`, the log and the segment that the pool could not grow.
 * bfc_upstream_note_device_free publishes how much memory the device has left.
 */
CUresult bfc_upstream_charge(struct bfc_arena *arena, uint64_t bytes, bool is_first,
                             const char **why);
enum bfc_reserve_result bfc_upstream_note_refused(struct bfc_arena *arena, uint64_t bytes,
                                                  const char *why, CUresult result,
                                                  struct bfc_ask *ask);
void bfc_upstream_note_device_free(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Waits for all work of the arena's context as the driver's own free does, even while something
 * captures: by having the driver allocate and free device memory. Returns the driver's error, which
 * may be one of earlier work; CUDA_ERROR_OUT_OF_MEMORY: there is nothing that could be freed. The
 * calling thread must be allowed to free. */
CUresult bfc_upstream_wait_as_free(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Waits for all work of the arena's context without device memory, by a call that waits in practice
 * but is not documented to. To the program that is a wait as good as the driver's, but no block may
 * be handed out because of it. CUDA_ERROR_OUT_OF_MEMORY: there is no memory for the call. */
CUresult bfc_upstream_wait_weakly(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Frees memory that an earlier bfc_upstream_wait_as_free has allocated and could not free; returns
 * how many bytes it freed. */
uint64_t bfc_upstream_free_spare_page(const struct bfc_driver *driver, struct bfc_arena *arena);

#endif
