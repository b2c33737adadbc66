/*
 * Asking other jobs for what they only cache, since a pool lacks memory. A rung of the ladder
 * (last_resort.h): true if the allocation is served.
 */
#ifndef BFC_INTERPOSE_ASK_OTHERS_H
#define BFC_INTERPOSE_ASK_OTHERS_H

#include "interpose/reuse/call.h"

bool bfc_ask_jobs(struct bfc_call *call);

#endif
