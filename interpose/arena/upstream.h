/* The upstream of the pools: they take regions from the driver. */
#ifndef BFC_INTERPOSE_UPSTREAM_H
#define BFC_INTERPOSE_UPSTREAM_H

#include "interpose/arena/state.h"

/* Device memory, as cuMemAlloc gives it. */
extern const struct bfc_memory_source bfc_device_memory;

/* Functions of struct bfc_upstream; `arena` is a struct bfc_arena. */
enum bfc_reserve_result bfc_upstream_reserve(void *arena, uint64_t bytes, bfc_addr *start);
bool bfc_upstream_release(void *arena, bfc_addr start, uint64_t bytes);

/* How many regions have gone back in this process. */
uint64_t bfc_upstream_count_releases(void);

/*
 * For what grows a pool in another way (interpose/features/pages/). Charges its growth by so many
 * bytes to the limit, and checks with BFC_RESERVE, its context being current; on an error `why`
 * says what refused. bfc_upstream_note_refused: that growing failed so. bfc_upstream_note_error:
 * the same, of what is no lack of memory. bfc_upstream_note_device_free: that
 * what the device has left has changed.
 */
CUresult bfc_upstream_charge(struct bfc_arena *arena, uint64_t bytes, const char **why);
enum bfc_reserve_result bfc_upstream_note_refused(struct bfc_arena *arena, uint64_t bytes,
                                                  const char *why, CUresult result);
void bfc_upstream_note_error(CUresult result);
void bfc_upstream_note_device_free(const struct bfc_driver *driver, struct bfc_arena *arena);

/*
 * Waits for the arena's context as the driver's own free does, whatever captures: by a free of the
 * driver's own, of device memory. Returns its error, which may be of earlier work;
 * CUDA_ERROR_OUT_OF_MEMORY: there is nothing that could be freed. The caller must be allowed to
 * free.
 */
CUresult bfc_upstream_wait_as_free(const struct bfc_driver *driver, struct bfc_arena *arena);

/* The same without device memory, by a call that is only seen to wait: good for a barrier, not for
 * handing a block out. CUDA_ERROR_OUT_OF_MEMORY: not possible. */
CUresult bfc_upstream_wait_weakly(const struct bfc_driver *driver, struct bfc_arena *arena);

/* Frees what an earlier such wait could not; returns how many bytes went. */
uint64_t bfc_upstream_free_spare_page(const struct bfc_driver *driver, struct bfc_arena *arena);

/*
 * A process that waits for others (BFC_WAIT) does not take what another one waits for before it:
 * its pools then do not grow. Except in this thread, from true to false: it is its turn.
 */
void bfc_upstream_take_turn(bool takes);

/*
 * Why growing last failed in this thread: the driver's own answer, which is then forgotten;
 * CUDA_SUCCESS if there is none.
 */
CUresult bfc_upstream_take_error(void);

/* Makes it the answer, if it is one after which a context answers nothing else. */
void bfc_upstream_note_fatal(CUresult result);

#endif
