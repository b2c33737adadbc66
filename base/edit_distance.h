/* How much two names differ, for messages that suggest the one which was meant. */
#ifndef BFC_BASE_EDIT_DISTANCE_H
#define BFC_BASE_EDIT_DISTANCE_H

#include <stdint.h>

/* Returns how many letters have to be inserted, left out or changed to turn `a` into `b`;
 * UINT64_MAX: `a` or `b` is longer than 63 bytes. */
uint64_t bfc_edit_distance(const char *a, const char *b);

#endif
