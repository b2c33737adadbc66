/*
 * Other processes that publish a segment: who caches memory on the same device; removing what the
 * dead left.
 *
 * Segments are read with pread, never mapped, so that one that is cut off meanwhile does no harm;
 * nothing in them is trusted. Only those of this user and pid namespace are looked at. Bounded in
 * the number of directory entries. Thread-safe.
 */
#ifndef BFC_INTERPOSE_NEIGHBOURS_H
#define BFC_INTERPOSE_NEIGHBOURS_H

#include <stddef.h>
#include <stdint.h>

struct bfc_neighbour {
    int32_t pid;
    uint64_t in_use, cached; /* on the device, in bytes */
    char command[64];
};

/* Living neighbours with memory on the device of that UUID, at most `most`; returns how many. */
size_t bfc_neighbours_on(const uint8_t uuid[16], uint64_t pid_namespace,
                         struct bfc_neighbour *found, size_t most);

/* Removes segments whose processes are dead: each keeps memory, and a job that is killed leaves it.
 */
void bfc_neighbours_sweep(uint64_t pid_namespace);

#endif
