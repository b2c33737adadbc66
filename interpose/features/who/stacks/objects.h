/*
 * A walk over the loaded objects that no fork can come into.
 *
 * dl_iterate_phdr holds a lock of the loader's. If another thread forks meanwhile, the child finds
 * that lock taken for good and hangs at its next dlopen or exception: the C library makes other
 * locks anew there, not this one. So a fork waits for the walks under way, and a walk that would
 * begin during a fork is not made. Thread-safe.
 */
#ifndef BFC_INTERPOSE_OBJECTS_H
#define BFC_INTERPOSE_OBJECTS_H

#include <link.h>
#include <stdbool.h>

/* From now on forks wait, and call `child` in the child; once a process, before the first walk. */
void bfc_objects_begin(void (*child)(void));

/* As dl_iterate_phdr. False: a fork is under way, and nothing was visited. */
bool bfc_objects_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                       void *context);

#endif
