/*
 * The program's own waits for all work of a context (cuCtxSynchronize): they complete fences, and
 * later frees need not wait for the same work again. Thread-safe.
 */
#ifndef BFC_INTERPOSE_PROGRAM_WAITS_H
#define BFC_INTERPOSE_PROGRAM_WAITS_H

#include "interpose/table/counter.h"

/* bfc_program_wait_begin is called before the driver's call that waits for `context` (NULL: the
 * current one), and bfc_program_wait_end after it, with what the driver returned. */
struct bfc_program_wait bfc_program_wait_begin(const struct bfc_driver *driver, CUcontext context);
void bfc_program_wait_end(struct bfc_program_wait *wait, CUresult result);

#endif
