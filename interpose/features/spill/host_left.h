/*
 * Host memory of contexts that have ended. Pinned memory may outlive its context, or go with it:
 * nobody says. So each region's buffer id, which the driver never gives twice, is noted before the
 * end; if the driver still knows it afterwards, the memory is freed. It counts against BFC_SPILL
 * until it went.
 *
 * Thread-safe.
 */
#ifndef BFC_INTERPOSE_HOST_LEFT_H
#define BFC_INTERPOSE_HOST_LEFT_H

#include "interpose/arena/state.h"

/* As struct bfc_feature has them: what a context's arena of host memory has is noted before the
 * end, is ours to free after it, or is forgotten. Without host memory for the notes it is lost. */
extern unsigned bfc_host_left_slot;
void bfc_host_left_note(const struct bfc_driver *driver, CUcontext context);
void bfc_host_left_add(const struct bfc_driver *driver, CUcontext context);
void bfc_host_left_forget(const struct bfc_driver *driver, CUcontext context);

void bfc_host_left_arena_freed(struct bfc_arena *arena);

/* Frees what is left; a context should be current, or the driver may not answer: what it does not
 * tell of stays for the next time. Does nothing while something captures. */
void bfc_host_left_collect(const struct bfc_driver *driver);

bool bfc_host_left_is_there(void);

#endif
