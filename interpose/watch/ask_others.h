/* Asking others for memory that a pool lacks: the process's other pools, then other jobs. */
#ifndef BFC_INTERPOSE_ASK_OTHERS_H
#define BFC_INTERPOSE_ASK_OTHERS_H

#include <stdint.h>

/* For the pool of this arena, whose context is current. Returns how many bytes came. */
uint64_t bfc_ask_others(void *arena, uint64_t bytes);

#endif
