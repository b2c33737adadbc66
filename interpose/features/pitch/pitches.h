/*
 * Remembers which pitches the driver has chosen so far.
 *
 * How a driver chooses is not published. This code assumes that it has a fixed set of pitches,
 * which are multiples of BFC_PITCH_UNIT, and takes the least that is wide enough. Then one answer
 * holds for all widths from the one asked for, rounded down to a unit, up to the pitch. The H100
 * answers so (its pitches are multiples of 512 bytes). Thread-safe, lock-free.
 */
#ifndef BFC_INTERPOSE_PITCHES_H
#define BFC_INTERPOSE_PITCHES_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* Pitches are multiples of this many bytes: what textures need on every device so far
 * (CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT). */
#define BFC_PITCH_UNIT ((size_t)32)

/* Whether cuMemAllocPitch accepts elements of this many bytes. */
static inline bool bfc_is_element(unsigned element) {
    return element == 4 || element == 8 || element == 16;
}

/* The pitch of rows of `width` bytes, as far as it is known; 0: it is not. */
size_t bfc_pitch_known(CUdevice device, unsigned element, size_t width);

/* Notes that the driver gave this pitch. */
void bfc_pitch_learn(CUdevice device, unsigned element, size_t width, size_t pitch);

#endif
