/*
 * SipHash-2-4, a keyed hash that cannot be forged without the key (J.-P. Aumasson, D. J. Bernstein,
 * "SipHash: a fast short-input PRF", 2012). Pure.
 */
#ifndef BFC_INTERPOSE_SIPHASH_H
#define BFC_INTERPOSE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t bfc_siphash(const uint8_t key[16], const void *bytes, size_t size);

#endif
