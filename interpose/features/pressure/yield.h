/* Asks other preloaded processes of this user on the same device for what they only cache. */
#ifndef BFC_INTERPOSE_YIELD_H
#define BFC_INTERPOSE_YIELD_H

#include "interpose/arena/arena.h"

/*
 * Asks them, through the request words of their segments, to give back `wanted` bytes in all; stops
 * when that much has come back. Returns how many bytes came. Takes at most 90 ms beside processes
 * that are stopped, and at most a second if one runs but does not answer; the latter once a minute
 * for each. A request that was not answered is withdrawn. Thread-safe.
 */
uint64_t bfc_yield_ask(const struct bfc_arena *arena, uint64_t wanted);

#endif
