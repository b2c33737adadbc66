/* Other preloaded processes of this user on the same device, asked for what they only cache. */
#ifndef BFC_INTERPOSE_YIELD_H
#define BFC_INTERPOSE_YIELD_H

#include "interpose/domain.h"

/*
 * Asks them, through the request words of their segments, to give back `bytes` in all; stops when
 * so much came. Returns how many bytes came. Takes 90 ms at most, whether or not they answer: one
 * that is stopped is asked in vain, and the request is withdrawn. Thread-safe.
 */
uint64_t bfc_yield_ask(const struct bfc_domain *domain, uint64_t bytes);

#endif
