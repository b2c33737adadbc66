/* A hash table of pitches, by device, size of element, and width in units of BFC_PITCH_UNIT. A key
 * has PROBES places in it; where all are taken, the new entry replaces another. */
#include "interpose/features/pitch/pitches.h"

#include <stdint.h>

#include "base/atomic.h"
#include "base/numbers.h"

enum {
    ENTRIES_BITS = 12,
    ENTRIES = 1 << ENTRIES_BITS,
    PROBES = 8, /* places in the table that one key may have */
    UNITS_BITS = 27,
    DEVICES = 256,
    UNITS_AT_ONCE = 64 /* for how many widths, in units, one answer is noted */
};

/* An entry is one word, so that threads read and write it as a whole. Its low UNITS_BITS bits are
 * the pitch, in units; above them is the key: device, element, and width in units. 0: free. */
static uint64_t entries[ENTRIES];

static uint64_t units_of(size_t bytes) {
    return bytes / BFC_PITCH_UNIT + (bytes % BFC_PITCH_UNIT != 0);
}

static bool has_entry(CUdevice device, unsigned element, size_t bytes) {
    return device >= 0 && device < DEVICES && bfc_is_element(element) &&
           units_of(bytes) >> UNITS_BITS == 0;
}

static uint64_t key_of(CUdevice device, unsigned element, uint64_t units) {
    return ((uint64_t)device << 2 | element / 8) << UNITS_BITS | units;
}

static uint64_t *entry_at(uint64_t key, unsigned probe) {
    return &entries[((key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ENTRIES_BITS)) + probe) %
                    ENTRIES];
}

size_t bfc_pitch_known(CUdevice device, unsigned element, size_t width) {
    if (!has_entry(device, element, width))
        return 0;
    uint64_t key = key_of(device, element, units_of(width)), entry = 1;
    for (unsigned probe = 0; probe < PROBES && entry; probe++) {
        entry = bfc_load_relaxed(entry_at(key, probe));
        if (entry >> UNITS_BITS == key)
            return (entry & ((UINT64_C(1) << UNITS_BITS) - 1)) * BFC_PITCH_UNIT;
    }
    return 0;
}

static void put_entry(uint64_t key, uint64_t pitch_units) {
    uint64_t *place = entry_at(key, 0);
    for (unsigned probe = 0; probe < PROBES; probe++) {
        uint64_t entry = bfc_load_relaxed(entry_at(key, probe));
        if (!entry || entry >> UNITS_BITS == key) {
            place = entry_at(key, probe);
            break;
        }
    }
    bfc_store_relaxed(place, key << UNITS_BITS | pitch_units);
}

void bfc_pitch_learn(CUdevice device, unsigned element, size_t width, size_t pitch) {
    if (pitch < width || pitch % BFC_PITCH_UNIT || !has_entry(device, element, pitch))
        return;
    uint64_t first = units_of(width), last = units_of(pitch);
    for (uint64_t units = first; units <= bfc_min(last, first + UNITS_AT_ONCE - 1); units++)
        put_entry(key_of(device, element, units), last);
}
