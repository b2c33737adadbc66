/*
 * The program's own waits for all work of a context (cuCtxSynchronize): what they show about fences
 * and about the work that frees would wait for. Thread-safe.
 */
#ifndef BFC_INTERPOSE_PROGRAM_WAITS_H
#define BFC_INTERPOSE_PROGRAM_WAITS_H

#include "interpose/table/counter.h"

/* bfc_program_wait_begin and bfc_program_wait_end enclose the driver's call that waits for
 * `context` (NULL: the current one) and returned `result`. */
struct bfc_program_wait bfc_program_wait_begin(const struct bfc_driver *driver, CUcontext context);
void bfc_program_wait_end(struct bfc_program_wait *wait, CUresult result);

#endif
