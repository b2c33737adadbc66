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

struct bfc_host_left;

/* Before the end of the context: what its arena of host memory has (NULL: it has none). Returns
 * NULL if that is nothing, or the host has no memory: then it is forgotten. */
struct bfc_host_left *bfc_host_left_note(const struct bfc_driver *driver, struct bfc_arena *arena);

/* After it: what was noted is the arena's no longer, but ours to free. */
void bfc_host_left_add(struct bfc_arena *arena, struct bfc_host_left *noted);

/* Or the context did not end. */
void bfc_host_left_forget(struct bfc_host_left *noted);

/* Frees what is left; a context should be current, or the driver may not answer: what it does not
 * tell of stays for the next time. Does nothing while something captures. */
void bfc_host_left_collect(const struct bfc_driver *driver);

bool bfc_host_left_is_there(void);

#endif
