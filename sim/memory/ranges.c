// Host memory that the device may reach. Ranges are kept sorted; look-up is O(log n). Guarded by
// the lock.
#include "sim/memory/ranges.h"

#include <stdlib.h>
#include <string.h>

static struct sim_host_range *ranges;
static size_t count, room;

// The first range that begins behind an address.
static size_t behind(uintptr_t address) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct sim_host_range *sim_host_at(uintptr_t address) {
    size_t next = behind(address);
    if (next == 0 || address - ranges[next - 1].start >= ranges[next - 1].size) {
        return NULL;
    }
    return &ranges[next - 1];
}

bool sim_host_add(struct sim_host_range range) {
    if (count == room) {
        room = room == 0 ? 16 : room * 2;
        struct sim_host_range *grown = realloc(ranges, room * sizeof *ranges);
        if (grown == NULL) {
            return false;
        }
        ranges = grown;
    }
    size_t at = behind(range.start);
    memmove(&ranges[at + 1], &ranges[at], (count - at) * sizeof *ranges);
    ranges[at] = range;
    count++;
    return true;
}

void sim_host_remove(struct sim_host_range *range) {
    size_t at = (size_t)(range - ranges);
    memmove(range, range + 1, (count - at - 1) * sizeof *ranges);
    count--;
}

unsigned long long sim_pinned_bytes(void) {
    unsigned long long bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += ranges[i].registered ? 0 : ranges[i].size;
    }
    return bytes;
}
