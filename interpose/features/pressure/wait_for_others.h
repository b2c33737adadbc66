/* Waiting for memory that other jobs use (BFC_WAIT). */
#ifndef BFC_INTERPOSE_WAIT_H
#define BFC_INTERPOSE_WAIT_H

#include "interpose/reuse/call.h"

/*
 * A rung of the ladder (last_resort.h): stands in the queue of the device (segment/queue.h) until
 * the allocation is served, BFC_WAIT is over, a signal handler has run in this thread while it has
 * one, for a signal that it does not block, that does not restart system calls; the context or the
 * process is about to end, or the wait is found to be in vain. `waited` says which. True: served.
 * Takes at most BFC_WAIT and the length of one look.
 */
bool bfc_wait_for_others(struct bfc_call *call);

#endif
