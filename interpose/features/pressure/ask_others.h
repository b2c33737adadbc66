/*
 * Asking others for memory that a pool lacks: the process's other contexts on the device, and other
 * jobs for what they only cache. Rungs of the ladder (last_resort.h): true if the allocation is
 * served.
 */
#ifndef BFC_INTERPOSE_ASK_OTHERS_H
#define BFC_INTERPOSE_ASK_OTHERS_H

#include "interpose/reuse/call.h"

bool bfc_ask_contexts(struct bfc_call *call);
bool bfc_ask_jobs(struct bfc_call *call);

#endif
